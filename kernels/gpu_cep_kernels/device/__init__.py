"""Hold arrays on a card, launch kernels there and run parallel primitives."""
