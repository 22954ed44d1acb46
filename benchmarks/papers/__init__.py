"""Measure what the figures of the papers show."""
