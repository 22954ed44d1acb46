"""Match SQL's row patterns over labelled rows, and read what their measures need."""
