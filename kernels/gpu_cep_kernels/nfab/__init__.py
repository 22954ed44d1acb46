"""Run NFA^b and read its shared match buffer."""
