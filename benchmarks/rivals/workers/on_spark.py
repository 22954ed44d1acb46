"""Spark SQL: hand-written SQL over a cached table in one local session; the matches go into the sink that discards them."""

from __future__ import annotations

import os
import sys

import pyarrow as pa
from contestant import Job, serve
from pyspark.sql import SparkSession

SETTINGS = {
    "spark.driver.memory": "6g",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


class Spark:
    def __init__(self, job: Job) -> None:
        os.environ["PYSPARK_PYTHON"] = sys.executable
        builder = SparkSession.builder.master(f"local[{job.threads}]").config("spark.sql.shuffle.partitions", str(2 * job.threads))
        for name, value in SETTINGS.items():
            builder = builder.config(name, value)
        self.text = job.text
        self.session = builder.getOrCreate()
        self.session.sparkContext.setLogLevel("ERROR")
        self.process = int(self.session._jvm.ProcessHandle.current().pid())
        events = self.session.read.parquet(job.events).repartition(2 * job.threads).cache()
        events.createOrReplaceTempView("events")
        events.count()

    def matches(self) -> pa.Table:
        return self.session.sql(self.text).toArrow()

    def run(self) -> None:
        self.session.sql(self.text).write.format("noop").mode("overwrite").save()


if __name__ == "__main__":
    serve(Spark)
