"""Find the matches of a batch: one folder per algorithm behind one protocol, and none imports another."""
