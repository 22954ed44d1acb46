"""Answer ``algorithm="brute_force"`` by the oracle, for any query over few events."""
