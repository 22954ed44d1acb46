"""Turn anything tabular into machine columns: plain arrays of numbers, codes and masks."""
