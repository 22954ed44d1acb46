"""Where only events near rare ones are shuffled, the matches are those among all events."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import gpu_cep as cep
from gpu_cep.analysis.options import Options
from gpu_cep.errors import PatternError, UnsupportedError
from gpu_cep.plan.settings import Settings
from gpu_cep.queries.plans import make_plan
from gpu_cep_spark.narrowing.rare_events import NearRare, keep_near
from gpu_cep_spark.schemas import arrow_schema
from tests.drawn.queries import Case, whole_language
from tests.effort import every_value
from tests.spark.conftest import CONNECT
from tests.spark.samples import as_set

pytestmark = pytest.mark.skipif(CONNECT, reason="a client of Spark Connect sees no plans, so that all events are shuffled")

WINDOW, SPAN = 8, 20_000
TEXTS = pa.dictionary(pa.int32(), pa.string())
QUERIES = {
    "next": "PATTERN SEQ(A a, B b+, R r) WHERE [k] WITHIN 8",
    "any": "PATTERN SEQ(A a, R r, B b) WHERE skip_till_any_match { a.n < b.n } WITHIN 8",
    "any order": "PATTERN SEQ(AND(A a, R r), B b+) WHERE [k] WITHIN 8",
    "robust": "PATTERN SEQ(R r, B b+, C c) WHERE robust_skip_till_next_match { b.n <> c.n } WITHIN 8",
    "contiguity": "PATTERN SEQ(e, R r, f+) WHERE strict_contiguity { e.n <> f.n } WITHIN 8",
    "contiguity of partitions": "PATTERN SEQ(R r, e+) WHERE partition_contiguity { [k] } WITHIN 8",
    "leading": "PATTERN SEQ(NOT(C c), R r, B b) WITHIN 8",
    "trailing": "PATTERN SEQ(A a, R r, NOT(C c)) WITHIN 8",
    "both": "PATTERN SEQ(AND(R r, NOT(C c)), OR(A a, B b)) WITHIN 8",
    "in each branch": "PATTERN OR(SEQ(A a, R r), SEQ(R r, B b, NOT(C c))) WITHIN 8",
    "a condition": "PATTERN SEQ(A a, r) WHERE r.type = 'R' AND a.n < 90 WITHIN 8",
    "at once": "PATTERN AND(e, R r) WHERE skip_till_any_match { e.type <> 'R' } WITHIN 0",
}


def bursts(seed: int, rare: int = 12) -> pa.Table:
    """Events of three streams: some around each of a few rare events, and many where there is none."""
    random = np.random.default_rng(seed)
    centres = random.integers(-SPAN, SPAN, rare)
    near = (centres[:, None] + random.integers(-2 * WINDOW, 2 * WINDOW, (rare, 60))).ravel()
    times = np.concatenate([centres, near, random.integers(-SPAN, SPAN, 1_200)])
    types = np.concatenate([np.full(rare, "R"), random.choice(list("ABC"), len(times) - rare)])
    order = random.permutation(len(times))
    return pa.table(
        {
            "ts": pa.array(times[order], pa.int64()),
            "type": pa.array(types[order]),
            "s": pa.array(random.integers(0, 3, len(times)), mask=random.random(len(times)) < 0.2),
            "k": pa.array(random.integers(0, 2, len(times))),
            "n": pa.array(np.arange(len(times)) % 97),
            "id": pa.array(np.arange(len(times))),
        }
    )


def assert_same(frame: DataFrame, rows: pa.Table, query: str, rare: Any = "r", **options: Any) -> pa.Table:
    """The matches among all events, which are `rows`, once they are known to be those near the variables `rare`, too."""
    expected = cep.match(rows, query, order_by="id", **options)
    found = cep.gpu_match(frame, query, order_by="id", rare=rare, **options)
    assert found.columns == expected.column_names
    assert as_set(found.toArrow()) == as_set(expected)
    return expected


# Near what events are depends on windows, keys and rare variables alone: of most the fast suite asks at once, and of "both" in slices.
TOGETHER = {name: query for name, query in QUERIES.items() if name not in ("both", "in each branch", "a condition")}


@pytest.mark.parametrize(("name", "slices"), [
    *(pytest.param(name, None, marks=pytest.mark.full if name == "both" or name in TOGETHER else ()) for name in QUERIES),
    pytest.param("any", 30, marks=pytest.mark.full),
    ("both", 30),
])  # fmt: skip
def test_events_near_rare_ones_have_all_matches(spark: SparkSession, name: str, slices: Any) -> None:
    table, query = bursts(len(name)), QUERIES[name]
    expected = cep.match(table, query, order_by="id", partition_by="s")
    frame = spark.createDataFrame(table)
    report = cep.RunReport()
    found = cep.gpu_match(frame, query, order_by="id", partition_by="s", rare="r", slices=slices, report=report)
    assert as_set(found.toArrow()) == as_set(expected)
    assert expected.num_rows
    assert report.rare == "events near those of r are shuffled: rare= names them"
    assert report.rare in str(report)
    assert report.rows["shuffled"] - report.counts.get("copies", 0) < table.num_rows / 2


@every_value(after_match=["all", "skip_past_last", "skip_to_next"], output=["matches", "events", "count"])
def test_outputs(spark: SparkSession, after_match: Any, output: Any) -> None:
    rows = bursts(3)
    frame = spark.createDataFrame(rows)
    assert assert_same(frame, rows, QUERIES["any"], partition_by="s", output=output, after_match=after_match).num_rows


def test_compressed(spark: SparkSession) -> None:
    rows, query = bursts(3), QUERIES["any"]
    found = cep.gpu_match(spark.createDataFrame(rows), query, partition_by="s", rare="r", output="compressed")
    assert cep.Compressed.from_table(found.toArrow()).count() == cep.match(rows, query, partition_by="s").num_rows > 0


def near_mask(times: np.ndarray[Any, Any], rare: np.ndarray[Any, Any], window: float) -> Any:
    """Which times are within a window of the time of a rare event."""
    return (np.abs(times[:, None] - times[None, rare]) <= window).any(axis=1)


TIMES = {
    "integer": ("ts", ""),
    "short": ("CAST(ts AS SHORT)", ""),
    "date": ("DATE_FROM_UNIX_DATE(CAST(ts AS INT))", " days"),
    "zoned": ("TIMESTAMP_SECONDS(1711846800 + 600 * ts)", "0 minutes"),
    "zoneless": ("TIMESTAMP_NTZ'2024-10-27 02:30:00' + ts * INTERVAL '10' MINUTE", "0 minutes"),
    "float": ("CAST(ts AS DOUBLE) / 10", ""),
}


@pytest.mark.parametrize("name", TIMES)
def test_times(spark: SparkSession, name: str) -> None:
    """Events within the window are kept to the tick, and most others are not."""
    time, unit = TIMES[name]
    table = bursts(5)
    frame = spark.createDataFrame(table).selectExpr(f"{time} AS ts", "type", "s", "k", "n", "id")
    kept = kept_of(frame, f"PATTERN SEQ(A a, R r) WITHIN 8{unit}")
    near = near_mask(table["ts"].to_numpy(), table["type"].to_numpy(zero_copy_only=False) == "R", 80 if name == "float" else WINDOW)
    assert set(table.filter(near)["id"].to_pylist()) <= kept
    assert len(kept) < 0.8 * table.num_rows


def kept_of(frame: DataFrame, query: str, rare: tuple[int, ...] = (1,), **roles: Any) -> set[int]:
    """The column `id` of the events that are kept."""
    schema = arrow_schema(frame.schema, "UTC")
    plan = make_plan(query, schema, Options(**roles), Settings())
    return {row.id for row in keep_near(frame, schema, [NearRare(plan, rare)]).select("id").collect()}


def test_infinite_and_missing_times(spark: SparkSession) -> None:
    """Events without a time are kept, so that they are an error; infinite times are near each other."""
    times = [math.inf, -math.inf, math.nan, None, 5.0, 5.5, 1e17, 100.0, -math.inf, 1e300]
    types = ["A", "A", "A", "A", "R", "A", "A", "A", "R", "A"]
    frame = spark.createDataFrame(pa.table({"ts": pa.array(times, pa.float64()), "type": types, "id": range(10)}))
    assert kept_of(frame, "PATTERN SEQ(A a, R r) WITHIN 0.75") == {1, 2, 3, 4, 5, 8}
    with pytest.raises(Exception, match="NULL"):
        cep.gpu_match(frame.where("id <> 2"), "PATTERN SEQ(A a, R r) WITHIN 0.75", rare="r").toArrow()


def test_integers_at_the_ends_of_their_range(spark: SparkSession) -> None:
    ends = np.iinfo(np.int64)
    times = [ends.min, ends.min + 5, -6, -1, 0, 100, ends.max - 40, ends.max - 3, ends.max]
    types = ["R", "A", "A", "A", "R", "A", "A", "A", "R"]
    frame = spark.createDataFrame(pa.table({"ts": pa.array(times, pa.int64()), "type": types, "id": range(9)}))
    assert kept_of(frame, "PATTERN SEQ(A a, R r) WITHIN 6") == {0, 1, 2, 3, 4, 7, 8}


def test_streams_are_apart(spark: SparkSession) -> None:
    """Only events of the stream of a rare event are kept: zeros are one key, NaNs are one key, and so are NULLs."""
    keys, types = [0.0, -0.0, math.nan, -math.nan, None, None, 1.0, 2.0], ["R", "A", "R", "A", "R", "A", "A", "A"]
    frame = spark.createDataFrame(pa.table({"ts": [7] * 8, "type": types, "s": pa.array(keys, pa.float64()), "id": range(8)}))
    assert kept_of(frame, "PATTERN SEQ(A a, R r) WITHIN 6", partition_by="s") == {0, 1, 2, 3, 4, 5}
    assert kept_of(frame, "PATTERN SEQ(A a, R r) WITHIN 6") == set(range(8))


def test_equal_hashes_keep_too_much_only(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpu_cep_spark.narrowing.rare_events.BITS", 64)
    rows = bursts(8)
    assert assert_same(spark.createDataFrame(rows), rows, QUERIES["next"], partition_by="s").num_rows


@pytest.mark.full
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_drawn_queries(spark: SparkSession, data: st.DataObject) -> None:
    case: Case = data.draw(whole_language())
    # Spark has no unsigned integers, and text without dictionaries
    known = [field.with_type({pa.uint8(): pa.int16(), TEXTS: pa.string()}.get(field.type, field.type)) for field in case.events.schema]
    events = case.events.cast(pa.schema(known))
    plan = make_plan(case.text, events.schema, *cep.keywords.read_keywords(dict(case.options)))
    names = [variable.name for variable in plan.query.variables]
    rare = data.draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
    frame = spark.createDataFrame(events)
    try:
        found = cep.gpu_match(frame, case.text, rare=rare, **case.options)
    except (PatternError, UnsupportedError):
        assume(False)
    assert as_set(found.toArrow()) == as_set(cep.gpu_match(frame, case.text, rare=None, **case.options).toArrow())


@pytest.mark.parametrize(
    ("query", "rare", "error", "message"),
    [
        (QUERIES["next"], "rr", PatternError, "rare='rr' is no variable of the pattern.*did you mean 'r'"),
        ("PATTERN SEQ(A a, R r) WITHIN 8", "halt", PatternError, "rare='halt' is no variable of the pattern.*there are a, r"),
        ("PATTERN SEQ(A a, R r) WITHIN 8", 5, PatternError, "rare=5 names no variables.*expected: a variable's name"),
        ("PATTERN SEQ(A a, R r) WITHIN 8", [], PatternError, "names no variables"),
        ("PATTERN SEQ(A a, R r) WITHIN 8", b"r", PatternError, "names no variables"),
        ("PATTERN SEQ(A a, OR(R r, B b)) WITHIN 8", ["r"], PatternError, "rare=r is not in every match: one may bind a, b alone"),
        ("PATTERN SEQ(R r, NOT(C c), B b) WITHIN 8", "c", PatternError, "rare=c is not in every match: one may bind r, b alone"),
        ("PATTERN SEQ(e, R r) WITHIN 8", "e", UnsupportedError, "no condition compares e with constants"),
        ("PATTERN SEQ(A a, R r) WITHIN 8 EVENTS", "r", UnsupportedError, "the query has no window of time.*rare=None shuffles all"),
        ("PATTERN SEQ(A a, R r)", "r", UnsupportedError, "the query has no window of time"),
        ("DEFINE S AS n > 5, T AS n < 3 PATTERN S before T WITHIN 8", "S", UnsupportedError, "situations are made of all events"),
        ("MATCH_RECOGNIZE (ORDER BY ts PATTERN (r) DEFINE r AS n > 5)", "r", UnsupportedError, "rare= is not supported for MATCH_"),
    ],
)
def test_what_cannot_be_left_out_is_an_error(spark: SparkSession, query: str, rare: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=f"(?s){message}"):
        cep.gpu_match(spark.createDataFrame(bursts(1)), query, rare=rare)


def test_sources_that_may_differ_when_read_again(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.createDataFrame(bursts(1))
    spread, joined = frame.repartition(2), frame.join(spark.range(97).toDF("n"), "n")
    reasons = {"may give other rows when it is read again": spread.where(F.rand() < 0.5), "with GlobalLimit in its plan": spread.limit(300)}
    for reason, each in reasons.items():
        with pytest.raises(UnsupportedError, match=reason):
            cep.gpu_match(each, QUERIES["next"], rare="r")
    with pytest.raises(UnsupportedError, match="may give other rows when it is read again"):
        cep.gpu_match(spread.where(F.rand() < 0.5).cache().where("n > 1"), QUERIES["next"], rare="r")
    rows = joined.toArrow()
    for each, own in ((joined, rows), (joined.cache().where("n > 1"), rows.filter(pc.field("n") > 1))):
        assert assert_same(each, own, QUERIES["next"], partition_by="s").num_rows


def test_timeouts_are_of_all_events(spark: SparkSession) -> None:
    rows, query = bursts(4), "PATTERN SEQ(A a, R r) WITHIN 8"
    frame = spark.createDataFrame(rows)
    assert assert_same(frame, rows, query, rare="auto", partition_by="s", timeouts=True).num_rows
    with pytest.raises(UnsupportedError, match="timeouts are of starts without a rare event"):
        cep.gpu_match(frame, query, rare="r", timeouts=True)


LONGER = "PATTERN SEQ(A a, R r, B b) WITHIN 30"


@pytest.mark.parametrize("options", [{"partition_by": "s"}, {"partition_by": "s", "output": "count"}, {}], ids=str)
def test_many_patterns_have_all_matches(spark: SparkSession, options: Any) -> None:
    events = bursts(9, rare=40)
    rules = {name: f"{query} RETURN r.id AS id" for name, query in (TOGETHER | {"longer": LONGER}).items()}
    if "output" in options:
        rules = TOGETHER
    found = cep.gpu_match_all(spark.createDataFrame(events), rules, order_by="id", rare="r", **options)
    expected = cep.match_all(events, rules, order_by="id", **options)
    assert as_set(found.toArrow()) == as_set(expected)
    assert set(expected["pattern"].to_pylist()) == set(rules)


def test_patterns_of_other_times_and_keys_have_all_matches(spark: SparkSession) -> None:
    events = bursts(9, rare=40)
    times = pc.if_else(pc.equal(pc.bit_wise_and(events["id"], 1), 0), pa.scalar(None, pa.int64()), pc.multiply(events["ts"], 2))
    events = events.append_column("other", times)
    rules = {
        "longer": LONGER,
        "other times": cep.Rule("PATTERN SEQ(A a, R r) WITHIN 3", {"timestamp": "other", "nulls": "drop"}),
        "other keys": cep.Rule("PATTERN SEQ(A a, R r, NOT(C c)) WITHIN 8", {"partition_by": ["s", "k"]}),
    }
    found = cep.gpu_match_all(spark.createDataFrame(events), rules, partition_by="s", order_by="id", rare="r", split=True)
    for name, own in cep.match_all(events, rules, partition_by="s", order_by="id", split=True).items():
        assert as_set(found[name].toArrow()) == as_set(own) != []


def test_many_patterns_share_what_is_near(spark: SparkSession) -> None:
    """Of plans with the same times and keys, events within the longest window are kept; of others, those within their own."""
    table = bursts(5, rare=3)
    frame = spark.createDataFrame(table)
    schema = arrow_schema(frame.schema, "UTC")
    times, rare = table["ts"].to_numpy(), table["type"].to_numpy(zero_copy_only=False) == "R"
    for windows in ((8, 200), (200, 8)):
        plans = [make_plan(f"PATTERN SEQ(A a, R r) WITHIN {window}", schema, Options(), Settings()) for window in windows]
        kept = {row.id for row in keep_near(frame, schema, [NearRare(plan, (1,)) for plan in plans]).select("id").collect()}
        assert set(table.filter(near_mask(times, rare, max(windows)))["id"].to_pylist()) <= kept
        assert len(kept) < table.num_rows / 2
    # the plans of other keys have a bitmap of their own
    keyed = make_plan("PATTERN SEQ(C c, R r) WITHIN 8", schema, Options(partition_by="s"), Settings())
    both = {row.id for row in keep_near(frame, schema, [NearRare(plans[0], (1,)), NearRare(keyed, (1,))]).select("id").collect()}
    assert both >= kept


@pytest.mark.parametrize(
    ("rules", "rare", "error", "message"),
    [
        ({"x": QUERIES["next"], "y": "PATTERN SEQ(A a, B b) WITHIN 8"}, "r", PatternError, "pattern 'y'.*rare=r is not in every match"),
        ({"x": QUERIES["next"]}, ["r", "rr"], PatternError, "rare='rr' is no variable of the patterns.*did you mean 'r'"),
        ({"x": "PATTERN SEQ(A a, R r) WITHIN 8"}, "halt", PatternError, "rare='halt' is no variable of the patterns.*there are a, r"),
        ({"x": QUERIES["next"]}, "auto", UnsupportedError, "rare='auto' is not supported for many patterns.*name variables"),
        (
            {"x": QUERIES["next"], "y": "PATTERN SEQ(A a, R r)"},
            "r",
            UnsupportedError,
            "pattern 'y'.*rare=r is not possible: the query has no",
        ),
        ({"x": QUERIES["next"]}, 5, PatternError, "rare=5 names no variables"),
    ],
)
def test_what_cannot_be_left_out_of_a_set_is_an_error(spark: SparkSession, rules: Any, rare: Any, error: Any, message: str) -> None:
    frame = spark.createDataFrame(bursts(1))
    for asked in (cep.gpu_match_all, cep.explain_all):
        with pytest.raises(error, match=f"(?s){message}"):
            asked(frame, rules, partition_by="s", output="count", rare=rare)


def test_explaining_many_patterns_says_near_what_events_are_shuffled(spark: SparkSession) -> None:
    frame = spark.createDataFrame(bursts(4))
    rules = {
        "next": cep.Rule(QUERIES["next"], {"partition_by": "s"}),
        "other": cep.Rule("PATTERN SEQ(A a, C c) WITHIN 8", {"partition_by": "s"}),
        "alone": cep.Rule(QUERIES["next"], {"after_match": "skip_past_last"}),
        "wrong": "PATTERN SEQ(A a",
    }
    told = cep.explain_all(frame, rules, rare=["c", "r"])
    assert told.rare == {"next": ("r",), "other": ("c",), "alone": ("r",)}
    assert "; only events near those of r or c: next, other" in str(told)
    assert "alone: alone (skip_past_last chooses among the matches of all slices; only events near those of r)" in str(told)
    assert "error: line 1, column 16: pattern 'wrong'" in str(told)
    assert not (everything := cep.explain_all(frame, rules)).rare
    assert "only events near" not in str(everything)
    assert not cep.explain_all(frame, {"wrong": "PATTERN SEQ(A a"}, rare="r").rare
