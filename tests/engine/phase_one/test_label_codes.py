"""Codes of dictionaries of every width label events as text does."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import dataset

import gpu_cep as cep
from gpu_cep.analysis.options import Options
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.plan.settings import Settings
from gpu_cep.queries.plans import make_plan

WIDTHS = (pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.uint32(), pa.int64(), pa.uint64())
NARROW = {pa.int8(): np.uint8, pa.uint8(): np.uint8, pa.int16(): np.uint16, pa.uint16(): np.uint16}
TEXTS = [f"T{number}" for number in range(300)]
# Around the greatest code of a byte with a sign, and of one without.
SIZES = (1, 2, 127, 128, 129, 255, 256, 257)


def most(width):
    """How many values codes of that type number."""
    return 1 << (width.bit_width - (not str(width).startswith("u")))


def encoded(codes, size, width):
    return pa.DictionaryArray.from_arrays(pa.array(codes, width), pa.array(TEXTS[:size]))


def columns_of(array):
    table = pa.table({"ts": range(len(array)), "type": array})
    return EventColumns(table, make_plan("PATTERN T0 a", table.schema, Options(), Settings()).query, threads=1)


def whole_codes(array):
    """The codes of a text column, and their values."""
    codes, values = columns_of(array).texts.label_codes(1)
    return codes.whole, values


@st.composite
def dictionaries(draw):
    width = draw(st.sampled_from(WIDTHS))
    size = draw(st.sampled_from([size for size in SIZES if size <= most(width)]))
    codes = st.sampled_from(sorted({0, size // 2, size - 1})) | st.none()
    rows = draw(st.lists(codes, min_size=1, max_size=20))
    start = draw(st.integers(0, len(rows) - 1))
    return encoded(rows, size, width).slice(start), size


@given(dictionaries())
def test_any_width_labels_as_text_does(drawn):
    array, size = drawn
    wanted = sorted({"T0", TEXTS[size // 2], TEXTS[size - 1]})
    some = ", ".join(map(repr, wanted[:2]))
    for predicate in (f"a.type IN ({some})", f"a.type <> '{wanted[-1]}'", "a.type IS NULL", "a.type LIKE '%2%'"):
        found = [
            cep.match(pa.table({"ts": range(len(array)), "type": types}), f"PATTERN a WHERE {predicate}", output="indices")
            for types in (array, array.cast(pa.string()))
        ]
        assert found[0].equals(found[1])


@pytest.mark.parametrize("width", WIDTHS, ids=str)
@pytest.mark.parametrize("rows", [[0, 1, 0], [0, None, 1]], ids=["no NULL", "a NULL"])
def test_narrow_codes_are_read_as_they_are(width, rows):
    array = encoded(rows, 2, width)
    codes, values = whole_codes(array)
    assert codes.dtype == NARROW.get(width, np.int32)
    assert codes.tolist() == [2 if row is None else row for row in rows]
    assert values.to_pylist() == TEXTS[:2]


def test_narrow_codes_without_null_are_not_copied():
    for width in (pa.int8(), pa.uint16()):
        array = encoded([0, 1, 1, 0], 2, width).slice(1)
        codes, _ = whole_codes(array)
        assert codes.ctypes.data == array.indices.buffers()[1].address + array.offset * width.bit_width // 8


def test_a_dictionary_with_a_code_for_null_beyond_its_width():
    codes, _ = whole_codes(encoded([0, 255, None], 256, pa.uint8()))
    assert codes.dtype == np.int32
    assert codes.tolist() == [0, 255, 256]


def narrow_chunks():
    """Two chunks whose dictionaries together have more values than their codes number."""
    kind = pa.dictionary(pa.int8(), pa.string())
    chunks = [pa.array([f"{name} {number}" for number in range(100)]).dictionary_encode().cast(kind) for name in "pq"]
    return pa.table({"ts": range(200), "type": pa.chunked_array(chunks)})


@pytest.mark.parametrize("given", [lambda table: table, dataset.dataset])
def test_chunks_of_narrow_codes_with_many_values_together(given):
    source = given(narrow_chunks())
    found = cep.match(source, "PATTERN SEQ(a, b) WHERE a.type = 'p 7' AND b.type = 'q 9'", output="events")
    assert found["type"].to_pylist() == ["p 7", "q 9"]
    assert found.schema.field("type").type == pa.dictionary(pa.int32(), pa.string())
    assert cep.match(source, "PATTERN a", output="events")["type"].to_pylist() == narrow_chunks()["type"].to_pylist()


@pytest.mark.filterwarnings("ignore::gpu_cep.AbsentValueWarning")
@pytest.mark.parametrize("values", [["A", "B", "C"], ["B", "A", "C"], ["C", "B", "A"], ["A", "C", "D"], ["A"]])
def test_the_label_words_of_few_values_are_remembered_by_value(values):
    """One plan meets dictionaries of one length with other values, or with the same ones in another order."""
    types = pa.DictionaryArray.from_arrays(pa.array([n % len(values) for n in range(9)], pa.int8()), pa.array(values))
    events, text = pa.table({"ts": range(9), "type": types}), "PATTERN SEQ(A a, b) WHERE b.type IN ('B', 'C') WITHIN 4"
    as_text = events.set_column(1, "type", types.cast(pa.string()))
    assert cep.match(events, text, output="indices").equals(cep.match(as_text, text, output="indices", algorithm="brute_force"))
