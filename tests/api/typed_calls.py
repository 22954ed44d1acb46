"""Calls as users write them, for mypy: what comes out, and which choices it refuses. Nothing here is run."""

from __future__ import annotations

from pathlib import Path
from typing import Any, assert_type

from pyspark.sql import DataFrame, SparkSession

import gpu_cep as cep
from gpu_cep.display.plotting import Timeline


def results(table: Any, frame: DataFrame, query: str) -> None:
    assert_type(cep.match(table, query, output="compressed"), cep.Compressed)
    assert_type(cep.match(table, query, output="compressed").count(), int)
    assert_type(cep.gpu_match(frame, query), DataFrame)
    assert_type(cep.sql(query, spark=frame.sparkSession, t=frame), DataFrame)
    assert_type(cep.sql(query, frame.sparkSession, t=frame), DataFrame)
    assert_type(cep.sql(query, {"time_unit": frame}, spark=frame.sparkSession, time_unit="ms"), DataFrame)
    assert_type(cep.sql(query, {"time_unit": table}, t=table, time_unit="ms").num_rows, Any)
    assert_type(cep.plot(table, query, strategy="skip_till_any_match"), Timeline)
    assert_type(cep.events(frame), cep.SparkEvents)
    assert_type(cep.events(frame, partition_by=["a", "b"]).match(query, output="events"), DataFrame)
    assert_type(cep.events(frame).count(query), int)


def sessions() -> None:
    assert_type(SparkSession.builder.config(map=cep.sql_conf()).config(map=cep.rapids_conf(cores=8)).getOrCreate(), SparkSession)


def roles(table: Any, query: str) -> None:
    bound = cep.events(table, timestamp="at", time_unit="ms")
    assert_type(bound, cep.Events)
    assert_type(cep.events("steps.parquet"), cep.Events)
    assert_type(cep.events(Path("steps.parquet")), cep.Events)
    assert_type(cep.events([table]), cep.Events)
    assert_type(bound.match(query, output="compressed"), cep.Compressed)
    assert_type(bound.count(query, tuning=cep.Tuning(algorithm="nfab", prune=["filter"])), int)


def refused(table: Any, bound: cep.Events, query: str) -> None:
    cep.match(table, query, output="match")  # type: ignore[call-overload]
    cep.match(table, query, output="compressed", result="pandas")  # type: ignore[call-overload]
    cep.match(table, query, strategy="skip_till_next")  # type: ignore[call-overload]
    cep.match(table, query, timestmp="at")  # type: ignore[call-overload]
    cep.explain(table, query, engine="tpu")  # type: ignore[arg-type]
    cep.gpu_match(table, query, threads=2)  # type: ignore[call-arg]
    bound.match(query, timestamp="at")  # type: ignore[call-overload]
    cep.Tuning(algorithm="nfa")  # type: ignore[arg-type]
