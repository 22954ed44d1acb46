"""User text never becomes code: names and literals stay data until the end."""

from __future__ import annotations

import time

import pyarrow as pa
import pytest

import gpu_cep as cep
from gpu_cep.errors import DiagnosedError
from tests.lang.builder.built_queries import quoted

NAMES = [
    'x"; import os; os._exit(1); "',
    "__class__",
    "lambda: 0",
    "a.b",
    "a b",
    "new\nline",
    "`tick`",
    "back\\slash",
    "{x!r}",
    "日本語",
    "SELECT",
    "%s",
    "",
]
TEXTS = [*NAMES, "it's", '"', "nul\x00byte", "\ud7ff\U0001f600", "'; DROP TABLE events; --", "%_\\"]


def literal(text):
    return "'" + text.replace("'", "''") + "'"


@pytest.mark.parametrize("name", [name for name in NAMES if name])
def test_names_of_columns_and_variables(name):
    events = pa.table({"ts": [1, 2, 3], name: [5, 6, 7], "type": ["A", "B", "B"]})
    variable = quoted(name)
    pattern = (
        f"PARTITION BY type PATTERN SEQ({variable}, other) "
        f"WHERE {variable}.{variable} < other.{variable} AND {variable}.{variable} > 5 WITHIN 10 "
        f"RETURN {variable}.{variable} AS {quoted(name + '!')}, other.ts"
    )
    found = cep.match(events, pattern).to_pylist()
    assert found == [{"type": "B", "match_start": 2, "match_end": 3, name + "!": 6, "ts": 3}]
    assert cep.match(events, pattern, output="indices").to_pylist() == [{name: 1, "other": 2}]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("make", [pa.array, lambda values: pa.array(values).dictionary_encode()], ids=["plain", "dictionary"])
def test_texts_in_conditions(text, make):
    events = pa.table({"ts": [1, 2, 3, 4], "s": make([text, "other", text, None]), "type": ["A", "A", "B", "B"]})
    for condition in (f"a.s = {literal(text)}", f"a.s IN ({literal(text)}, 'x')", f"NOT (a.s <> {literal(text)} OR a.s IS NULL)"):
        assert cep.match(events, f"PATTERN a WHERE {condition}", output="indices").to_pylist() == [{"a": 0}, {"a": 2}]
    assert cep.match(events, "PATTERN SEQ(A a, B b) WHERE a.s = b.s", output="indices").to_pylist() == [{"a": 0, "b": 2}]


@pytest.mark.parametrize("text", [text for text in TEXTS if text])
def test_event_types_and_keys(text):
    events = pa.table({"ts": [1, 2], "type": [text, "B"], "k": [text, text]})
    found = cep.match(events, f"PATTERN SEQ({quoted(text)} a, B b)", partition_by="k").to_pylist()
    assert [row["k"] for row in found] == [text]


@pytest.mark.parametrize("text", TEXTS)
def test_texts_returned(text):
    events = pa.table({"ts": [1], "type": ["A"]})
    assert cep.match(events, f"PATTERN a RETURN {literal(text)} AS t")["t"].to_pylist() == [text]


def test_literals_as_wide_as_anyone_types():
    events = pa.table({"ts": [1, 2], "s": ["x" * 100_000, "y"]})
    assert cep.match(events, f"PATTERN a WHERE a.s = '{'x' * 100_000}'", output="indices").to_pylist() == [{"a": 0}]
    many = ", ".join(f"'t{n}'" for n in range(5_000))
    assert cep.match(events, f"PATTERN a WHERE a.s IN ({many}, 'y')", output="indices").to_pylist() == [{"a": 1}]


LONG = "x" * 1_000_000


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (f"PATTERN a WHERE a.n = 1 {LONG}", "is no unit of time"),
        (f"PATTERN a WHERE a.{LONG} = 1", "unknown attribute"),
        (f"PATTERN a WHERE {LONG}.n = 1", "unknown variable"),
        (f'PATTERN a WHERE a."{LONG} {LONG}" = 1', "unknown attribute"),
        (f"PATTERN a WHERE {LONG}(a.n) = 1", "unknown function"),
        (f"PATTERN a WHERE a.n = '{LONG}'", "cannot compare integer with string"),
        (f"PATTERN a WHERE regexp_like(a.s, '({LONG}')", "is no regular expression"),
        (f"PATTERN a WHERE {' AND '.join(['a.m = 1'] * 5_000)}", "and 4,980 more faults"),
        (f"PATTERN a WHERE a.n IN ({', '.join(['1'] * 10_000)}, b.n)", "unknown variable 'b'"),
        (f"PATTERN {LONG} a", "type_column"),
        (f"PARTITION BY {LONG} PATTERN a", "unknown attribute"),
        (f"FROM s PARTITION BY {LONG}.k PATTERN a", "is neither FROM's name nor its alias"),
        (f"PATTERN a RETURN {LONG}", "stands alone"),
        (f"PATTERN a RETURN a.n AS {LONG}, a.n AS {LONG}", "two columns of the result are called"),
        (f"PATTERN SEQ({LONG}, {LONG})", "stands in the pattern twice"),
        (f"DEFINE {LONG} AS n > 1, B AS n > 2 PATTERN B before C", "unknown variable"),
        (f"DEFINE A AS n > 1, B AS n > 2 PATTERN A {LONG} B", "is no relation between intervals"),
    ],
)
def test_no_message_quotes_a_million_characters(text, named):
    events = pa.table({"ts": [1], "n": [1], "s": ["x"]})
    start = time.process_time()
    with pytest.raises(DiagnosedError) as error:
        cep.match(events, text)
    assert time.process_time() - start < 5
    assert named in str(error.value)
    assert len(str(error.value)) < 10_000
