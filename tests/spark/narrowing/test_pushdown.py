"""What is pushed down keeps every event that the property keeps, whatever Spark thinks of NaN, NULL and -0.0."""

from __future__ import annotations

import datetime as dt
import math
import operator
import random
from collections import Counter
from collections.abc import Iterable, Iterator
from decimal import Decimal
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import gpu_cep as cep
from gpu_cep.analysis import types
from gpu_cep.analysis.bound import BoundPattern, Branch, Condition, ConditionKind, CountWindow, EventVariable, TimeWindow
from gpu_cep.analysis.bound_expressions import Bound, Constant, Constants, Field, Operation
from gpu_cep_spark.narrowing.pushdown import event_filter, implied_filter, read_columns
from gpu_cep_spark.schemas import arrow_schema
from tests.spark.samples import physical_plan, streams

NAN = math.nan
DECIMAL = types.decimal(6, 2)
INSTANT = types.timestamp("us", "Europe/Zurich")
LOCAL = types.timestamp("us")
COLUMNS: dict[str, tuple[types.DataType, pa.DataType, list[Any]]] = {
    "n": (types.INTEGER, pa.int64(), [None, -1, 0, 1, 2, 2**53, 2**53 + 1, -(2**63)]),
    "x": (types.FLOAT, pa.float64(), [None, NAN, -1.0, -0.0, 0.0, 0.1, 1.0, math.inf]),
    "f": (types.FLOAT, pa.float32(), [None, NAN, -1.0, -0.0, 0.0, 0.5, 1.0, math.inf]),
    "s": (types.STRING, pa.string(), [None, "", "A", "B", "a", "Ä", "a.b", "\U0001f600"]),
    "b": (types.BOOLEAN, pa.bool_(), [None, True, False]),
    "d": (DECIMAL, pa.decimal128(6, 2), [None, Decimal("-1.00"), Decimal("0.00"), Decimal("0.10"), Decimal("1.00")]),
    "day": (types.DATE, pa.date32(), [None, dt.date(1969, 12, 31), dt.date(2024, 2, 29)]),
    "at": (INSTANT, pa.timestamp("us", "Europe/Zurich"), [None, 0, 1, 1711846800000000, -11676096000000000]),
    "wall": (LOCAL, pa.timestamp("us"), [None, 0, 1, 1711846800000000, -11676096000000000]),
    "dot.ted `name`": (types.INTEGER, pa.int32(), [None, 0, 1]),
}
NAMES = list(COLUMNS)
SCHEMA = types.Schema(tuple(types.Attribute(name, COLUMNS[name][0]) for name in NAMES))
COMPARE = {name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")}


def events(rows: int, seed: int) -> pa.Table:
    rng = random.Random(seed)
    return pa.table({name: pa.array([rng.choice(values) for _ in range(rows)], of) for name, (_, of, values) in COLUMNS.items()})


def machine_value(value: Any) -> Any:
    """A cell as conditions compute with it."""
    match value:
        case dt.datetime():
            epoch = dt.datetime(1970, 1, 1, tzinfo=dt.UTC if value.tzinfo else None)
            return (value - epoch) // dt.timedelta(microseconds=1)
        case dt.date():
            return (value - dt.date(1970, 1, 1)).days
        case Decimal():
            return int(value.scaleb(2))
        case _:
            return value


def evaluate(expression: Bound, row: dict[str, Any]) -> Any:
    """IEEE 754 and three-valued logic, as in the engine."""
    match expression:
        case Constant(value=value):
            return value
        case Field(column=number):
            return row[NAMES[number]]
        case Operation(name="cast", arguments=(operand,)):
            value = evaluate(operand, row)
            return None if value is None else float(value)
        case Operation(name="is_null", arguments=(operand,)):
            return evaluate(operand, row) is None
        case Operation(name="not", arguments=(operand,)):
            value = evaluate(operand, row)
            return None if value is None else not value
        case Operation(name="and" | "or" as name, arguments=arguments):
            values = [evaluate(argument, row) for argument in arguments]
            decisive = name == "or"
            return decisive if decisive in values else (None if None in values else not decisive)
        case Operation(name="in", arguments=(operand, Constants(values=values, type=of))):
            same = tuple(Operation("eq", (operand, Constant(value, of)), types.BOOLEAN) for value in values)
            return evaluate(Operation("or", same, types.BOOLEAN), row)
        case Operation(name=name, arguments=(left, right)):
            sides = evaluate(left, row), evaluate(right, row)
            return None if None in sides else COMPARE[name](*sides)
    raise AssertionError(expression)


def field(name: str) -> Field:
    number = NAMES.index(name)
    return Field(0, number, SCHEMA.attributes[number].type)


def truth(name: str, *arguments: Bound) -> Operation:
    return Operation(name, arguments, types.BOOLEAN)


def constant(rng: random.Random, name: str) -> Constant:
    of, arrow, values = COLUMNS[name]
    value = pa.array([rng.choice(values)], arrow)[0].as_py()
    return Constant(machine_value(value), of)


def random_predicate(rng: random.Random) -> Bound:
    name = rng.choice(NAMES)
    left: Bound = field(name)
    match rng.randrange(6):
        case 0:
            return truth("is_null", left)
        case 1:
            items = [constant(rng, name) for _ in range(rng.randrange(1, 4))]
            return truth("in", left, Constants(tuple(item.value for item in items), items[0].type))
        case 2:
            twin = rng.choice([other for other in NAMES if COLUMNS[other][0] == COLUMNS[name][0]])
            return truth(rng.choice(list(COMPARE)), left, field(twin))
        case 3:
            as_float = Operation("cast", (field("n"),), types.FLOAT)
            return truth(rng.choice(list(COMPARE)), as_float, rng.choice([constant(rng, "x"), Constant(float(2**53), types.FLOAT)]))
        case _:
            return truth(rng.choice(list(COMPARE)), left, constant(rng, name))


def random_condition(rng: random.Random, depth: int) -> Bound:
    if depth == 0 or rng.random() < 0.3:
        return field("b") if rng.random() < 0.1 else random_predicate(rng)
    name = rng.choice(["and", "or", "not"])
    arity = 1 if name == "not" else rng.randrange(2, 4)
    return truth(name, *(random_condition(rng, depth - 1) for _ in range(arity)))


def kept(frame: DataFrame, expressions: list[Bound]) -> list[list[bool]]:
    """Per expression and row, whether its filter keeps the row."""
    filters = [implied_filter(expression, frame.schema) for expression in expressions]
    shown = [column.alias(str(i)) for i, column in enumerate(filters) if column is not None]
    table = frame.select(*shown).toArrow()
    everything = [True] * table.num_rows
    return [[bool(cell) for cell in table[str(i)].to_pylist()] if f is not None else everything for i, f in enumerate(filters)]


def test_filters_keep_all_that_the_properties_keep(spark: SparkSession) -> None:
    table = events(300, seed=1)
    rows = [{name: machine_value(cell) for name, cell in row.items()} for row in table.to_pylist()]
    rng = random.Random(2)
    expressions = [random_condition(rng, depth=2) for _ in range(300)]
    found = kept(spark.createDataFrame(table).coalesce(1), expressions)
    for expression, keeps in zip(expressions, found, strict=True):
        lost = [row for row, keep in zip(rows, keeps, strict=True) if not keep and evaluate(expression, row) is True]
        assert not lost, f"{expression} lost {lost[0]}"
    assert sum(map(sum, found)) < 0.8 * len(rows) * len(expressions)  # and they do filter


@pytest.mark.parametrize("name", NAMES)
def test_a_comparison_with_a_constant_is_pushed(spark: SparkSession, name: str) -> None:
    schema = spark.createDataFrame(events(1, seed=0)).schema
    value = machine_value(pa.array(COLUMNS[name][2], COLUMNS[name][1])[2].as_py())
    assert implied_filter(truth("eq", field(name), Constant(value, COLUMNS[name][0])), schema) is not None


@pytest.mark.parametrize(
    ("name", "value", "is_pushed"),
    [
        ("eq", 2.0**53, False),
        ("lt", -(2.0**53), False),
        ("eq", 2.0**53 - 1, True),
        ("lt", 0.0, True),
        ("eq", 0.0, False),
    ],
)
def test_integers_as_floats_are_compared_where_none_is_rounded(spark: SparkSession, name: str, value: float, is_pushed: bool) -> None:
    schema = spark.createDataFrame(events(1, seed=0)).schema
    rounded = Operation("cast", (field("n"),), types.FLOAT)
    assert (implied_filter(truth(name, rounded, Constant(value, types.FLOAT)), schema) is not None) == is_pushed


@pytest.mark.parametrize(("name", "is_pushed"), [("eq", False), ("le", False), ("ge", False), ("in", False), ("lt", True), ("gt", True)])
@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_nothing_that_holds_for_zero_is_asked_of_parquet(spark: SparkSession, name: str, is_pushed: bool, zero: float) -> None:
    schema = spark.createDataFrame(events(1, seed=0)).schema
    asked = Constants((zero,), types.FLOAT) if name == "in" else Constant(zero, types.FLOAT)
    assert (implied_filter(truth(name, field("x"), asked), schema) is not None) == is_pushed


def query(*conditions: Condition, window: TimeWindow | CountWindow | None, keys: tuple[int, ...] = ()) -> BoundPattern:
    return BoundPattern(
        schema=SCHEMA,
        computed=(),
        variables=(EventVariable("v", 1, 1, False), EventVariable("w", 1, 1, False)),
        branches=(Branch((0, 1), (0, 1)),),
        conditions=conditions,
        returns=(),
        window=window,
        strategy="skip_till_next_match",
        ties="strict",
        timestamp=NAMES.index("x"),
        partition_by=(),
        order_by=(),
        derived_keys=keys,
    )


def is_type(variable: int, value: str) -> Condition:
    expression = truth("eq", Field(variable, NAMES.index("s"), types.STRING), Constant(value, types.STRING))
    return Condition(expression, ConditionKind.PROPERTY, (variable,), "")


def filtered(frame: DataFrame, bound: BoundPattern) -> list[dict[str, Any]]:
    condition = event_filter(bound, frame.schema)
    assert condition is not None
    return frame.filter(condition).toArrow().to_pylist()


def test_any_variable_may_keep_an_event_and_a_bad_timestamp_always_does(spark: SparkSession) -> None:
    frame = spark.createDataFrame(events(200, seed=3)).coalesce(1)
    rows = filtered(frame, query(is_type(0, "A"), is_type(1, "B"), window=TimeWindow(1.0)))
    assert {row["s"] for row in rows if row["x"] is not None and not math.isnan(row["x"])} == {"A", "B"}
    assert {row["s"] for row in rows if row["x"] is None} == set(COLUMNS["s"][2])
    assert {row["s"] for row in rows if row["x"] is not None and math.isnan(row["x"])} == set(COLUMNS["s"][2])


def test_an_event_without_its_derived_key_is_in_no_match(spark: SparkSession) -> None:
    frame = spark.createDataFrame(events(200, seed=3)).coalesce(1)
    rows = filtered(frame, query(window=TimeWindow(1.0), keys=(NAMES.index("n"),)))
    assert all(row["n"] is not None for row in rows if row["x"] is not None and not math.isnan(row["x"]))


def test_nothing_is_pushed_under_a_count_window(spark: SparkSession) -> None:
    schema = spark.createDataFrame(events(1, seed=0)).schema
    assert event_filter(query(is_type(0, "A"), is_type(1, "B"), window=CountWindow(5)), schema) is None


def test_nothing_is_pushed_where_a_variable_takes_any_event(spark: SparkSession) -> None:
    schema = spark.createDataFrame(events(1, seed=0)).schema
    assert event_filter(query(is_type(0, "A"), window=TimeWindow(1.0)), schema) is None


@pytest.mark.surface
def test_filters_lose_nothing_in_parquet(spark: SparkSession, tmp_path: Path) -> None:
    """Row groups and dictionaries of one value each, where statistics and dictionary filters decide alone."""
    table = events(40, seed=4)
    path = tmp_path / "events.parquet"
    pq.write_table(table, path, row_group_size=1)
    frame = spark.read.parquet(str(path))
    rows = [{name: machine_value(cell) for name, cell in row.items()} for row in table.to_pylist()]
    rng = random.Random(5)
    expressions = [random_predicate(rng) for _ in range(20)]
    filters = {number: implied_filter(expression, frame.schema) for number, expression in enumerate(expressions)}
    # each is a scan of its own, in one job
    kept = [frame.filter(column).select(F.lit(number).alias("of")) for number, column in filters.items() if column is not None]
    counted = Counter(reduce(DataFrame.unionAll, kept).toArrow()["of"].to_pylist())
    assert len(kept) > 10
    for number, expression in enumerate(expressions):
        wanted = sum(evaluate(expression, row) is True for row in rows)
        assert filters[number] is None or counted[number] >= wanted, expression


@pytest.mark.parametrize(
    ("query", "pushed"),
    [
        ("PATTERN SEQ(a, b) WHERE a.type IN ('A', 'B') AND b.type = 'C' WITHIN 5", "Or(In(type, [A,B]),EqualTo(type,C))"),
        ("PATTERN SEQ(a, b) WHERE a.type LIKE 'A%' AND b.type LIKE 'A%' WITHIN 5", "StringStartsWith(type,A)"),
        ("PATTERN a WHERE a.n BETWEEN 3 AND 4 AND a.n > 1", "And(And(GreaterThanOrEqual(n,3),LessThanOrEqual(n,4)),GreaterThan(n,1))"),
        ("PATTERN SEQ(a, b) WHERE a.x > 3.5 AND b.x > 3.5 WITHIN 5", "GreaterThan(x,3.5)"),
        ("PATTERN SEQ(a) WHERE NOT (a.n = 3) AND a.user IS NULL WITHIN 5", "And(Not(EqualTo(n,3)),IsNull(user))"),
    ],
)
def test_properties_reach_the_filters_of_parquet(spark: SparkSession, tmp_path: Path, query: str, pushed: str) -> None:
    path = tmp_path / "events.parquet"
    pq.write_table(streams(20, seed=1), path)
    found = cep.gpu_match(spark.read.parquet(str(path)), query, output="count")
    plan = physical_plan(found)
    assert f"PushedFilters: [Or(IsNull(ts),{pushed})]" in plan
    assert "unread" not in plan


def schema_of_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return (pa.record_batch({"schema": [batch.schema.serialize().to_pybytes()]}) for batch in batches)


@pytest.mark.parametrize("setting", ["spark.sql.parser.quotedRegexColumnNames", "spark.sql.variable.substitute"])
def test_names_are_names_under_any_setting_of_the_parser(spark: SparkSession, setting: str) -> None:
    names = ["a.b", "axb", "gate 1", "${env:HOME}", "p($)", "`"]
    frame = spark.createDataFrame(pa.table({name: [f"{n}"] for n, name in enumerate(names)}))
    before = spark.conf.get(setting)
    spark.conf.set(setting, "true")
    try:
        read = read_columns(frame.toDF(*names), names)
        assert read.columns == names
        assert tuple(read.collect()[0]) == tuple(map(str, range(len(names))))
    finally:
        spark.conf.set(setting, before)


def test_the_batches_have_the_schema_that_was_foretold(spark: SparkSession) -> None:
    frame = spark.createDataFrame(events(3, seed=6)).drop("dot.ted `name`")
    foretold = arrow_schema(frame.schema, "Europe/Zurich")
    rows = frame.mapInArrow(schema_of_batches, "schema binary").collect()
    assert {pa.ipc.read_schema(pa.py_buffer(bytes(row.schema))) for row in rows} == {foretold}
