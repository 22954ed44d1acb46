"""Label, partition and order the events of a query, on the CPU or on a card."""
