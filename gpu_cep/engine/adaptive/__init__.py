"""Choose the cheapest algorithm for a batch from statistics of its events."""
