"""Measure rule sets: many patterns over the same events, against one pattern and against reading."""
