"""Run the oracle as an algorithm that any query may ask for."""
