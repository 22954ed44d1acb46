"""Equality of plain text with constants, whatever Arrow's layout, against Python's own."""

from __future__ import annotations

from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_cep as cep
from gpu_cep.analysis.bound_expressions import Constant, Constants, Field, Operation
from gpu_cep.analysis.types import DataType, Kind
from gpu_cep.engine.lowering.text_predicates import constant_codes, truth_table
from gpu_cep.engine.phase_one import label_events

STRING, BOOLEAN = DataType(Kind.STRING), DataType(Kind.BOOLEAN)
COLUMN = Field(0, 1, STRING)
LENGTHS = (8, 9, 16, 17, 70)
TEXTS = st.sampled_from(["", "x", "a\0", "Quote", "Zürich", "株価", "株価株価株価", *("a" * length for length in LENGTHS), "a" * 69 + "b"])
ROWS = st.lists(TEXTS | st.none(), max_size=25)
TRUTH = {False: 0, True: 1, None: 2}


def constants(texts):
    return tuple(Constant(text, STRING) for text in texts)


def member(row, texts):
    """SQL's IN."""
    if row is None:
        return None
    return True if row in texts else None if None in texts else False


def negated(truth):
    return None if truth is None else not truth


# The predicate, and its truth for a row, by the texts that it names.
PREDICATES = {
    "equal": lambda texts: (Operation("eq", (COLUMN, *constants(texts[:1])), BOOLEAN), lambda row: member(row, texts[:1])),
    "mirrored": lambda texts: (Operation("eq", (*constants(texts[:1]), COLUMN), BOOLEAN), lambda row: member(row, texts[:1])),
    "different": lambda texts: (Operation("ne", (COLUMN, *constants(texts[:1])), BOOLEAN), lambda row: negated(member(row, texts[:1]))),
    "in": lambda texts: (Operation("in", (COLUMN, Constants(tuple(texts), STRING)), BOOLEAN), lambda row: member(row, texts)),
    "in or null": lambda texts: (
        Operation("in", (COLUMN, Constants((*texts, None), STRING)), BOOLEAN),
        lambda row: member(row, [*texts, None]),
    ),
    "not in": lambda texts: (
        Operation("not", (Operation("in", (COLUMN, Constants(tuple(texts), STRING)), BOOLEAN),), BOOLEAN),
        lambda row: negated(member(row, texts)),
    ),
    "null": lambda texts: (Operation("is_null", (COLUMN,), BOOLEAN), lambda row: row is None),
}


@st.composite
def arrays(draw):
    """An array of plain text that is a slice of a longer one."""
    array = pa.array(draw(ROWS), draw(st.sampled_from([pa.string(), pa.large_string()])))
    low = draw(st.integers(0, len(array)))
    return array.slice(low, draw(st.integers(0, len(array) - low)))


@given(
    array=arrays(),
    named=st.lists(st.tuples(st.sampled_from(list(PREDICATES)), st.lists(TEXTS, min_size=1, max_size=5)), min_size=1, max_size=3),
    data=st.data(),
)
def test_codes_tell_apart_what_predicates_do(array, named, data):
    predicates = [PREDICATES[name](texts) for name, texts in named]
    found, values = constant_codes(array, tuple((predicate, 1) for predicate, _ in predicates))
    low = data.draw(st.integers(0, len(array)))
    high = data.draw(st.integers(low, len(array)))
    codes = found.load(low, high)
    for predicate, truth in predicates:
        assert truth_table(predicate, values)[codes].tolist() == [TRUTH[truth(row)] for row in array.to_pylist()[low:high]]


@pytest.mark.parametrize("array", [pa.array([], pa.string()), pa.nulls(3, pa.string()), pa.array(["", ""]), pa.array([None, "x"]).slice(2)])
def test_arrays_with_hardly_a_buffer(array):
    found, values = constant_codes(array, ((PREDICATES["in"](["x", ""])[0], 1),))
    assert [(["x", ""] + [None] * 2)[code] for code in found.load(0, len(array))] == array.to_pylist()
    assert values.to_pylist()[:2] == ["x", ""]


def test_what_is_no_plain_text_or_no_equality_has_none():
    equal = PREDICATES["equal"](["x"])[0], 1
    assert constant_codes(pa.array(["x"]).dictionary_encode(), (equal,)) is None
    assert constant_codes(pa.array(["x"], pa.string_view()), (equal,)) is None
    assert constant_codes(pa.array(["x"]), (equal, (Operation("lt", (COLUMN, *constants(["x"])), BOOLEAN), 1))) is None


@pytest.mark.parametrize("threads", [1, 3])
def test_hundreds_of_constants_in_blocks_and_threads(threads):
    names = [f"item number {number}" for number in range(700)]
    chunks = [pa.array([*names[low : low + 100], None, "no item"]) for low in range(0, 700, 100)]
    events = pa.table({"s": pa.chunked_array(chunks)}).append_column("ts", [range(714)])
    wanted, rows = names[::3], events["s"].to_pylist()
    listed = ", ".join(f"'{name}'" for name in wanted)
    with patch.object(label_events, "BLOCK", 50):
        for condition, holds in ((f"a.s IN ({listed})", set(wanted)), (f"a.s NOT IN ({listed})", set(rows) - set(wanted) - {None})):
            found = cep.match(events, f"PATTERN a WHERE {condition}", output="indices", threads=threads)
            assert found["a"].to_pylist() == [place for place, row in enumerate(rows) if row in holds]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
def test_event_types_as_plain_text(kind):
    types = ["Quote", "Trade", None, "Quotes", "Quot", "quote", "Quote", "Trade"]
    events = pa.table({"ts": range(8), "type": pa.array(types, kind)})
    found = cep.match(events, "PATTERN SEQ(Quote q, Trade t) WITHIN 3", output="indices")
    assert found.to_pylist() == [{"q": 0, "t": 1}, {"q": 6, "t": 7}]


@pytest.mark.parametrize("condition", ["'A' = a.type AND 'B' = b.type", "'A' = a.type AND 'B' <> b.type", "a.type = 'A' AND 'C' = b.type"])
def test_a_constant_may_stand_on_the_left(condition):
    events = pa.table({"ts": range(4), "type": list("ABCB")})
    query = f"PATTERN SEQ(a, b) WHERE {condition}"
    found = cep.match(events, query, output="indices")
    assert found.num_rows == 1
    assert found.equals(cep.match(events, query, output="indices", algorithm="brute_force"))
