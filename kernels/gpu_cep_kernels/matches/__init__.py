"""Hold, group, hash and aggregate matches once they are found."""
