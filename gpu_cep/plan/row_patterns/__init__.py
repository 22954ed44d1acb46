"""Plan MATCH_RECOGNIZE: the pattern becomes an ordered automaton, its expressions become programs."""
