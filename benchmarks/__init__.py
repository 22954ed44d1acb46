"""Measure what the library takes, beside what others take for the same."""
