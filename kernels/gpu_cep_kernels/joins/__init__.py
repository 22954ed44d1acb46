"""Join tables of partial matches."""
