"""Read events from tables of any kind into plain arrays of numbers, codes and masks."""
