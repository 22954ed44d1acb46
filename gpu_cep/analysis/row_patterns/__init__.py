"""Bind SQL's row patterns to a schema, by the rules of the standard (docs/row-patterns.md)."""
