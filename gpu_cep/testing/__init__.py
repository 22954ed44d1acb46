"""What judges the engines: a brute-force oracle, random tables and queries, and the papers' own example.

Nothing here shares code with analysis, plan, engine or kernels, but for the
table of cases in which kernels are held to their own Python source.
"""
