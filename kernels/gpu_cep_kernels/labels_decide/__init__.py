"""Find or count matches that labels alone decide."""
