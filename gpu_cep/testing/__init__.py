"""What judges the engines: a brute-force oracle, random tables and queries, and the papers' own example.

Nothing here shares code with analysis, plan, engine or kernels, but for what
holds kernels to their own Python source, and code for devices to CuPy's rules.
"""
