"""Match by joining tables of partial matches along a tree."""
