"""What screens are made from."""
