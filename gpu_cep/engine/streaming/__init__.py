"""Match events that keep coming: what is kept of them, and which matches have become certain."""
