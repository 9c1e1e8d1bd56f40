"""What every other package of ours may use; it uses none of them."""
