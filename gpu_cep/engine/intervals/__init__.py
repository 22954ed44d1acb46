"""Answer queries over situations: derive them, join them, and return their matches."""
