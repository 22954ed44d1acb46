"""Find the Parquet files behind a DataFrame, divide them into pieces, and read the pieces in tasks."""
