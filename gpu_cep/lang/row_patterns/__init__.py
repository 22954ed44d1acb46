"""Read and write SQL's row patterns, the clause MATCH_RECOGNIZE (docs/row-patterns.md)."""
