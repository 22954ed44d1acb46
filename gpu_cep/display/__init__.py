"""Show queries, matches and results: pictures, plots, cells and reports."""
