"""Hold all matches as one graph of shared nodes, from which they are counted and enumerated."""
