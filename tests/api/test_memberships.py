"""IN with lists of any length: long ones are looked up in a column, and answer as short ones and the oracle do."""

from __future__ import annotations

import time
from datetime import date, datetime, timedelta
from decimal import Decimal
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpu_cep as cep
from gpu_cep.analysis import memberships
from gpu_cep.errors import PatternError, PatternSyntaxError, UnsupportedError
from gpu_cep.lang.ast import Literal
from gpu_cep.lang.literals import write_literal

MANY = 100_000
NOON = datetime(2020, 1, 1, 12)

# Attribute -> its type and the values of events. No list of truth values is long, since each stands in it once.
COLUMNS = {
    "n": (pa.int32(), [0, 1, -7, 2**31 - 1]),
    "l": (pa.int64(), [0, 2**53, 2**53 + 1]),
    "x": (pa.float32(), [0.0, -0.0, 0.5, float("nan")]),
    "d": (pa.decimal128(9, 2), [Decimal("0.00"), Decimal("0.50"), Decimal("-7.00")]),
    "s": (pa.string(), ["", "x", "it's"]),
    "c": (pa.dictionary(pa.int8(), pa.string()), ["", "x", "y"]),
    "day": (pa.date32(), [date(2020, 1, 1), date(2020, 1, 2)]),
    "at": (pa.timestamp("s"), [NOON, NOON + timedelta(seconds=1)]),
}
NUMBERS = [0, 1, -7, 2**53, Decimal("0.5"), Decimal("-7.00"), 5e-1, 2.0**53]
LISTED = {
    **dict.fromkeys("nlxd", NUMBERS),
    **{name: ["", "x", "it's", "y"] for name in "sc"},
    **{name: [date(2020, 1, 1), NOON, NOON + timedelta(microseconds=1)] for name in ("day", "at")},
}
SHAPES = ["{0}", "NOT {0}", "{0} OR b.n = 1", "NOT ({0} AND b.n <> 0)", "({0}) IS NULL"]
PLACES = ["a.{0}", "b.{0}", "b[b.LEN].{0}", "prev(b.{0})"]


@st.composite
def tables(draw):
    rows = draw(st.integers(0, 4))
    cells = {
        name: pa.array(draw(st.lists(st.sampled_from([None, *values]), min_size=rows, max_size=rows)), of)
        for name, (of, values) in COLUMNS.items()
    }
    return pa.table({"ts": pa.array(range(rows), pa.int64()), **cells})


@st.composite
def conditions(draw):
    name = draw(st.sampled_from(sorted(COLUMNS)))
    items = draw(st.lists(st.sampled_from([None, *LISTED[name]]), min_size=1, max_size=4))
    listed = ", ".join(write_literal(Literal(item)) for item in items)
    test = f"{draw(st.sampled_from(PLACES)).format(name)}{draw(st.sampled_from([' ', ' NOT ']))}IN ({listed})"
    return draw(st.sampled_from(SHAPES)).format(test)


@settings(max_examples=80)
@given(tables(), conditions(), st.sampled_from([0, 2]))
def test_lists_that_are_looked_up_answer_as_the_oracle(events, condition, compared):
    text = f"PATTERN SEQ(a, b+) WHERE {condition}"
    wanted = cep.match(events, text, output="indices", algorithm="brute_force")
    with patch.object(memberships, "MOST_COMPARED", compared):
        assert cep.match(events, text + " ", output="indices").equals(wanted)


def listed(values):
    return ", ".join(write_literal(Literal(value)) for value in values)


WRITTEN = {
    "n": range(0, 3 * MANY, 3),
    "s": [f"t{number}" for number in range(0, 3 * MANY, 3)],
    "x": [number + 0.5 for number in range(MANY)],
    "at": [datetime(1970, 1, 1) + timedelta(seconds=3 * number) for number in range(MANY)],
}
EVENTS = pa.table(
    {
        "ts": range(1_000),
        "n": range(1_000),
        "s": [f"t{number}" for number in range(1_000)],
        "x": [number / 2 for number in range(1_000)],
        "at": pa.array(range(1_000), pa.timestamp("s")),
    }
)
FOUND = {"n": 334, "s": 334, "x": 500, "at": 334}


@pytest.mark.parametrize("name", WRITTEN)
def test_a_hundred_thousand_constants_are_fast(name):
    begin = time.process_time()
    found = cep.match(EVENTS, f"PATTERN a WHERE a.{name} IN ({listed(WRITTEN[name])})", output="count")
    assert found.to_pydict() == {"count": [FOUND[name]]}
    assert time.process_time() - begin < 6


def test_the_builder_takes_as_many():
    built = cep.var("a").where(~cep.var("a").n.isin(WRITTEN["n"]))
    assert cep.match(EVENTS, built, output="count").to_pydict() == {"count": [666]}


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ("DATE '2020-02-30'", "day is out of range for month"),
        ("'x'", "cannot compare integer with string"),
        ("9" * 30, f"the constant {'9' * 30} is out of range"),
        (",", "found ','"),
    ],
)
def test_a_fault_in_a_list_has_its_place(item, message):
    text = f"PATTERN a\nWHERE a.n IN ({listed(range(500))},\n  {item}, 7, {item})"
    with pytest.raises((PatternError, PatternSyntaxError)) as fault:
        cep.match(EVENTS, text)
    (diagnostic,) = fault.value.diagnostics
    assert message in diagnostic.message
    assert (diagnostic.span.line, diagnostic.span.column) == (3, 3)


def test_constants_of_several_events_are_limited():
    text = "PATTERN SEQ(a, b) WHERE a.n + b.n IN ({})"
    most = memberships.MOST_IN_PROGRAMS
    assert cep.match(EVENTS.slice(0, 9), text.format(listed(range(-most, 0))), output="count").to_pydict() == {"count": [0]}
    with pytest.raises(UnsupportedError, match=f"IN of {most + 1:,} constants(.|\n)*at most {most:,}"):
        cep.match(EVENTS, text.format(listed(range(-most - 1, 0))))


@pytest.mark.parametrize("text", ["nullif(a.s, 'x')", "CASE a.s WHEN 'x' THEN NULL ELSE a.s END"])
@pytest.mark.parametrize("test", ["{} IN ('y', NULL)", "{} NOT IN ('y', 'z')", "({} IN ('y', 'z')) IS NULL", "{} IN ('y')"])
def test_a_text_that_becomes_null_is_in_no_list_and_not_outside_of_one(text, test):
    events = pa.table({"ts": range(4), "s": ["x", "y", "w", None]})
    query = f"PATTERN a WHERE {test.format(text)}"
    assert cep.match(events, query, output="indices").equals(cep.match(events, query, output="indices", algorithm="brute_force"))


def test_a_long_list_is_asked_of_the_event_that_is_read():
    text = f"PATTERN SEQ(a, b{{2}}) WHERE b[b.LEN].n IN ({listed(range(3, 500))})"
    assert cep.match(EVENTS.slice(0, 4), text, strategy="strict_contiguity", output="indices").to_pylist() == [{"a": 1, "b": [2, 3]}]
