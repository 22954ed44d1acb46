"""Answer queries over situations: derive the situations, join them, and write their matches."""
