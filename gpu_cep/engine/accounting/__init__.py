"""Bound and measure a run: its budget, its profile, and the host's free memory."""
