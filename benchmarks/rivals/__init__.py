"""Measure the library against other engines, each in an environment of its own."""
