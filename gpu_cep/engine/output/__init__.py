"""Turn matches into tables: result order, after_match, RETURN, data frames."""
