"""Fork Spark's Python workers from a process that has imported the engine, for which each of them would need a second."""

from contextlib import suppress

from pyspark.daemon import manager

# a test takes the package away from workers
with suppress(ImportError):
    import gpu_cep_spark.streaming.processor
    import gpu_cep_spark.tasks.row_worker
    import gpu_cep_spark.tasks.rule_worker
    import gpu_cep_spark.tasks.worker  # noqa: F401

if __name__ == "__main__":
    manager()
