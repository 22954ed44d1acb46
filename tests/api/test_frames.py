"""Data frames go in and come out: pandas, polars and DuckDB, with the types that they have."""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import dataset

import gpu_cep as cep
from gpu_cep.engine.output.frames import FRAMES

MOMENT = dt.datetime(2026, 3, 1, tzinfo=dt.UTC)
TABLE = pa.table(
    {
        "ts": pa.array([MOMENT + dt.timedelta(seconds=s) for s in (3, 1, 2, 4)], pa.timestamp("us", "UTC")),
        "type": ["A", "A", "B", "B"],
        "site": ["y", "x", "x", "y"],
        "v": pa.array([3, 1, None, 4], pa.int64()),
        "price": pa.array([Decimal("3.10"), Decimal("1.10"), Decimal("2.20"), None]),
        "tags": [["p"], ["q"], [], None],
    }
)
QUERY = """
    PATTERN SEQ(A a, B b) WHERE a.price > 1 AND a.site LIKE '_' WITHIN 10 seconds
    RETURN a.site AS place, b.v AS v, b.price AS price, a AS a
"""
FOUND = cep.match(TABLE, QUERY, partition_by="site")


def polars_text_as(kind: Any) -> pl.DataFrame:
    return pl.DataFrame(TABLE).with_columns(pl.col("type", "site").cast(kind))


def queried(query: str) -> Any:
    connection = duckdb.connect()
    connection.register("events", TABLE)
    return connection.sql(query)


FORMS: dict[str, Callable[[], Any]] = {
    "pandas": lambda: TABLE.to_pandas().astype({"v": "Int64"}),
    "pandas of Arrow": lambda: TABLE.to_pandas(types_mapper=pd.ArrowDtype),
    "pandas, categories": lambda: TABLE.to_pandas().astype({"v": "Int64", "type": "category", "site": "category"}),
    "pandas, another index": lambda: TABLE.to_pandas().astype({"v": "Int64"}).set_index(pd.Index([7, 7, 3, 9])),
    "polars": lambda: pl.DataFrame(TABLE),
    "polars, categories": lambda: polars_text_as(pl.Categorical),
    "polars, enum": lambda: polars_text_as(pl.Enum(["A", "B", "x", "y"])),
    "polars, chunks": lambda: pl.concat([pl.DataFrame(TABLE)[:1], pl.DataFrame(TABLE)[1:]], rechunk=False),
    "polars, lazy": lambda: pl.DataFrame(TABLE).lazy().filter(pl.col("v").is_null() | (pl.col("v") > 0)),
    "polars, lazy categories": lambda: polars_text_as(pl.Categorical).lazy(),
    "data set": lambda: dataset.dataset([TABLE.slice(0, 1), TABLE.slice(1)]),
    "duckdb": lambda: queried("SELECT * FROM events"),
    "duckdb, enum": lambda: queried("SELECT * REPLACE (type::ENUM('A', 'B') AS type) FROM events"),
    "duckdb, reader": lambda: queried("SELECT * FROM events ORDER BY v NULLS LAST").to_arrow_reader(2),
}


@pytest.mark.parametrize("form", FORMS)
def test_frames_hold_events(form: str) -> None:
    found = cep.match(FORMS[form](), QUERY, partition_by="site").select(["match_start", "v", "price"])
    assert found.to_pylist() == FOUND.select(["match_start", "v", "price"]).to_pylist()


# To compute it is an error.
BROKEN = pl.col("site").cast(pl.Int64).alias("broken")


def test_only_what_is_asked_for_is_computed() -> None:
    """A column beside the query's would raise an error if it were read."""
    query = "PATTERN SEQ(A a, B b) RETURN a.site AS site"
    wanted = cep.match(TABLE, query).to_pylist()
    lazy = pl.DataFrame(TABLE).lazy().with_columns(BROKEN)
    assert cep.match(lazy, query).to_pylist() == wanted
    with pytest.raises(cep.EventError, match="cannot read LazyFrame: conversion"):
        cep.match(lazy, "PATTERN SEQ(A a, B b) RETURN a.broken AS x")
    relation = queried("SELECT *, error('this column is broken') AS broken FROM events")
    assert cep.match(relation, query).to_pylist() == wanted
    with pytest.raises(cep.EventError, match=r"cannot read DuckDBPyRelation: .*this column is broken"):
        cep.match(relation, "PATTERN SEQ(A a, B b) RETURN a.broken AS x")


def test_a_source_has_faults_of_a_query_found_before_it_is_read() -> None:
    lazy = pl.DataFrame(TABLE).lazy().select(pl.all(), BROKEN)
    with pytest.raises(cep.PatternError, match="price"):
        cep.match(lazy, "PATTERN SEQ(A a, B b) WHERE a.pryce > b.price")


@pytest.mark.parametrize("name", ["v w", 'the "v"', "*", "^.*$", "^x$", "a.b", "`"])
def test_columns_of_odd_names_are_read(name: str) -> None:
    odd = TABLE.append_column(name, TABLE["v"])
    connection = duckdb.connect()
    connection.register("events", odd)
    wanted = cep.match(odd, "PATTERN SEQ(A a, B b) RETURN a AS a").to_pylist()
    for form in (pl.DataFrame(odd).lazy(), connection.table("events"), dataset.dataset(odd)):
        assert cep.match(form, "PATTERN SEQ(A a, B b) RETURN a AS a").to_pylist() == wanted


def test_columns_that_arrow_cannot_make_are_left_alone() -> None:
    query = "PATTERN SEQ(A a, B b) RETURN a.site AS site"
    wanted = cep.match(TABLE, query).to_pylist()
    assert cep.match(queried("SELECT *, union_value(a := 1) AS z FROM events"), query).to_pylist() == wanted
    nested = pl.DataFrame(TABLE).lazy().with_columns(pl.lit(pl.Series([["p"]] * 4, dtype=pl.List(pl.Categorical))).alias("z"))
    assert cep.match(nested, query).to_pylist() == wanted


def test_pandas_comes_out_with_the_types_of_arrow() -> None:
    found = cep.match(TABLE, QUERY, partition_by="site", result="pandas")
    assert isinstance(found, pd.DataFrame)
    assert pa.Table.from_pandas(found, schema=FOUND.schema, preserve_index=False).equals(FOUND)
    assert found["v"].dtype == pd.ArrowDtype(pa.int64())
    assert found["v"].isna().sum() == 1


def test_polars_comes_out() -> None:
    found = cep.match(pl.DataFrame(TABLE), QUERY, partition_by="site", result="polars")
    assert isinstance(found, pl.DataFrame)
    assert found["price"].dtype == pl.Decimal(3, 2)
    assert found.drop("a").rows() == [tuple(row.values()) for row in FOUND.drop_columns("a").to_pylist()]


def test_duckdb_comes_out_as_a_relation() -> None:
    found = cep.match(TABLE, QUERY, partition_by="site", result="duckdb")
    assert found.aggregate("count(*), sum(v)").fetchall() == [(2, 4)]
    assert found.columns == FOUND.column_names


def test_duckdb_and_polars_take_a_result_as_it_is() -> None:
    connection = duckdb.connect()
    connection.register("found", FOUND)
    assert connection.sql("SELECT place, price FROM found ORDER BY 1").fetchall() == [("x", Decimal("2.20")), ("y", None)]
    assert pl.DataFrame(FOUND)["place"].sort().to_list() == ["x", "y"]


def test_results_of_every_kind_are_events_again() -> None:
    for result in FRAMES:
        found = cep.match(TABLE, QUERY, partition_by="site", result=result)
        again = cep.match(found, "PATTERN m RETURN m.price AS price", timestamp="match_start", result=result)
        assert cep.match(again, "PATTERN m", timestamp="match_start", output="count")["count"].to_pylist() == [2]


@pytest.mark.parametrize("output", ["events", "indices", "count"])
@pytest.mark.parametrize("result", FRAMES)
def test_every_output_comes_out(output: str, result: str) -> None:
    expected = cep.match(TABLE, QUERY.split("RETURN")[0], partition_by="site", output=output, columns="v")
    found = cep.match(TABLE, QUERY.split("RETURN")[0], partition_by="site", output=output, columns="v", result=result)
    assert list(found.columns) == expected.column_names


@pytest.mark.parametrize("result", FRAMES)
def test_what_is_not_installed_is_told_before_events_are_read(monkeypatch: pytest.MonkeyPatch, result: str) -> None:
    monkeypatch.setitem(sys.modules, result, None)
    with pytest.raises(cep.EngineUnavailable, match=f"needs {result}, which is not installed"):
        cep.match("missing.parquet", QUERY, result=result)


@pytest.mark.parametrize(
    ("result", "values"),
    [
        ("polars", pa.array([pa.MonthDayNano([1, 2, 3]), None])),
        ("polars", pa.array([[1], None], pa.list_view(pa.int8()))),
        ("polars", pa.array([Decimal(1), None], pa.decimal256(60, 2))),
        ("duckdb", pa.array([Decimal(1), None], pa.decimal256(60, 2))),
        ("duckdb", pa.array([1.5, None], pa.float16())),
    ],
    ids=str,
)
def test_a_column_that_a_library_does_not_have_is_named(result: str, values: pa.Array) -> None:
    events = pa.table({"ts": [1, 2], "z": values})
    with pytest.raises(cep.UnsupportedError, match=rf"column 'z' of type .* is not supported with result='{result}'\n.*columns="):
        cep.match(events, "PATTERN a", output="events", result=result)
    assert len(cep.match(events, "PATTERN a", output="events", columns="ts", result=result)) == 2


def test_a_compressed_result_has_a_form_of_its_own() -> None:
    with pytest.raises(cep.UnsupportedError, match="supported: arrow"):
        cep.match(TABLE, QUERY, output="compressed", result="polars")
