"""Fork Spark's Python workers as the package's own daemon does, also those of tests that take the package away."""

import sys
from contextlib import suppress

from pyspark.daemon import manager

# The module of the workers that analyse calls of table functions.
ANALYSES = "pyspark.sql.worker.analyze_udtf"

with suppress(ImportError):
    from gpu_cep_spark.daemon import load

    load()
    if ANALYSES in sys.argv:
        import gpu_cep_spark.sql  # noqa: F401

if __name__ == "__main__":
    manager()
