"""Run plans over tables of events: read, label, order and match them, and write the result."""
