"""Find, for many plans over the same events, the rows that each of them may bind."""
