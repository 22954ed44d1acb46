"""Show queries, matches and results: plots, cells and reports."""
