"""Answer MATCH_RECOGNIZE: order the rows, label them, find the matches, compute the measures."""
