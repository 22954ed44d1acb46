"""The engine against the oracle: random queries over random tables, the whole language under all strategies."""

from __future__ import annotations

import math
from collections import Counter
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gpu_cep import UnsupportedError, explain
from gpu_cep.engine.events.batches import cut_batches
from gpu_cep.lang.ast import STRATEGIES
from gpu_cep.plan.algorithms import algorithm_named
from gpu_cep.plan.settings import EVENT_ALGORITHMS, PRUNING_STEPS
from tests.conformance.expectation import answered, expected
from tests.drawn.queries import AFTER_MATCH, Case, cases, trend_cases, whole_language
from tests.effort import examples
from tests.results import matches_of

# What most faults show in is tried more often.
thoroughly = examples(200, 1_000)
LANGUAGE = whole_language()
TRENDS = trend_cases(after_match=AFTER_MATCH)
SMALL_BATCHES = st.integers(1, 5)
PRUNING = st.one_of(st.booleans(), st.sets(st.sampled_from(PRUNING_STEPS)).map(sorted))


def agrees(case: Case) -> None:
    """Holds the engine's matches, their order and their number to the oracle's."""
    wanted = expected(case)
    assert matches_of(answered(case, output="indices")) == wanted
    assert sum(row["count"] for row in answered(case, output="count").to_pylist()) == len(wanted)


@thoroughly
@given(LANGUAGE)
def test_same_matches_in_the_same_order(case):
    agrees(case)


@thoroughly
@given(TRENDS)
def test_same_matches_where_strategies_differ(case):
    agrees(case)


@given(cases())
def test_same_matches_of_sequences_and_sets(case):
    agrees(case)


@given(whole_language(max_size=40, strategies=tuple(strategy for strategy in STRATEGIES if strategy != "skip_till_any_match")))
def test_same_matches_in_longer_streams(case):
    agrees(case)


@given(st.one_of(LANGUAGE, TRENDS), PRUNING)
def test_pruning_changes_nothing(case, prune):
    wanted = expected(case)
    assert matches_of(answered(case, output="indices", prune=prune)) == wanted


@given(st.one_of(whole_language(max_size=14), TRENDS), SMALL_BATCHES, PRUNING)
def test_batches_change_nothing(case, size, prune):
    wanted = expected(case)
    with patch("gpu_cep.engine.run.cut_batches", partial(cut_batches, size=size)):
        assert matches_of(answered(case, output="indices", prune=prune)) == wanted
        assert sum(row["count"] for row in answered(case, output="count", prune=prune).to_pylist()) == len(wanted)


@given(whole_language(tied=False), st.data())
def test_the_order_of_rows_means_nothing_without_ties(case, data):
    expected(case)
    order = data.draw(st.permutations(range(case.events.num_rows)))
    shuffled = Case(case.text, case.events.take(pa.array(order, pa.int64())), case.options)
    matches = matches_of(answered(shuffled, output="indices"))
    renumbered = [{name: tuple(order[row] for row in rows) for name, rows in match.items()} for match in matches]
    assert renumbered == matches_of(answered(case, output="indices"))


@given(LANGUAGE)
def test_count_counts_the_matches_of_each_stream(case):
    keys = case.options.get("partition_by", [])
    rows = case.events.to_pylist()
    wanted = Counter(key_of(rows[max(match.values())[0]], keys) for match in expected(case))
    counts = answered(case, output="count").to_pylist()
    assert {key_of(row, keys): row["count"] for row in counts if row["count"]} == dict(wanted)


SINGLES = cases(max_size=14, strategies=("skip_till_any_match",), quantifiers=("",))
QUERIES = st.one_of(SINGLES, whole_language(max_size=14), TRENDS)


def applicable(case: Case) -> list[str]:
    """The algorithms that run the case's query."""
    try:
        planned = explain(case.events, case.text, **case.options).plan
    except UnsupportedError:
        assume(False)
        raise
    return [name for name in EVENT_ALGORITHMS if name not in ("auto", "brute_force") and algorithm_named(name).runs(planned.query)]


@thoroughly
@given(QUERIES, SMALL_BATCHES, PRUNING, st.data())
def test_algorithms_agree_whatever_the_batches(case, size, prune, data):
    wanted, algorithm = expected(case), data.draw(st.sampled_from(applicable(case)))
    with patch("gpu_cep.engine.run.cut_batches", partial(cut_batches, size=size)):
        assert matches_of(answered(case, output="indices", algorithm=algorithm, prune=prune)) == wanted


SELECTED = ("skip_past_last", "skip_to_next")
SELECTING = st.one_of(whole_language(max_size=14, after_match=SELECTED), trend_cases(after_match=SELECTED))


@given(SELECTING, st.sampled_from((2, 1_000)), st.sampled_from((True, ("overlap",), ("filter", "chain"))), st.data())
def test_matches_that_are_dropped_need_not_be_found(case, size, prune, data):
    wanted, algorithm = expected(case), data.draw(st.sampled_from(("auto", *applicable(case))))
    with patch("gpu_cep.engine.run.cut_batches", partial(cut_batches, size=size)):
        assert matches_of(answered(case, output="indices", algorithm=algorithm, prune=prune)) == wanted


@given(QUERIES, SMALL_BATCHES, st.data())
def test_algorithms_count_alike_whatever_the_batches(case, size, data):
    expected(case)
    algorithm, wanted = data.draw(st.sampled_from(applicable(case))), answered(case, output="count", algorithm="brute_force")
    with patch("gpu_cep.engine.run.cut_batches", partial(cut_batches, size=size)):
        counted = answered(case, output="count", algorithm=algorithm)
    assert repr(counted.to_pylist()) == repr(wanted.to_pylist())  # NaN equals NaN


BRANCHES = cases(
    max_size=12,
    strategies=("skip_till_any_match",),
    quantifiers=("",),
    operators=("SEQ", "AND", "OR", "NOT", "?", "shared"),
    iterations=True,
    after_match=AFTER_MATCH,
)


@given(BRANCHES, SMALL_BATCHES, PRUNING)
def test_joins_find_the_matches_of_all_branches(case, size, prune):
    wanted = expected(case)
    with patch("gpu_cep.engine.run.cut_batches", partial(cut_batches, size=size)):
        assert matches_of(answered(case, output="indices", algorithm="join_tree", prune=prune)) == wanted
        counted = answered(case, output="count", algorithm="join_tree", prune=prune)
    assert sum(row["count"] for row in counted.to_pylist()) == len(wanted)


ALL_MATCHES = whole_language(max_size=12, strategies=("skip_till_any_match",))


@thoroughly
@given(ALL_MATCHES, SMALL_BATCHES, PRUNING, st.sampled_from(("lazy_chain", "lazy_tree")))
def test_lazy_automata_find_all_matches(case, size, prune, algorithm):
    wanted = expected(case)
    with patch("gpu_cep.engine.run.cut_batches", partial(cut_batches, size=size)):
        assert matches_of(answered(case, output="indices", algorithm=algorithm, prune=prune)) == wanted
        counted = answered(case, output="count", algorithm=algorithm, prune=prune)
    assert sum(row["count"] for row in counted.to_pylist()) == len(wanted)


SPECIAL = pa.table(
    {
        "ts": [1, 2, 3, 4, 5, 6],
        "type": list("ABCABB"),
        "k": [1, 1, 1, 1, 2, 1],
        "x": [1, 2**60, None, 2**60, 1, 5],
        "y": [math.inf, 1.0, math.nan, -0.0, 0.0, 1e308],
        "u": [timedelta(1)] * 6,
        "l": pa.array([[1.0, 2.0]] * 6, pa.list_(pa.float64(), 2)),
    }
)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    "text",
    [
        "PATTERN A a WHERE 1 = 1",
        "PATTERN A a WHERE NULL",
        "PATTERN SEQ(a, b) WHERE a.type = 'A' OR 1 > 0",
        "PATTERN SEQ(a, b) WHERE a.x < NULL + b.y OR a.y > 2.0 * b.x - NULL",
        "PATTERN SEQ(a, b) WHERE a.x < NULL + b.y",
        "PATTERN SEQ(a, b) WHERE NOT (b.type = 'B' AND DATE '2024-01-01' < DATE '2024-01-02')",
        "PATTERN SEQ(a, b) WHERE a.type = b.type OR a.type = 'B' AND 1.5 BETWEEN 1 AND 2",
        "PATTERN SEQ(A a, B b) WHERE TRUE AND a.x < b.x",
        "PATTERN SEQ(A a, B b+) WHERE b[i-1].k = a.k",
        "PATTERN SEQ(A a, B b+) WHERE b[i-1].k = a.k AND a.k = b.k",
        "PATTERN SEQ(a, b+) WHERE least(a.y, b.y) < 1",
        "PATTERN SEQ(a, b+) WHERE greatest(a.y, b.y) > 1",
        "PATTERN SEQ(a, b) WHERE a.y * b.y > 0",
        "PATTERN SEQ(a, b) WHERE a.y % b.y >= 0",
        "PATTERN SEQ(a, b) WHERE nullif(a.y, b.y) IS NULL",
        "PATTERN SEQ(a, b) WHERE round(a.y) = b.y",
        "PATTERN SEQ(a, b) WHERE a.x IN (1, NULL, b.x)",
        "PATTERN SEQ(a, b) WHERE a.x < 1152921504606846977.0",
        "PATTERN SEQ(a, b) WHERE a.x = 1152921504606846976e0",
        "PATTERN SEQ(a, b) WHERE [y]",
        "PATTERN a+ WHERE [y]",
        "PATTERN a+ WHERE [x]",
        "PATTERN SEQ(a, b) WITHIN 1.5",
        "PARTITION BY y PATTERN SEQ(A a, B b)",
        "PATTERN b+ WHERE first(b.x) <= b.y",
        "PATTERN SEQ(A a, B b+) WHERE sum(b.y) > 1",
        "PATTERN SEQ(A a, B b+) WHERE max(b.y) > 1 OR avg(b.x) < 9",
        "PATTERN SEQ(a, b+) WHERE min(b[..i-1].y) <= b[i].y",
        "PATTERN SEQ(a, b+) WHERE [y] AND count(b.x) = 1",
        "PATTERN SEQ(A a, NOT(B b), c) WHERE b.x < c.x",
        "PATTERN SEQ(NOT(A a), B b) WHERE a.y > b.y WITHIN 3",
        "PATTERN SEQ(A a?, OR(B b, C c), NOT(B d)) WHERE [k] WITHIN 2.5",
        # a branch without c drops what speaks of it, whatever c is
        "PATTERN SEQ(A a, OR(B b, C c)) WHERE count(c) > 1",
        "PATTERN SEQ(A a, OR(B b, C c)) WHERE count(c) = count(b) + 1",
        "PATTERN SEQ(A a, OR(B b, C c)) WHERE count(c) = b.x",
        "PATTERN SEQ(A a, OR(B b, C c)) WHERE c.type LIKE NULL",
        "PATTERN SEQ(A a, OR(B b, C c)) WHERE NULL IN (1, c.x)",
        "PATTERN SEQ(A a, OR(B b, C c)) WHERE NULL - c.u < 1 seconds",
        "PATTERN SEQ(A a, OR(B b, C c)) WHERE NOT regexp_like(c.type, NULL)",
        "PATTERN SEQ(A a, OR(B b, C c)) WHERE coalesce(c.u + NULL, c.type) = 'C'",
        "PATTERN SEQ(A a, OR(B b, C c)) WHERE corr(NULL, c.l) > 0",
        "PATTERN SEQ(A a, NOT(B b), C c?) WHERE count(b) > 1 AND count(c) = 1 WITHIN 5",
    ],
)
def test_corners(text, strategy):
    case = Case(text, SPECIAL, {"strategy": strategy})
    assert matches_of(answered(case, output="indices")) == expected(case)


@pytest.mark.parametrize("zone", [None, "UTC"])
@pytest.mark.parametrize("negation", ["", "NOT "])
@pytest.mark.parametrize(
    "condition",
    [
        "a.t < {late}", "a.t >= {late}", "{late} > a.t", "a.t <> {late}", "a.t = {early}", "a.t > {early}", "{early} >= a.t",
        "a.t BETWEEN {early} AND {late}", "a.t IN ({late}, {some})", "a.t IN ({late}, {early})", "a.t IN ({late}, NULL)",
        "(a.t < {late}) IS NULL", "a.t + 1 days <= {late} AND b.t < {late}", "coalesce(a.t, b.t) < {late}",
    ],
)  # fmt: skip
def test_years_that_a_fine_unit_cannot_tell_compare_by_value(condition, negation, zone):
    some = datetime(2024, 1, 1, tzinfo=None if zone is None else UTC)
    events = pa.table({"ts": [1, 2, 3], "t": pa.array([some, None, some + timedelta(1)], pa.timestamp("ns", zone))})
    told = {"late": "9999-12-31 00:00:00", "early": "0001-01-01 00:00:00", "some": "2024-01-01 00:00:00"}
    named = {name: f"TIMESTAMP '{text}{'' if zone is None else 'Z'}'" for name, text in told.items()}
    case = Case(f"PATTERN SEQ(a, b) WHERE {negation}({condition.format(**named)})", events, {"strategy": "skip_till_any_match"})
    assert matches_of(answered(case, output="indices")) == expected(case)


@pytest.mark.parametrize("negation", ["", "NOT "])
@pytest.mark.parametrize(
    "condition",
    [
        "b.t - a.t < {far}", "{far} <= b.t - a.t", "a.d > {far}", "a.d <> -{far}", "a.d >= -{far}", "a.d IN ({far}, 1 day)",
        "a.d BETWEEN -{far} AND {far}", "(a.d = {far}) IS NULL",
    ],
)  # fmt: skip
def test_durations_that_a_fine_unit_cannot_tell_compare_by_value(condition, negation):
    day = timedelta(1)
    times, lengths = [datetime(2024, 1, 1), None, datetime(2024, 1, 2)], [day, None, -day]
    events = pa.table({"ts": [1, 2, 3], "t": pa.array(times, pa.timestamp("ns")), "d": pa.array(lengths, pa.duration("ns"))})
    case = Case(f"PATTERN SEQ(a, b) WHERE {negation}({condition.format(far='200000 days')})", events, {"strategy": "skip_till_any_match"})
    assert matches_of(answered(case, output="indices")) == expected(case)


@pytest.mark.parametrize("negation", ["", "NOT "])
@pytest.mark.parametrize(
    "condition",
    [
        "a.m < 0.125", "0.125 <= a.m", "a.m <= 1.500", "a.m = 1.500", "a.m = 0.125", "a.m <> 0.125", "a.m > -0.001",
        "a.m IN (1.500, 0.125)", "a.m IN (0.125, 0.1250, NULL)", "a.m BETWEEN -0.001 AND 1.501", "(a.m = 0.125) IS NULL",
        "a.t < {shortly}", "a.t >= {shortly}", "{shortly} > a.t", "a.t = {shortly}", "a.t IN ({shortly}, {then})", "a.t <> {then}",
        "a.d > 1500 ms", "a.d <= -1500 ms", "a.d = 1500 ms", "a.d IN (1500 ms, 1 second, 1000 ms)", "a.day < {shortly}",
        "a.day <> {shortly}",
    ],
)  # fmt: skip
def test_values_of_a_coarse_unit_compare_with_constants_of_a_finer_one(condition, negation):
    events = pa.table(
        {
            "ts": range(4),
            "m": pa.array([Decimal("9999999999999999.99"), None, Decimal("1.50"), Decimal("-0.01")], pa.decimal128(18, 2)),
            "t": pa.array([2**60, None, 1_704_067_200, 1_704_067_201], pa.timestamp("s")),
            "d": pa.array([2**62, None, 1, -(2**62)], pa.duration("s")),
            "day": pa.array([2**31 - 1, None, 19_723, 19_724], pa.date32()),
        }
    )
    told = {"shortly": "TIMESTAMP '2024-01-01 00:00:00.5'", "then": "TIMESTAMP '2024-01-01 00:00:00.000'"}
    case = Case(f"PATTERN SEQ(a, b) WHERE {negation}({condition.format(**told)})", events, {"strategy": "skip_till_any_match"})
    assert matches_of(answered(case, output="indices")) == expected(case)


@pytest.mark.parametrize("operator", ["=", "<>", "<", "<=", ">", ">="])
@pytest.mark.parametrize(
    "operands", [("a.s", "b.ns"), ("b.ns", "a.s"), ("a.day", "b.us"), ("a.us", "b.ns"), ("a.long", "b.short"), ("a.day", "b.ms")]
)
def test_columns_of_different_units_compare_by_value(operator, operands):
    far, most = 253_402_300_799, (1 << 63) - 1
    nanoseconds = [most, -most - 1, None, most // 10**9 * 10**9, 0, 10**9]
    events = pa.table(
        {
            "ts": range(6),
            "s": pa.array([far, -far, None, most // 10**9, most // 10**9 + 1, 1], pa.timestamp("s")),
            "ms": pa.array([far * 1000, -far * 1000, 0, None, 86_400_000, 1], pa.timestamp("ms")),
            "us": pa.array([most, -most, most // 1000, None, far * 10**6, 10**6], pa.timestamp("us")),
            "ns": pa.array(nanoseconds, pa.timestamp("ns")),
            "day": pa.array([(1 << 31) - 1, -(1 << 31), None, 2_932_896, 106_751_991, 1], pa.date32()),
            "long": pa.array([most, -most, None, most // 10**9, 0, 1], pa.duration("s")),
            "short": pa.array(nanoseconds, pa.duration("ns")),
        }
    )
    case = Case(f"PATTERN SEQ(a, b) WHERE {operator.join(operands)}", events, {"strategy": "skip_till_any_match"})
    assert matches_of(answered(case, output="indices")) == expected(case)
    known = Case(f"PATTERN SEQ(a, b) WHERE ({operator.join(operands)}) IS NULL", events, {"strategy": "skip_till_any_match"})
    assert matches_of(answered(known, output="indices")) == expected(known)


def test_a_backslash_makes_a_wildcard_plain():
    texts = ["%", "a%", "\\%", "\\", "_", "x", "a\nb", "a_b", "axb", "\\x", ""]
    events = pa.table({"ts": range(len(texts)), "s": texts})
    for pattern in ("\\%", "%\\%%", "\\\\%", "a\\_b", "a_b", "%\\\\", "%\\", "\\x", "\\\\x", "\\\\x%", "%\\n%", "_", "%b"):
        case = Case(f"PATTERN a WHERE a.s LIKE '{pattern}'", events)
        assert matches_of(answered(case, output="indices")) == expected(case), pattern


def test_order_by_orders_the_results_across_derived_keys():
    """The engine splits the stream by k; the results still stand in the order of the whole stream, which x decides."""
    events = pa.table({"ts": [0, 0, 0, 1, 1], "type": list("AAABB"), "k": [1, 2, 1, 1, 2], "x": [3, 2, 1, 0, 0]})
    case = Case("PATTERN SEQ(A a, B b) WHERE a.k = b.k", events, {"order_by": ["x"]})
    assert matches_of(answered(case, output="indices")) == [{"a": (2,), "b": (3,)}, {"a": (1,), "b": (4,)}, {"a": (0,), "b": (3,)}]
    assert expected(case) == matches_of(answered(case, output="indices"))


@given(whole_language(max_size=7), st.sampled_from(("matches", "events", "indices", "count")))
def test_brute_force_answers_in_every_form(case, output):
    """``algorithm="brute_force"`` gives the table that the engine gives, type by type and row by row."""
    expected(case)
    wanted, answer = answered(case, output=output, algorithm="brute_force"), answered(case, output=output)
    assert answer.schema == wanted.schema
    assert repr(answer.to_pylist()) == repr(wanted.to_pylist())  # NaN equals NaN


def key_of(row: dict[str, Any], keys: list[str]) -> tuple[Any, ...]:
    """The stream key of a row; NaN stands for itself."""
    return tuple("NaN" if isinstance(row[key], float) and math.isnan(row[key]) else row[key] for key in keys)
