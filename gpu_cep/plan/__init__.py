"""Plan bound queries: choose what prunes and what matches, and compile conditions to programs."""
