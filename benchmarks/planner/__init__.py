"""Measure the algorithms beside each other, and how well the planner chooses among them."""
