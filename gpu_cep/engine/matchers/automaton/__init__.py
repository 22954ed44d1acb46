"""Match with the SES automaton and with backtracking, after candidate windows are chosen."""
