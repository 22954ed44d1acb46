"""Fork Spark's Python workers from a process that has imported the engine, for which each of them would need a second."""

from contextlib import suppress

from pyspark.daemon import manager

# a test takes the package away from workers
with suppress(ImportError):
    import gpu_cep_spark.live_processor
    import gpu_cep_spark.row_worker
    import gpu_cep_spark.rule_worker
    import gpu_cep_spark.worker  # noqa: F401

if __name__ == "__main__":
    manager()
