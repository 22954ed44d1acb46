"""Measure SQL's row patterns."""
