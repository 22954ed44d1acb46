"""What judges the engines: a brute-force oracle, random tables and queries, and the papers' own example.

Nothing here shares code with analysis, plan, engine or kernels.
"""
