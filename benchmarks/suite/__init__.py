"""Measure every workload by all its ways, and compare one run with another."""
