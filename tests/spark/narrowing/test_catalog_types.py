"""What Spark is asked to filter, the engine would filter, too: every type of the catalog, under every setting that bears on it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import Column, DataFrame, SparkSession

import gpu_cep as cep
from gpu_cep.analysis.options import Options
from gpu_cep.plan.settings import Settings
from gpu_cep.queries.plans import make_plan
from gpu_cep_spark.narrowing.pushdown import event_filter, read_columns
from gpu_cep_spark.schemas import arrow_schema
from tests.effort import every_value
from tests.spark.samples import as_set

TEXT = ("'a'", "'A'", "''", "'ab'", "'a '")
WORDS = ("'a'", "'A'", "'a   '", "''")
# Of each type: its name in SQL, cells, and literals that a pattern compares it with.
TYPES: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "truth": ("boolean", ("true", "false"), ("TRUE", "FALSE")),
    "tiny": ("tinyint", ("0", "1", "-128"), ("0", "1", "1.5")),
    "small": ("smallint", ("0", "1", "-1"), ("0", "40000")),
    "whole": ("int", ("0", "1", "-1"), ("0", "3000000000")),
    "big": ("bigint", ("0", "9007199254740993", "-9223372036854775808"), ("0", "9007199254740993", "9007199254740992.5")),
    "single": ("float", ("float('nan')", "0f", "-0f", "0.1f", "1f"), ("0", "0.1", "1")),
    "double": ("double", ("double('nan')", "0d", "-0d", "0.1d", "double('inf')"), ("0", "0.1", "1")),
    "price": ("decimal(9,2)", ("0", "0.10", "1.00"), ("0", "0.1", "0.105")),
    "fine": ("decimal(18,9)", ("0", "0.1", "123456789.1"), ("0.1", "123456789.1", "1234567890")),
    "plain": ("string", TEXT, WORDS),
    "padded": ("char(4)", TEXT, WORDS),
    "bounded": ("varchar(4)", TEXT, WORDS),
    "any_case": ("string collate UTF8_LCASE", TEXT, WORDS),
    "trimmed": ("string collate UTF8_BINARY_RTRIM", TEXT, WORDS),
    "accented": ("string collate UNICODE_CI_AI", (*TEXT, "'ä'"), (*WORDS, "'ä'")),
    "day": ("date", ("date'2024-02-29'", "date'1500-01-01'"), ("DATE '2024-02-29'", "TIMESTAMP '2024-02-29 00:00:00'")),
    "moment": (
        "timestamp",
        ("timestamp'2024-03-31 02:30:00 UTC'", "timestamp'1969-12-31 23:59:59.999999 UTC'", "timestamp'1500-01-01 00:00:00'"),
        ("TIMESTAMP '2024-03-31 02:30:00Z'", "TIMESTAMP '1969-12-31 23:59:59.999999Z'"),
    ),
    "wall": (
        "timestamp_ntz",
        ("timestamp_ntz'2024-03-31 02:30:00'", "timestamp_ntz'1969-12-31 23:59:59.999999'", "timestamp_ntz'1500-01-01 00:00:00'"),
        ("TIMESTAMP '2024-03-31 02:30:00'", "DATE '2024-03-31'"),
    ),
    "length": (
        "interval day to second",
        ("interval '1 00:00:00' day to second", "interval '0 00:00:01' day to second"),
        ("1 day", "0 days"),
    ),
    # these cannot be compared
    "bytes": ("binary", ("X'00'", "X''"), ()),
    "list": ("array<int>", ("array(1)",), ()),
    "pairs": ("map<string, int>", ("map('a', 1)",), ()),
    "parts": ("struct<a: int, c: char(3)>", ("named_struct('a', 1, 'c', 'x')",), ()),
}
SETTINGS = (
    {},
    {
        "spark.sql.ansi.enabled": "false",
        "spark.sql.session.timeZone": "America/St_Johns",
        "spark.sql.caseSensitive": "true",
        "spark.sql.readSideCharPadding": "false",
    },
    {"spark.sql.preserveCharVarcharTypeInfo": "true"},
)
CHOICES = [SETTINGS[0], *(pytest.param(each, marks=pytest.mark.full) for each in SETTINGS[1:])]
ROWS = 36


@pytest.fixture(scope="module")
def catalog(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A table with two columns of each type, which hold all pairs of its cells and NULL."""
    place = Path(tmp_path_factory.mktemp("catalog")) / "every_type"
    columns = ", ".join(f"{name} {of}, {name}_2 {of}" for name, (of, _, _) in TYPES.items())
    spark.sql(f"CREATE TABLE every_type (ts bigint, {columns}) USING parquet LOCATION '{place}'")
    pairs = [list(product((*cells, "NULL"), repeat=2)) for _, cells, _ in TYPES.values()]
    rows = (", ".join([str(row), *(cell for each in pairs for cell in each[row % len(each)])]) for row in range(ROWS))
    spark.sql(f"INSERT INTO every_type VALUES {', '.join(f'({row})' for row in rows)}")
    yield "every_type"
    spark.sql("DROP TABLE every_type")


@pytest.fixture(params=CHOICES, ids=lambda given: ", ".join(name.rsplit(".", 1)[-1] for name in given) or "defaults")
def frame(spark: SparkSession, catalog: str, request: pytest.FixtureRequest) -> Iterator[DataFrame]:
    """The table of every type, in a session with one choice of settings."""
    before = {name: spark.conf.get(name) for name in request.param}
    for name, value in request.param.items():
        spark.conf.set(name, value)
    yield spark.table(catalog)
    for name, value in before.items():
        spark.conf.set(name, value)


def conditions() -> Iterator[str]:
    for name, (_, _, literals) in TYPES.items():
        yield from (f"x.{name} IS NULL", f"x.{name} IS NOT NULL")
        yield from (f"x.{name} {sign} x.{name}_2" for sign in ("=", "<>", "<", ">=") if literals)
        yield from (f"x.{name} {sign} {literal}" for literal in literals for sign in ("=", "<>", "<", ">="))
        yield from (f"x.{name} {sign} ({literal}, {literals[0]})" for literal in literals for sign in ("IN", "NOT IN"))
        yield from (f"x.{name} {sign} 'a%'" for sign in ("LIKE", "NOT LIKE") if literals == WORDS)


def filters(frame: DataFrame, read: DataFrame, expressions: list[str]) -> dict[str, Column]:
    """The filters that are pushed down for patterns whose only variable has a condition, by the condition."""
    events, schema = arrow_schema(frame.schema, str(frame.sparkSession.conf.get("spark.sql.session.timeZone"))), read.schema
    plans = {each: make_plan(f"PATTERN x WHERE {each}", events, Options(), Settings()) for each in expressions}
    found = {each: event_filter(plan.query, schema) for each, plan in plans.items()}
    return {each: column for each, column in found.items() if column is not None}


def test_filters_keep_what_the_engine_keeps(frame: DataFrame) -> None:
    read = read_columns(frame, frame.columns)
    pushed = filters(frame, read, list(conditions()))
    keeps = read.select(*(column.alias(each) for each, column in pushed.items())).toArrow()
    items = ", ".join(f'{each} AS "{each}"' for each in pushed)
    holds = cep.match(frame.toArrow().set_column(0, "ts", pa.array(range(ROWS))), f"PATTERN x RETURN {items}")
    lost = {each for each in pushed if pc.any(pc.and_kleene(holds[each], pc.invert(keeps[each]))).as_py()}
    assert not lost
    assert len(pushed) > 150


@every_value(
    name=["padded", "any_case"],
    asked=[("", {"output": "count"}), ("", {"output": "count", "prune": False}), ("RETURN x.ts AS t", {}), ("RETURN x.{0} AS c", {})],
)
def test_no_form_of_the_output_changes_the_matches(spark: SparkSession, catalog: str, name: str, asked: tuple[str, dict[str, Any]]) -> None:
    returned, options = asked
    frame = spark.table(catalog).select("ts", name)
    text = f"PATTERN x WHERE x.{name} IN ('a', 'ab', 'A   ') AND x.{name} <> 'ab' {returned.format(name)}"
    local: pa.Table = cep.match(frame.toArrow(), text, **options)
    assert as_set(cep.gpu_match(frame, text, **options).toArrow()) == as_set(local)
    assert local.num_rows > 0


def test_streams_of_collated_keys_are_those_of_their_texts(spark: SparkSession) -> None:
    """Placing by count numbers the events of a stream in Spark, where the key must be the engine's."""
    rows = "VALUES (10, 'a', 1), (25, 'A', 0), (39, 'A', 0), (41, 'a', 1), (45, 'a', 0), (50, 'A', 0), (60, 'a', 1) AS events(ts, key, on)"
    frame = spark.sql(f"SELECT ts, key COLLATE UTF8_LCASE AS key, on FROM {rows}")
    text = "PARTITION BY key DEFINE s AS on = 1, z AS on = 0 PATTERN s meets z WITHIN 40 RETURN start(z) AS t"
    local = cep.match(frame.toArrow(), text)
    assert as_set(cep.gpu_match(frame, text, slices=40).toArrow()) == as_set(local)
    assert local.num_rows == 0, "the first situation is longer than the window"
