"""Match many patterns over the same events, which are read once for all of them."""
