"""Hold events and matches by number: ordered events, label words, batches, slices, positions, matches."""
