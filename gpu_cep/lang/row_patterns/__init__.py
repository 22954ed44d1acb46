"""Read and write SQL's row patterns, the clause MATCH_RECOGNIZE (SPEC section 7)."""
