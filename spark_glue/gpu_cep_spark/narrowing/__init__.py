"""Send only those rows and columns of a DataFrame to workers that a query needs."""
