"""Label, partition and order events on a card."""
