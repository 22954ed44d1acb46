"""Find what labels and times alone decide: candidate windows, matches read off directly, counts by state."""
