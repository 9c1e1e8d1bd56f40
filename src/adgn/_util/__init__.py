"""What every part of the package may use; it uses none of them."""
