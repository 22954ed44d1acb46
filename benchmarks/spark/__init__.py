"""Measure the library under Spark, beside what Spark takes by itself."""
