"""Read tables that lie on a card, and copy columns to one."""
