"""Match with NFA^b: one pass over a window and a shared match buffer."""
