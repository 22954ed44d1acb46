"""Whatever rows of a column a device loads are the host's values of these rows."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_cep.engine.input.device.uploads import load
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.lowering.text_predicates import truth_table
from gpu_cep.engine.phase_one.device.columns import DeviceColumns
from gpu_cep.errors import EventError
from gpu_cep.keywords import make_options
from gpu_cep.plan.settings import Settings
from gpu_cep.queries.plans import make_plan
from tests.gpu.foreign import strict_if_simulated

DAYS = st.dates(date(1900, 1, 1), date(2100, 1, 1))
MOMENTS = st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1))
SPANS = st.timedeltas(timedelta(-9_999), timedelta(9_999)).map(lambda span: timedelta(seconds=span // timedelta(seconds=1)))


def whole(bits, signed):
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else st.integers(0, 2**bits - 1)


VALUES = {
    **{pa.int8(): whole(8, True), pa.int16(): whole(16, True), pa.int32(): whole(32, True), pa.int64(): whole(64, True)},
    **{pa.uint8(): whole(8, False), pa.uint16(): whole(16, False), pa.uint32(): whole(32, False), pa.uint64(): whole(63, False)},
    **{pa.float16(): st.floats(width=16).map(np.float16), pa.float32(): st.floats(width=32), pa.float64(): st.floats()},
    pa.bool_(): st.booleans(),
    pa.null(): st.none(),
    pa.date32(): DAYS,
    pa.date64(): DAYS,
    **{pa.timestamp(unit): MOMENTS.map(lambda moment: moment.replace(microsecond=0)) for unit in ("s", "ms", "ns")},
    pa.timestamp("us", "Europe/Berlin"): MOMENTS,
    pa.duration("s"): SPANS,
    pa.duration("us"): SPANS,
    pa.decimal128(9, 2): st.decimals(-9_999_999, 9_999_999, places=2),
    pa.decimal128(18, 0): st.integers(-(10**18) + 1, 10**18 - 1).map(Decimal),
    # conditions may only ask whether these are NULL
    pa.decimal128(38, 0): st.just(Decimal(1)),
    pa.time32("s"): st.just(0),
    pa.list_(pa.int64()): st.just([1]),
    pa.struct([("a", pa.int64())]): st.just({"a": 1}),
}
WORDS = st.sampled_from(["x", "y", "", "xy", "Zürich", "z" * 40])
INDICES = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]


@pytest.fixture(scope="module")
def device(device):
    return strict_if_simulated(device)


@st.composite
def pieces(draw, arrays):
    """An array of the strategy, as chunks that are slices of longer arrays."""
    chunks = [array.slice(draw(st.integers(0, 9))) for array in draw(st.lists(arrays, min_size=1, max_size=3))]
    return pa.chunked_array([chunk.slice(0, draw(st.integers(0, len(chunk)))) for chunk in chunks])


def lists(values):
    return st.lists(values | st.none(), max_size=40) | st.lists(values, max_size=40)


def columns_of(*arrays, dictionaries=()):
    table = pa.table({"ts": np.arange(len(arrays[0])), **{f"c{number}": array for number, array in enumerate(arrays)}})
    plan = make_plan("PATTERN a", table.schema, make_options(), Settings())
    return EventColumns(table, plan.query, dictionaries, threads=1)


def spans(length):
    ends = st.integers(0, length)
    return st.tuples(ends, ends).map(sorted)


def loaded(device, source, low, high):
    (array,) = load(device, [source], low, high)
    assert array.shape == (high - low,)
    assert array.flags.c_contiguous
    return device.download(array)


def same_bits(found, expected):
    return found.dtype == expected.dtype and found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("kind", VALUES, ids=str)
@given(data=st.data())
def test_numbers_and_nulls(device, kind, data):
    array = data.draw(pieces(lists(VALUES[kind]).map(lambda values: pa.array(values, kind))))
    host, columns = columns_of(array), DeviceColumns(columns_of(array), device)
    nulls, present = host.null_mask(1), columns.present(1)
    assert (present is None) is (nulls is None)
    for low, high in data.draw(st.lists(spans(len(array)), min_size=1, max_size=3)):
        known = np.ones(high - low, np.bool_) if nulls is None else ~nulls[low:high]
        if present is not None:
            assert same_bits(loaded(device, present, low, high), known.view(np.uint8))
        assert same_bits(loaded(device, columns.values(1), low, high)[known], host.values(1)[low:high][known])
    assert 0 < columns.row_bytes(1) <= 26


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), *(pa.dictionary(index, pa.string()) for index in INDICES)], ids=str)
@pytest.mark.parametrize("shared", [False, True])
@given(data=st.data())
def test_text(device, kind, shared, data):
    array = data.draw(pieces(lists(WORDS).map(lambda values: pa.array(values, kind))))
    other = pa.array(data.draw(st.lists(WORDS | st.none(), min_size=len(array), max_size=len(array))), pa.string())
    columns = DeviceColumns(columns_of(array, other, dictionaries=((1, 2),) if shared else ()), device)
    low, high = data.draw(spans(len(array)))
    for column, strings in ((1, array), (2, other)):
        values = [*columns.columns.texts.values(column).to_pylist(), None]
        codes = loaded(device, columns.text_codes(column), low, high)
        assert codes.dtype == np.int32
        assert [values[code] for code in codes] == strings.to_pylist()[low:high]
        assert same_bits(codes, columns.columns.texts.codes(column).codes[low:high])
        assert same_bits(codes, loaded(device, columns.values(column), low, high))
        with patch("gpu_cep.engine.phase_one.device.columns.constant_codes", lambda *_: None):
            source, of_labels = columns.label_codes(SimpleNamespace(column=column, predicates=()))
        narrow = loaded(device, source, low, high)
        mapped = shared and column == 1 and pa.types.is_dictionary(kind)
        assert narrow.dtype == (np.int32 if mapped else np.uint8)
        assert narrow.tolist() == codes.tolist()
        assert of_labels is columns.columns.texts.values(column)
    if shared:
        assert columns.columns.texts.values(1) is columns.columns.texts.values(2)
        assert columns.columns.texts.values(1).to_pylist() == sorted(columns.columns.texts.values(1).to_pylist())


def test_text_is_not_encoded_to_know_its_size(device):
    columns = DeviceColumns(columns_of(pa.array(["x", None])), device)
    with patch("gpu_cep.engine.input.text_columns.encode_text", side_effect=AssertionError("encoded")):
        assert columns.row_bytes(1) == 4 + columns.present(1).row_bytes


def test_null_slots_of_indices_may_hold_anything(device):
    indices = pa.Array.from_buffers(pa.int8(), 3, [pa.py_buffer(b"\x05"), pa.py_buffer(b"\x00\x77\x01")])
    columns = DeviceColumns(columns_of(pa.DictionaryArray.from_arrays(indices, pa.array(["x", "y"]))), device)
    assert loaded(device, columns.text_codes(1), 0, 3).tolist() == [0, 2, 1]
    assert loaded(device, columns.label_codes(SimpleNamespace(column=1, predicates=()))[0], 0, 3).tolist() == [0, 2, 1]


@pytest.mark.parametrize(("count", "kind"), [(255, np.uint8), (256, np.uint16), (65_535, np.uint16), (65_536, np.int32)])
def test_codes_for_labels_are_as_narrow_as_their_number_allows(device, count, kind):
    values = pa.array([f"v{number}" for number in range(count)])
    array = pa.DictionaryArray.from_arrays(pa.array([0, None, count - 1], pa.int32()), values)
    source, _ = DeviceColumns(columns_of(array), device).label_codes(SimpleNamespace(column=1, predicates=()))
    codes = loaded(device, source, 0, 3)
    assert codes.dtype == kind
    assert codes.tolist() == [0, count, count - 1]


@pytest.mark.parametrize("kind", [pa.string(), pa.dictionary(pa.int8(), pa.string())], ids=str)
@pytest.mark.parametrize("condition", ["a.c0 = 'x' AND b.c0 IN ('y', '')", "a.c0 <> 'x' AND b.c0 IS NULL", "a.c0 LIKE 'x%' AND b.c0 = 'y'"])
def test_codes_for_labels_tell_apart_what_predicates_do(device, kind, condition):
    array = pa.array(["x", "y", None, "", "xy", "q", "x", None], kind)
    columns = DeviceColumns(columns_of(array), device)
    options = make_options()
    plan = make_plan(f"PATTERN SEQ(a, b) WHERE {condition}", columns.columns.table.schema, options, Settings())
    host = columns.columns.texts.codes(1)
    for planned in plan.properties:
        source, values = columns.label_codes(planned)
        codes = loaded(device, source, 1, 8)
        for predicate, _ in planned.predicates:
            assert truth_table(predicate, values)[codes].tolist() == truth_table(predicate, host.values)[host.codes[1:8]].tolist()


@pytest.mark.parametrize("values", [[0, 2**63], [None, 2**64 - 1]])
def test_integers_beyond_64_bits(device, values):
    host, columns = columns_of(pa.array(values, pa.uint64())), DeviceColumns(columns_of(pa.array(values, pa.uint64())), device)
    assert loaded(device, columns.values(1), 0, 1).dtype == np.int64
    with pytest.raises(EventError) as expected:
        host.values(1)
    with pytest.raises(EventError) as found:
        loaded(device, columns.values(1), 0, 2)
    assert str(found.value) == str(expected.value)


def test_computed_columns(device):
    table = pa.table({"ts": range(4), "x": [0.0, 1.0, None, 4.0], "s": ["b", None, "A", ""]})
    text = "PATTERN SEQ(a, b) WHERE exp(a.x) > b.x AND length(a.s) < b.x AND lower(a.s) = 'a'"
    plan = make_plan(text, table.schema, make_options(), Settings())
    host, columns = EventColumns(table, plan.query, threads=1), DeviceColumns(EventColumns(table, plan.query, threads=1), device)
    assert len(plan.query.computed) == 3
    for column in range(3, 6):
        assert loaded(device, columns.present(column), 1, 4).tolist() == (~host.null_mask(column)[1:4]).tolist()
        known = ~host.null_mask(column)[1:4]
        assert same_bits(loaded(device, columns.values(column), 1, 4)[known], host.values(column)[1:4][known])
