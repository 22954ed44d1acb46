"""Walk the SES automaton over windows, with jumps and remembered dead ends."""
