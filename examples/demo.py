"""The thesis' running example, in the process and under Spark.

Run with ``make demo``.
"""

from __future__ import annotations

import os
import sys

import gpu_cep as cep
from gpu_cep.testing.chemo import chemo

QUERY = """
PATTERN SEQ(AND(C c, P+ p, D d), B b)
WHERE skip_till_next_match { [PID] AND prev(p.V) < p.V }
WITHIN 15 days
RETURN c.PID AS patient, count(p) AS doses, last(p.V) AS highest, b.V AS blood_count
"""
COLUMNS = {"timestamp": "T", "type_column": "L"}


def main() -> None:
    events = chemo()
    print(QUERY)
    print("In the process:\n")
    show(cep.match(events, QUERY, **COLUMNS).to_pylist())

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    spark = (
        SparkSession.builder.master("local[2]").config("spark.ui.enabled", False).config("spark.sql.shuffle.partitions", 2).getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    found = cep.gpu_match(spark.createDataFrame(events), QUERY, **COLUMNS)
    print("\nUnder Spark:\n")
    show(found.orderBy("match_start").toArrow().to_pylist())
    print("\nSpark's plan:\n")
    found.explain()
    spark.stop()


def show(rows: list[dict[str, object]]) -> None:
    for row in rows:
        print("  " + "  ".join(f"{name}={value}" for name, value in row.items()))


if __name__ == "__main__":
    main()
