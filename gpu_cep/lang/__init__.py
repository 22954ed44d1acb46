"""Read the text of queries into syntax trees, and write trees as text."""
