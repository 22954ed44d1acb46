"""Hold all matches as one shared graph that counts and enumerates them."""
