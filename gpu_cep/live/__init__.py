"""Plan and run queries over events that keep coming, and over files that are read as a stream."""
