"""Walk lazy automata over input buffers."""
