"""Fork Spark's Python workers as the package's own daemon does, also those of tests that take the package away."""

from contextlib import suppress

from pyspark.daemon import manager

with suppress(ImportError):
    from gpu_cep_spark.daemon import load

    load()

if __name__ == "__main__":
    manager()
