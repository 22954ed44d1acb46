"""Label, order and prune events: label masks, text, windows, window conditions, rare events, input buffers."""
