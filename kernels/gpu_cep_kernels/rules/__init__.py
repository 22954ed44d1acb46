"""State each piece of the semantics once, as a scalar function over tables."""
