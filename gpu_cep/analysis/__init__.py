"""Bind syntax trees to a schema: resolve names, check types, and bring patterns into normal form."""
