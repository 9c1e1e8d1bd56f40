"""What every room may use: it imports nothing else of this package."""
