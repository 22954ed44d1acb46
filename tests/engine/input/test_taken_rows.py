"""Rows that are taken of a column, some of them NULL: as Arrow takes them, whatever lies where a row is NULL."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from gpu_cep.engine.input.arrow_arrays import masked_array
from gpu_cep.engine.input.chunks import take_few, take_few_texts, take_present, texts_at

_SIZE = 21
_NUMBERS = np.arange(_SIZE) * 7 - 30
_COLUMNS = {
    "int64": pa.array(_NUMBERS),
    "uint8": pa.array(_NUMBERS % 200, pa.uint8()),
    "float32": pa.array(_NUMBERS / 3, pa.float32()),
    "boolean": pa.array(_NUMBERS % 3 == 0),
    "timestamp": pa.array(_NUMBERS, pa.timestamp("us", "UTC")),
    "date": pa.array(_NUMBERS.astype(np.int32), pa.date32()),
    "decimal": pa.array(_NUMBERS).cast(pa.decimal128(21, 2)),
    "text": pa.array([f"t{number % 5}" for number in _NUMBERS]),
    "dictionary": pa.array([f"t{number % 5}" for number in _NUMBERS]).dictionary_encode(),
    "narrow dictionary": pa.array([f"t{number % 5}" for number in _NUMBERS]).cast(pa.dictionary(pa.int8(), pa.string())),
    "list": pa.array([[number] for number in _NUMBERS]),
    "NULL": pa.nulls(_SIZE),
    "some NULL": pa.array(_NUMBERS, mask=_NUMBERS % 4 == 0),
    "behind others": pa.array(np.arange(_SIZE + 9)).slice(9),
    "bits behind others": pa.array(np.arange(_SIZE + 9) % 2 == 0).slice(9),
    "codes behind others": pa.array([f"t{number % 5}" for number in range(_SIZE + 9)]).dictionary_encode().slice(9),
}
_MISSING = {"none": np.zeros(40, np.bool_), "some": np.arange(40) % 3 == 0, "all": np.ones(40, np.bool_)}


@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize("missing", _MISSING)
@pytest.mark.parametrize("name", _COLUMNS)
def test_rows_are_taken_as_arrow_takes_them(name, missing, kind):
    numbers = np.random.default_rng(3).integers(0, _SIZE, 40).astype(kind)
    numbers[_MISSING[missing]] = -1
    rows = masked_array(numbers, _MISSING[missing])
    taken = take_present(_COLUMNS[name], rows)
    taken.validate(full=True)
    assert taken.type == _COLUMNS[name].type
    assert taken.equals(_COLUMNS[name].take(rows))


@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize("missing", _MISSING)
@pytest.mark.parametrize("name", _COLUMNS)
def test_few_rows_are_taken_from_chunks_as_from_one(name, missing, kind):
    column, borders = _COLUMNS[name], [0, 0, 5, 6, 6, 17, _SIZE]
    chunks = pa.chunked_array([column[low:high] for low, high in pairwise(borders)], column.type)
    for few in (0, 1, 40):
        numbers = np.random.default_rng(few).integers(0, _SIZE, few).astype(kind)
        numbers[_MISSING[missing][:few]] = -1
        rows = masked_array(numbers, _MISSING[missing][:few])
        taken = take_few(chunks, rows)
        taken.validate(full=True)
        assert taken.equals(column.take(rows))


@pytest.mark.parametrize("missing", [None, _NUMBERS % 4 == 0])
@pytest.mark.parametrize("values", [_NUMBERS, _NUMBERS[::-2], _NUMBERS / 3, _NUMBERS.astype(np.int32)])
def test_numbers_are_masked_as_arrow_masks_them(values, missing):
    mask = None if missing is None else missing[: len(values)]
    found = masked_array(values, mask)
    found.validate(full=True)
    assert found.equals(pa.array(values, mask=mask))


def test_no_rows_of_no_events_are_taken():
    rows = masked_array(np.empty(0, np.int64), np.empty(0, np.bool_))
    assert len(take_present(pa.array([], pa.int64()), rows)) == 0
    assert take_present(pa.array([], pa.int64()), pa.array([None], pa.int64())).null_count == 1


@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize("missing", _MISSING)
@pytest.mark.parametrize("ordered", [False, True])
def test_text_is_taken_from_chunks_with_dictionaries_of_their_own(ordered, missing, kind):
    text, borders = pa.array([None if row % 8 == 7 else f"t{row % 5}" for row in range(_SIZE)]), [0, 0, 5, 6, 6, 17, _SIZE]
    own = [text[low:high].dictionary_encode().cast(pa.dictionary(pa.int8(), pa.string(), ordered)) for low, high in pairwise(borders)]
    chunks = pa.chunked_array(own)
    for few in (0, 1, 40):
        numbers = np.random.default_rng(few).integers(0, _SIZE, few).astype(kind)
        rows = masked_array(numbers, _MISSING[missing][:few])
        taken = take_few_texts(chunks, rows)
        taken.validate(full=True)
        assert taken.type == chunks.type
        assert taken.to_pylist() == text.take(rows).to_pylist()
        assert set(taken.dictionary.to_pylist()) == set(taken.drop_null().to_pylist())
        for column in (chunks, pa.chunked_array([text[low:high] for low, high in pairwise(borders)])):
            assert texts_at(column, np.sort(numbers)).equals(text.take(pa.array(np.sort(numbers))))
