"""Find the matches of MATCH_RECOGNIZE by trying everything, in the order in which SQL prefers it (docs/row-patterns.md)."""
