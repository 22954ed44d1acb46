"""Find what labels and times alone decide: candidate windows, and some patterns' matches or counts."""
