"""limit_per_start= and order_matches_by= against the oracle, and against all matches cut one by one."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_cep
from gpu_cep.analysis.ranking import read_ranking
from gpu_cep.engine.accounting import match_budget
from gpu_cep.engine.matchers.automaton import ses_automaton
from gpu_cep.lang.ast import STRATEGIES
from gpu_cep.lang.parser import parse
from gpu_cep.oracle import events as oracle
from gpu_cep.oracle.options import EventOptions
from gpu_cep.plan import settings
from tests.conformance.expectation import LIMIT, answered
from tests.conformance.test_conformance import applicable
from tests.drawn.queries import Case
from tests.effort import examples
from tests.results import matches_of

PATTERNS = ("SEQ(A a, B b+)", "SEQ(A a, B b+, A c)", "SEQ(A a, B b, A c?)", "SEQ(A a, OR(B b, SEQ(B b, A c)))", "SEQ(A a, AND(B b+, A c))",
            "SEQ(A a, NOT(X n), B b+)")  # fmt: skip
RANKINGS = (None, "sum(b.x) desc", "count(b)", "a.x + max(b.y) desc", "last(b.y) ASC", "min(b.y)", "c.x desc", "first(b.type)",
            "last(b.ts) desc", "last(b.ts)", "c.t - 1 seconds desc", "c.ts - a.ts", "last(b.ts) - a.ts", "a.x desc",
            "first(c.x)", "last(c.y) desc")  # fmt: skip


@st.composite
def cases(draw: st.DrawFn) -> Case:
    pattern, order = draw(st.sampled_from(PATTERNS)), draw(st.sampled_from(RANKINGS))
    order = order if order is None or "c." not in order or " c" in pattern else None
    size = draw(st.integers(0, 8))
    letters = draw(st.lists(st.sampled_from("AABBBX"), min_size=size, max_size=size))
    steps = draw(st.lists(st.sampled_from((0, 1, 1)), min_size=size, max_size=size))
    ints = st.lists(st.sampled_from((0, 1, 2, None)), min_size=size, max_size=size)
    floats = st.lists(st.sampled_from((0.0, 1.5, -0.0, math.nan, None)), min_size=size, max_size=size)
    events = pa.table({
        "ts": pa.array(draw(st.permutations([sum(steps[: place + 1]) for place in range(size)])), pa.int64()),
        "type": pa.array(letters, pa.string()), "k": pa.array(draw(ints), pa.int64()),
        "x": pa.array(draw(ints), pa.int64()), "y": pa.array(draw(floats), pa.float64()), "t": pa.array(draw(ints), pa.timestamp("s")),
    })  # fmt: skip
    options: dict[str, Any] = {
        "strategy": draw(st.sampled_from(("skip_till_any_match", "skip_till_any_match", *STRATEGIES))),
        "ties": draw(st.sampled_from(("strict", "position"))), "partition_by": draw(st.sampled_from((None, "k"))),
        "limit_per_start": draw(st.sampled_from((1, 1, 2, 3))), "order_matches_by": order,
    }  # fmt: skip
    condition = draw(st.sampled_from(("", " WHERE [k]", " WHERE a.x <= b.x")))
    return Case(f"PATTERN {pattern}{condition} WITHIN {draw(st.sampled_from((3, 9)))}", events, options)


def expected(case: Case) -> list[oracle.Match]:
    options = dict(case.options)
    order = options.pop("order_matches_by")
    asked = EventOptions(**options, ranking=order and read_ranking(order, "abcn"))
    return oracle.matches(parse(case.text), case.events, asked, limit=20 * LIMIT)


@examples(300, 3_000)
@given(cases(), st.data())
def test_same_matches_as_the_oracle(case, data):
    plain = Case(case.text, case.events, {name: case.options[name] for name in ("strategy", "ties", "partition_by")})
    algorithm = data.draw(st.sampled_from(["auto", *applicable(plain)]))
    assert matches_of(answered(case, algorithm=algorithm, output="indices")) == expected(case)


@examples(100, 1_000)
@given(cases(), st.integers(1, 3), st.sampled_from(("ses_automaton", "backtracking")))
def test_matches_that_are_cut_while_others_are_found_agree(case, most, algorithm):
    with patch.object(ses_automaton, "_LARGEST_OUTPUT", most), patch.object(settings, "MOST_HELD", 2):
        assert matches_of(answered(case, algorithm=algorithm, output="indices")) == expected(case)


@examples(60, 500)
@given(cases())
def test_same_numbers_and_the_same_graph(case):
    wanted = expected(case)
    assert sum(row["count"] for row in answered(case, output="count").to_pylist()) == len(wanted)
    assert answered(case, output="compressed").count() == len(wanted)


@pytest.mark.parametrize("limit", [1, 2, 3])
@pytest.mark.parametrize("pattern", [*(f"SEQ(A a, B b{some}, C c{other})" for some in "?*" for other in ("", "?")), "OR(A a, A b, A c)"])
def test_a_first_event_of_several_branches_counts_once(pattern, limit):
    table, query = pa.table({"ts": range(9), "type": list("ABCAACBAC")}), f"PATTERN {pattern} WITHIN 5"
    counted = gpu_cep.match(table, query, limit_per_start=limit, output="count")["count"].to_pylist()
    assert counted == [len(found(table, query, limit_per_start=limit, algorithm="brute_force"))]
    assert counted == [len(found(table, query, limit_per_start=limit))]


@pytest.mark.parametrize("algorithm", [None, "ses_automaton", "backtracking", "nfab", "lazy_chain", "lazy_tree", "join_tree"])
@pytest.mark.parametrize("pattern", ["SEQ(a, NOT(A n), A b)", "SEQ(a, A b)", "SEQ(A a, B b, C c)", "AND(A a, B b)", "SEQ(a, FIRST(A b))"])
def test_each_first_event_counts_by_itself_whatever_counts(pattern, algorithm):
    table, chosen = pa.table({"ts": range(12), "type": list("ABXABCAABCAB")}), {} if algorithm is None else {"algorithm": algorithm}
    query = f"PATTERN {pattern} WHERE skip_till_any_match {{ }} WITHIN 5"
    for limit in (1, 2, 3):
        counted = gpu_cep.match(table, query, limit_per_start=limit, output="count", **chosen)["count"].to_pylist()
        assert counted == [len(found(table, query, limit_per_start=limit, algorithm="brute_force"))]


EVENTS = pa.table({"ts": range(7), "type": list("ABBABBB"), "x": [0, 3, 1, 0, 5, 5, 2], "k": list("uuvvuvu")})
QUERY = "PATTERN SEQ(A a, B b+) WHERE skip_till_any_match { } WITHIN 9"


def found(events: pa.Table = EVENTS, query: str = QUERY, **options: Any) -> list[dict[str, Any]]:
    return gpu_cep.match(events, query, output="indices", **options).to_pylist()


@pytest.mark.parametrize("limit", [1, 2, 5, 1_000])
def test_the_first_in_result_order_are_kept(limit):
    every = found()
    kept = [row for number, row in enumerate(every) if sum(row["a"] == other["a"] for other in every[:number]) < limit]
    assert found(limit_per_start=limit) == kept
    assert (kept == every) == (limit == 1_000)


def test_one_match_of_each_start_is_skip_to_next():
    assert found(limit_per_start=1) == found(after_match="skip_to_next")


def test_the_best_are_kept_in_the_order_of_results():
    rows = [(row["a"], row["b"]) for row in found(limit_per_start=2, order_matches_by="sum(b.x) desc")]
    assert rows == [(0, [1, 2, 4, 5, 6]), (0, [1, 4, 5, 6]), (3, [4, 5]), (3, [4, 5, 6])]


@pytest.mark.parametrize("algorithm", ["ses_automaton", "backtracking", "nfab", "lazy_chain"])
def test_the_best_of_each_start_is_found_by_searches_that_skip(algorithm):
    rows = found(limit_per_start=1, order_matches_by="last(b.ts) desc", algorithm=algorithm)
    assert rows == [{"a": 0, "b": [1, 2, 4, 5, 6]}, {"a": 3, "b": [4, 5, 6]}]


def test_equal_matches_are_kept_in_the_order_of_results():
    assert found(limit_per_start=2, order_matches_by="a.x") == found(limit_per_start=2)
    assert found(limit_per_start=2, order_matches_by="a.x desc") == found(limit_per_start=2)


MANY = pa.table({"ts": range(42), "type": ["A", *"B" * 40, "C"], "x": [1] * 42})
SUBSETS = "PATTERN SEQ(A a, B b+, C c) WHERE skip_till_any_match { } WITHIN 99"


@pytest.mark.parametrize("algorithm", ["auto", "ses_automaton", "backtracking"])
def test_few_of_very_many_matches_are_found_at_once(algorithm):
    rows = found(MANY, SUBSETS, limit_per_start=3, algorithm=algorithm, max_steps=10_000)
    assert [row["b"] for row in rows] == [[1], [1, 2], [1, 2, 3]]
    counted = gpu_cep.match(MANY, SUBSETS, limit_per_start=3, algorithm=algorithm, output="count", max_steps=10_000)
    assert counted["count"].to_pylist() == [3]


@pytest.mark.parametrize("order", ["c.ts", "last(c.ts) asc", "c.ts - a.ts", "a.x desc"])
def test_a_ranking_that_follows_the_order_of_results_finds_no_more_than_is_kept(order):
    later = pa.concat_tables([MANY, pa.table({"ts": [43], "type": ["C"], "x": [1]})])
    rows = found(later, SUBSETS, limit_per_start=3, order_matches_by=order, max_steps=10_000)
    assert [(row["b"], row["c"]) for row in rows] == [([1], 41), ([1, 2], 41), ([1, 2, 3], 41)]
    told = gpu_cep.explain(later, SUBSETS, limit_per_start=3, order_matches_by=order)
    assert "the first 3 matches in the order of results" in str(told)


@pytest.mark.parametrize("order", ["c.ts desc", "last(b.ts)", "c.x", "a.ts - c.ts", "c.ts + 1", "c.ts - first(b.ts)"])
def test_another_ranking_stays(order):
    told = str(gpu_cep.explain(MANY, SUBSETS, limit_per_start=3, order_matches_by=order))
    assert f"the first 3 matches by {order.removesuffix(' desc')}, " in told


def test_a_difference_without_a_window_may_overflow():
    extremes = pa.table({"ts": [-(2**63) + 1, 2**63 - 1], "type": ["A", "B"], "x": [1, 1]})
    query = "PATTERN SEQ(A a, B b)"
    with pytest.raises(gpu_cep.EventError, match="overflow"):
        found(extremes, query, limit_per_start=1, order_matches_by="b.ts - a.ts")
    assert found(extremes, query, limit_per_start=1, order_matches_by="b.ts") == [{"a": 0, "b": 1}]


def test_what_a_ranking_drops_takes_no_memory():
    events = pa.concat_tables([MANY.slice(0, 15), MANY.slice(41)])
    kept, best = {"limit_per_start": 2, "order_matches_by": "count(b) desc"}, [list(range(1, 14)), list(range(1, 15))]
    little = patch.multiple(match_budget, memory_for_results=lambda concurrent: 1 << 20, SMALL_RESULT=0)
    with little, patch.object(ses_automaton, "_LARGEST_OUTPUT", 1_000):
        assert [row["b"] for row in found(events, SUBSETS, algorithm="ses_automaton", **kept)] == best
        with pytest.raises(gpu_cep.MatchLimitExceeded, match="takes more than"):
            found(events, SUBSETS, algorithm="ses_automaton")


def test_slices_of_time_agree(tmp_path):
    letters = "ABBABBBXA" * 300
    events = pa.table({"ts": range(len(letters)), "type": list(letters), "x": [n * 7 % 11 for n in range(len(letters))]})
    pq.write_table(events, tmp_path / "events.parquet", row_group_size=100)
    for order, output in ((None, "matches"), ("sum(b.x) desc", "matches"), ("a.x", "count")):
        options: dict[str, Any] = {"limit_per_start": 2, "order_matches_by": order, "output": output}
        wanted = gpu_cep.match(events, QUERY, **options)
        assert gpu_cep.match(tmp_path / "events.parquet", QUERY, memory="20kB", **options) == wanted
        assert wanted.num_rows


@pytest.mark.parametrize("order", ["a.x desc", "a.k", "last(b.ts)", "sum(b.x) desc"])
@pytest.mark.parametrize("output", ["count", "indices", "matches"])
def test_files_of_which_only_what_is_read_is_read_agree(tmp_path, order, output):
    pq.write_table(EVENTS, tmp_path / "events.parquet", row_group_size=2)
    query, options = f"{QUERY} RETURN count(b) AS n", {"limit_per_start": 2, "order_matches_by": order, "output": output}
    for algorithm in ("auto", "brute_force"):
        wanted = gpu_cep.match(EVENTS, query, algorithm=algorithm, **options)
        assert gpu_cep.match(tmp_path / "events.parquet", query, algorithm=algorithm, **options) == wanted
    assert gpu_cep.match_all(tmp_path / "events.parquet", {"one": query}, split=True, **options) == {"one": wanted}


def test_rule_sets_agree():
    rules = {f"above {x}": f"PATTERN SEQ(A a, B b+) WHERE skip_till_any_match {{ b.x > {x} }} WITHIN 9" for x in range(4)}
    options: dict[str, Any] = {"limit_per_start": 2, "order_matches_by": "sum(b.x) desc", "output": "events"}
    together = gpu_cep.match_all(EVENTS, rules, **options).to_pylist()
    for name, query in rules.items():
        own = [{key: value for key, value in row.items() if key != "pattern"} for row in together if row["pattern"] == name]
        assert own == gpu_cep.match(EVENTS, query, **options).to_pylist()


def test_explain_says_what_is_kept():
    text = str(gpu_cep.explain(EVENTS, QUERY, limit_per_start=2, order_matches_by="sum(b.x) desc"))
    assert "of each first event, the first 2 matches by sum(b.x), descending" in text
    assert "the first match in the order of results" in str(gpu_cep.explain(EVENTS, QUERY, limit_per_start=1))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"limit_per_start": 0}, "limit_per_start must be a whole number of at least 1, not 0"),
        ({"limit_per_start": True}, "limit_per_start must be a whole number of at least 1, not True"),
        ({"order_matches_by": "a.x"}, "order_matches_by= says which matches limit_per_start= keeps\n  hint: give limit_per_start="),
        ({"limit_per_start": 2, "order_matches_by": 3}, "order_matches_by must be text such as"),
        ({"limit_per_start": 2, "after_match": "skip_to_next"}, "has nothing to limit with after_match='skip_to_next'"),
        ({"limit_per_start": 2, "order_matches_by": "sum(b.z) desc"}, r"column 1: order_matches_by: unknown attribute 'z'"),
        ({"limit_per_start": 2, "order_matches_by": "a.x + sum(d.x)"}, r"column 7: order_matches_by: unknown variable 'd'"),
        ({"limit_per_start": 2, "order_matches_by": "b.x"}, r"order_matches_by: b.x is a list"),
        ({"limit_per_start": 2, "order_matches_by": "3"}, "order_matches_by: 3 is the same for all matches"),
        ({"limit_per_start": 2, "order_matches_by": "sum(b.x) down"}, r"line 1, column 10: order_matches_by: found 'down'"),
        ({"limit_per_start": 2, "order_matches_by": "a.x, a.k"}, "is more than an expression"),
        ({"limit_per_start": 2, "order_matches_by": " "}, "order_matches_by= is empty"),
    ],
)
def test_refused_with_what_is_expected(options, message):
    with pytest.raises((gpu_cep.PatternError, gpu_cep.PatternSyntaxError), match=message):
        found(**options)


def test_streams_situations_and_row_patterns_refuse_it():
    with pytest.raises(gpu_cep.UnsupportedError, match="a stream with limit_per_start= is not supported"):
        gpu_cep.stream(QUERY, EVENTS.schema, limit_per_start=2)
    with pytest.raises(gpu_cep.UnsupportedError, match="complete_until= with limit_per_start= is not supported"):
        found(limit_per_start=2, complete_until=5)
    with pytest.raises(gpu_cep.UnsupportedError, match="detected_at=True is not supported with limit_per_start="):
        gpu_cep.match(EVENTS, QUERY, limit_per_start=2, detected_at=True)
    with pytest.raises(gpu_cep.UnsupportedError, match="limit_per_start= is not supported for situations"):
        found(query="DEFINE p AS x > 1, q AS x > 2 PATTERN p before q WITHIN 5", limit_per_start=2)
    with pytest.raises(gpu_cep.UnsupportedError, match="limit_per_start=2 is not supported for MATCH_RECOGNIZE"):
        gpu_cep.match(EVENTS, "MATCH_RECOGNIZE (ORDER BY ts PATTERN (A B) DEFINE B AS B.x > 1)", limit_per_start=2)


RANKED = pa.array([0, 3, None, 1, 2])
TEXTS = pa.array(["x", "c", None, "a", "b"])


@pytest.mark.parametrize("direction", ["", " desc"])
@pytest.mark.parametrize(
    "values",
    [
        RANKED, TEXTS, RANKED.dictionary_encode(), TEXTS.dictionary_encode(), RANKED.cast(pa.float64()).cast(pa.float16()),
        pa.array([None if value is None else Decimal(value) for value in RANKED.to_pylist()], pa.decimal32(5, 1)),
    ],
    ids=lambda values: str(values.type),
)  # fmt: skip
def test_values_of_every_encoding_rank_matches(values, direction):
    events = pa.table({"ts": range(5), "type": list("ABBBB"), "v": values})
    text, ranked = "PATTERN SEQ(A a, B b) WHERE skip_till_any_match { }", {"limit_per_start": 2, "order_matches_by": f"b.v{direction}"}
    kept = gpu_cep.match(events, text, output="indices", **ranked).to_pylist()
    assert kept == [{"a": 0, "b": 1 if direction else 3}, {"a": 0, "b": 4}]


@pytest.mark.parametrize("algorithm", ["auto", "brute_force"])
def test_texts_of_two_columns_that_a_ranking_compares(algorithm):
    texts = {"s": ["b", "a", "c", "b"], "t": ["a", "z", None, "a"]}
    events, text = pa.table({"ts": range(4), "type": list("ABBB"), **texts}), "PATTERN SEQ(A a, B b) WHERE skip_till_any_match { }"
    for order, kept in (("CASE WHEN b.s < b.t THEN 1 ELSE 0 END desc", 1), ("CASE WHEN b.s < b.t THEN 1 ELSE 0 END", 2)):
        assert found(events, text, limit_per_start=1, order_matches_by=order, algorithm=algorithm) == [{"a": 0, "b": kept}]


def test_a_ranking_that_overflows_is_named():
    events = pa.table({"ts": [1, 2], "type": ["A", "B"], "x": [2**62, 2**62]})
    with pytest.raises(gpu_cep.EventError, match="integer overflow in order_matches_by"):
        gpu_cep.match(events, "PATTERN SEQ(A a, B b)", limit_per_start=1, order_matches_by="a.x + b.x")
