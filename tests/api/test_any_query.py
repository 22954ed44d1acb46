"""Any text over any events gives a result or a CepError: tokens in any order, expressions of any types, odd columns."""

from __future__ import annotations

import warnings
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

import gpu_cep as cep
from gpu_cep.errors import CepError
from gpu_cep.lang.ast import STRATEGIES
from tests.lang.builder.built_queries import quoted
from tests.lang.test_any_text import FRAGMENTS, INTERVALS, QUERY

NOON = datetime(2020, 1, 1, 12)
# Name of a column, some of them odd -> its type, and values of it.
COLUMNS = {
    "x": (pa.int64(), [0, 1, -(2**63), 2**63 - 1]),
    "b": (pa.int8(), [0, -128, 127]),
    "u 64": (pa.uint64(), [0, 2**64 - 1]),
    "f": (pa.float64(), [0.0, -0.0, float("nan"), float("inf"), 1e308]),
    "h": (pa.float16(), [0.0, 65504.0]),
    "s": (pa.string(), ["", "x", "it's", "\x00", "株"]),
    "c": (pa.dictionary(pa.int8(), pa.string()), ["x", "A"]),
    "v": (pa.string_view(), ["x", ""]),
    "": (pa.int64(), [1]),
    "and": (pa.bool_(), [True, False]),
    'd"': (pa.decimal128(18, 4), [Decimal("1.5000"), Decimal("-99999999999999.9999")]),
    "w\n": (pa.decimal256(40, 0), [Decimal(10**39)]),
    "day": (pa.date32(), [date(1, 1, 1), date(9999, 12, 31)]),
    "at": (pa.timestamp("ns"), [NOON, NOON + timedelta(seconds=1)]),
    "z": (pa.timestamp("us", "UTC"), [NOON.replace(tzinfo=UTC)]),
    "took": (pa.duration("ms"), [timedelta(0), timedelta(days=10**6)]),
    "n": (pa.null(), [None]),
    "l": (pa.list_(pa.int64()), [[1], [], [None]]),
    "fix": (pa.list_(pa.float32(), 2), [[1.0, 2.0], [float("nan"), 0.0]]),
    "r": (pa.struct([("x", pa.int64())]), [{"x": 1}]),
    "bin": (pa.binary(), [b"\xff", b""]),
    "time": (pa.time64("us"), [None]),
}


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    rows = draw(st.integers(0, 4))
    cells = {name: draw(st.lists(st.sampled_from([None, *values]), min_size=rows, max_size=rows)) for name, (_, values) in COLUMNS.items()}
    columns = {name: pa.array(values, COLUMNS[name][0]) for name, values in cells.items()}
    return pa.table({"ts": pa.array(range(rows), pa.int64()), "type": pa.array(list("ABAB")[:rows], pa.string()), **columns})


def filled(forms: tuple[str, ...], parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """The forms, with a part in each of their places."""
    return st.builds(str.format, st.sampled_from(forms), parts, parts, parts)


# Variable a binds one event, b several; n is negated where it is there.
PLACES = (
    *("a.{}", "a.{}", "b.{}", "b[i].{}", "b[i-1].{}", "b[1].{}", "b[b.LEN].{}", "prev(b.{})"),
    *("avg(b.{})", "sum(b[..i-1].{})", "first(b.{})"),
)
NUMBERS = ("0", "1", "-1", "9223372036854775808", "0.5", "1e300", "80%", "NULL", "count(b)", "count(b[..i-1])")
TIMES = ("5 days", "1 ns", "INTERVAL '-1.5' HOUR", "DATE '2020-01-01'", "TIMESTAMP '2020-01-01 12:00:00'", "TIMESTAMP '2020-01-01Z'")
OTHERS = ("''", "'x'", "'%'", "'('", "TRUE", "FALSE", "a", "b", "x", "[x]", "n.x", "a.k")
COMPUTED = (
    *("({0} + {1})", "({0} - {1})", "({0} * {1})", "({0} / {1})", "({0} % {1})", "-{0}", "abs({0})", "floor({0})", "round({0})"),
    *("sqrt({0})", "exp({0})", "ln({0})", "power({0}, 2)", "sign({0})", "coalesce({0}, {1})", "nullif({0}, {1})", "least({0}, {1})"),
    *("length(lower({0}))", "substring({0}, 1, 2)", "year({0})", "hour({0})", "corr({0}, {1})", "greatest({0}, {1}, {2})"),
)
TESTED = (
    *("{0} = {1}", "{0} <> {1}", "{0} < {1}", "{0} >= {1}", "{0} BETWEEN {1} AND {2}", "{0} IN ({1}, {2})", "{0} NOT IN ({1})"),
    *("{0} IS NULL", "({0} IS NOT NULL)", "{0} LIKE '%x_'", "regexp_like({0}, '^x')", "regexp_like({0}, {1})", "{0} LIKE {1}"),
)
JOINED = ("({0} AND {1})", "({0} OR {1})", "NOT {0}", "({0} OR {1} OR NOT {2})", "{0} AND {1} AND {2}")


def attributes(names: list[str]) -> st.SearchStrategy[str]:
    return st.builds(str.format, st.sampled_from(PLACES), st.sampled_from(names).map(quoted))


def values(leaves: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.recursive(leaves, lambda inner: filled(COMPUTED, inner), max_leaves=4)


numbers = values(attributes(["ts", "x", "b", "f", "h", 'd"']) | st.sampled_from(NUMBERS))
anything = values(attributes(["type", *COLUMNS]) | st.sampled_from([*NUMBERS, *TIMES, *OTHERS]))
alike = st.sampled_from([["s", "c", "v", "type"], ["day", "at"], ["took"], ["and"], ["z"], ["n"], ["l", "r", "bin", "time"], ["fix"]])
tests = filled(TESTED, numbers) | alike.flatmap(lambda names: filled(TESTED, attributes(names))) | filled(TESTED, anything)
conditions = st.recursive(tests, lambda inner: filled(JOINED, inner), max_leaves=4)
PATTERNS = ("SEQ(b, a)", "SEQ(a, b+)", "SEQ(A a, B b+)", "AND(a, b*)", "SEQ(a, b{2,3}, NOT(n))", "OR(a?, b+)")


@st.composite
def queries(draw: st.DrawFn) -> str:
    condition, returned = draw(conditions), draw(numbers | conditions | anything)
    within = draw(st.sampled_from(["", "WITHIN 2", "WITHIN 2 events"]))
    if draw(st.integers(0, 7)) == 0:
        own = condition.replace("a.", "")
        return f"DEFINE a AS {own}, b AS x > 0 AT LEAST 1 PATTERN a before b {within} RETURN {returned}"
    pattern = draw(st.sampled_from(PATTERNS))
    return f"PATTERN {pattern} WHERE {condition} {within} {draw(st.sampled_from(['', f'RETURN {returned} AS r, a.x']))}"


@st.composite
def damaged(draw: st.DrawFn) -> str:
    words = draw(st.sampled_from([QUERY, INTERVALS])).split()
    at = draw(st.integers(0, len(words) - 1))
    words[at : at + 1] = draw(fragments)
    return " ".join(words)


fragments = st.lists(st.sampled_from([*FRAGMENTS.split(), *NUMBERS, *TIMES, *OTHERS]), max_size=12)
options = st.sampled_from([{}]) | st.fixed_dictionaries(
    {},
    optional={
        "timestamp": st.sampled_from(["ts", *COLUMNS]),
        "partition_by": st.sampled_from(list(COLUMNS)),
        "order_by": st.sampled_from(list(COLUMNS)),
        "strategy": st.sampled_from([*STRATEGIES, "all"]),
        "output": st.sampled_from(["matches", "events", "indices", "count", "compressed"]),
        "algorithm": st.sampled_from(["auto", "ses_automaton", "nfab", "lazy_chain", "join_tree", "brute_force"]),
    },
)


@settings(max_examples=120)
@given(tables(), queries() | queries() | fragments.map(" ".join) | damaged(), options)
def test_any_query_gives_a_result_or_an_error_of_ours(events: pa.Table, text: str, keywords: dict[str, str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with suppress(CepError):
            cep.match(events, text, max_matches=1_000, max_steps=100_000, **keywords)
