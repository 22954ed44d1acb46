"""Match files slice of time by slice of time, in bounded memory, and put the results together."""
