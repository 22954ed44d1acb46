"""Say on what machine figures were measured, and write them down."""
