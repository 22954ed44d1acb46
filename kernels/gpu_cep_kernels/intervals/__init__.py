"""Derive situations and join them by ranges."""
