"""Encoded columns are read as what they encode."""

from __future__ import annotations

import warnings
from datetime import datetime

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_cep as cep
from gpu_cep.engine.input.encodings import decode_table
from gpu_cep.errors import UnsupportedError
from tests.effort import examples

ROWS = 6
BASE = {"ts": range(ROWS), "type": list("ABABAB")}
VALUES = {
    "integer": pa.array([7, 8]),
    "float": pa.array([0.5, 1.5]),
    "boolean": pa.array([False, True]),
    "timestamp": pa.array([datetime(2020, 1, 1), datetime(2021, 1, 1)]),
    "text": pa.array(["x", "y"]),
    "text view": pa.array(["x", "y"], pa.string_view()),
}


def in_dictionary(values, chunks=1):
    return chunked(pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 0, 1, 0], pa.int8()), values), chunks)


def in_runs(values, chunks=1):
    ordered = pa.concat_arrays([values, pa.nulls(1, values.type), values])
    return chunked(pa.RunEndEncodedArray.from_arrays(pa.array([1, 2, 3, 4, ROWS], pa.int32()), ordered), chunks)


def chunked(array, chunks):
    size = ROWS // chunks
    return pa.chunked_array([array.slice(start, size) for start in range(0, ROWS, size)])


@pytest.mark.parametrize("chunks", [1, 3])
@pytest.mark.parametrize("encoded", [in_dictionary, in_runs])
@pytest.mark.parametrize("kind", VALUES)
def test_keys_conditions_and_results(kind, encoded, chunks):
    column = encoded(VALUES[kind], chunks)
    plain = pa.array(column.to_pylist(), pa.large_string() if "view" in kind else VALUES[kind].type)
    events, wanted = (pa.table({**BASE, "c": values}) for values in (column, plain))
    for pattern, options in [
        ("SEQ(a, b)", {"partition_by": "c"}),
        ("SEQ(a, b) WHERE a.c = b.c", {}),
        ("SEQ(a, b) WHERE a.c < b.c", {"order_by": "c"}),
        ("a WHERE a.c IS NOT NULL", {"output": "events"}),
        ("SEQ(a, b+) WITHIN 2 RETURN a, b.c, max(b.c) AS most", {}),
    ]:
        found = [cep.match(table, f"PATTERN {pattern}", **options).to_pylist() for table in (events, wanted)]
        assert found[0] == found[1] != []


def test_an_encoded_timestamp():
    times = pa.array([datetime(2020, 1, day) for day in range(1, ROWS + 1)]).dictionary_encode()
    found = cep.match(pa.table({**BASE, "ts": times}), "PATTERN SEQ(A a, B b) WITHIN 1 day", output="indices")
    assert found.to_pylist() == [{"a": 0, "b": 1}, {"a": 2, "b": 3}, {"a": 4, "b": 5}]


def test_text_stays_in_its_dictionary():
    ordered = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int8()), VALUES["text view"], ordered=True)
    table = pa.table({"view": ordered, "text": VALUES["text"].dictionary_encode()})
    assert decode_table(table).schema.types == [pa.dictionary(pa.int8(), pa.large_string(), ordered=True), table.schema.field("text").type]
    assert decode_table(table).to_pylist() == table.to_pylist()


VIEW = pa.string_view()


@pytest.mark.parametrize(
    ("arrow", "value"),
    [
        (pa.list_(VIEW), ["x"]),
        (pa.large_list(VIEW), ["x"]),
        (pa.list_(VIEW, 1), ["x"]),
        (pa.struct([("q", VIEW), ("r", pa.list_(pa.binary_view()))]), {"q": "x", "r": [b"y"]}),
        (pa.dictionary(pa.int8(), pa.list_(VIEW)), ["x"]),
    ],
    ids=str,
)
def test_nested_views_are_carried(arrow, value):
    if pa.types.is_dictionary(arrow):
        column = pa.DictionaryArray.from_arrays(pa.array([0] * ROWS, pa.int8()), pa.array([value], arrow.value_type))
    else:
        column = pa.array([value] * ROWS, arrow)
    found = cep.match(pa.table({**BASE, "c": column}), "PATTERN A a", columns="c")
    assert found["a"].to_pylist() == [{"c": value}] * 3


NESTED = {
    "text": lambda codes: codes,
    "struct": lambda codes: pa.StructArray.from_arrays([codes], ["s"], mask=pa.array([True, False, False])),
    "list": lambda codes: pa.ListArray.from_arrays(pa.array([0, 1, 1, 3], pa.int32()), codes),
    "large list": lambda codes: pa.LargeListArray.from_arrays(pa.array([0, 1, 1, 3]), codes),
    "fixed list": lambda codes: pa.FixedSizeListArray.from_arrays(codes, 1),
    "map": lambda codes: pa.MapArray.from_arrays(pa.array([0, 1, 1, 3], pa.int32()), pa.array(["k", "l", "m"]), codes),
    "struct of lists": lambda codes: pa.StructArray.from_arrays([NESTED["list"](codes)], ["s"]),
}
TEXT = pa.string()
PLAIN = {
    "text": TEXT,
    "struct": pa.struct([("s", TEXT)]),
    "list": pa.list_(TEXT),
    "large list": pa.large_list(TEXT),
    "fixed list": pa.list_(TEXT, 1),
    "map": pa.map_(TEXT, TEXT),
    "struct of lists": pa.struct([("s", pa.list_(TEXT))]),
}
RULES = {"rise": "PATTERN SEQ(A a, B b)", "again": "PATTERN SEQ(B a, A b)"}


@examples(100, 1_000)
@given(st.data(), st.sampled_from(sorted(NESTED)))
def test_null_may_be_a_value_of_a_dictionary(data, form):
    codes, values = st.sampled_from((0, 1, 2, None)), st.permutations(["A", "B", None])
    drawn = [(data.draw(st.lists(codes, min_size=3, max_size=3)), data.draw(values)) for _ in range(data.draw(st.integers(1, 3)))]
    arrays = [pa.DictionaryArray.from_arrays(pa.array(own, pa.int8()), pa.array(known, pa.string())) for own, known in drawn]
    column = pa.chunked_array([NESTED[form](array) for array in arrays])
    texts = pa.array([text for array in arrays for text in array.to_pylist()], pa.string())
    events = pa.table({"ts": range(len(texts)), "type": texts, "c": column})
    wanted = pa.table({"ts": range(len(texts)), "type": texts, "c": pa.array(column.to_pylist(), PLAIN[form])})
    if form == "text":
        events, wanted = (table.drop_columns("type").rename_columns({"c": "type"}) for table in (events, wanted))
        for pattern in ("a WHERE a.type IS NULL", "SEQ(a, b) WHERE [type]"):
            assert outcome(events, f"PATTERN {pattern}") == outcome(wanted, f"PATTERN {pattern}")
    assert outcome(events, RULES["rise"]) == outcome(wanted, RULES["rise"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cep.AbsentValueWarning)
        found = [cep.match_all(table, RULES, output="events").to_pylist() for table in (events, wanted)]
    assert found[0] == found[1]


def outcome(events, text):
    """The events of the matches; a text that no event has is not told of."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cep.AbsentValueWarning)
        return cep.match(events, text, output="events").to_pylist()


@pytest.mark.parametrize("empty", [pa.chunked_array([], VALUES[kind].dictionary_encode().type) for kind in ("integer", "text")], ids=str)
def test_no_events(empty):
    assert cep.match(pa.table({"ts": pa.array([], pa.int64()), "c": empty}), "PATTERN a WHERE a.c IS NULL").num_rows == 0


def test_what_arrow_cannot_copy_is_refused_where_it_is_carried():
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([ROWS], pa.int32()), pa.array(["x"]))
    events = pa.table({**BASE, "c": pa.ListArray.from_arrays(range(ROWS + 1), runs)})
    for pattern, options in [("a", {}), ("a", {"output": "events"}), ("a RETURN a.c", {}), ("a+ RETURN a.ts, last(a.c)", {})]:
        with pytest.raises(
            UnsupportedError, match=r"column 'c' of type list<item: run_end_encoded(?s:.*)hint: leave it out, with columns= or RETURN"
        ):
            cep.match(events, f"PATTERN {pattern}", **options)
    for pattern, options in [("a", {"columns": ["ts"]}), ("a", {"output": "indices"}), ("a RETURN a.ts", {})]:
        assert cep.match(events, f"PATTERN {pattern}", **options).num_rows == ROWS
