"""Find the matches of MATCH_RECOGNIZE by trying everything, in the order in which SQL prefers it (SPEC section 7)."""
