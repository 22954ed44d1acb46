"""Hold numbered events and matches: ordered events, label words, batches, slices of time, positions."""
