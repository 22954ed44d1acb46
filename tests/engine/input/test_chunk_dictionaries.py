"""Events are taken, joined and copied with the dictionaries that they need, and stay what they are."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_cep.engine.input.chunk_dictionaries import count_values, join_chunks, most_values, take_events, without_others

KEYS = pa.dictionary(pa.int32(), pa.string())
KEPT = pa.array([f"k{number}" for number in range(6)])


@st.composite
def chunked(draw):
    """A table of which chunks have one dictionary, or each has its own."""
    parts = []
    for cells in draw(st.lists(st.lists(st.sampled_from([*range(6), None]), max_size=5), max_size=4)):
        own = pa.array([None if cell is None else f"k{cell}" for cell in cells], pa.string()).dictionary_encode().cast(KEYS)
        shared = pa.DictionaryArray.from_arrays(pa.array(cells, pa.int32()), KEPT)
        parts.append(shared if draw(st.booleans()) else own)
    keys = pa.chunked_array(parts, KEYS)
    return pa.table({"n": pa.chunked_array([range(len(keys))], pa.int64()), "k": keys})


@given(chunked(), st.data())
def test_events_are_the_same_with_fewer_values(table, data):
    rows = [row for row in range(table.num_rows) if data.draw(st.booleans())]
    taken = take_events(table, pa.array(rows, pa.int64()).to_numpy())
    assert taken.schema == table.schema
    assert taken.to_pylist() == [table.to_pylist()[row] for row in rows]
    for same in (without_others(table), without_others(table, 0), join_chunks(table)):
        assert same.schema == table.schema
        assert same.to_pylist() == table.to_pylist()
        assert count_values(same["k"]) <= max(len(table), count_values(table["k"]))
    assert count_values(without_others(table, 0)["k"]) == len({key for key in table["k"].to_pylist() if key is not None})


@pytest.mark.parametrize(("shared", "values"), [(True, 6), (False, 4)])
def test_only_different_dictionaries_are_not_joined(shared, values):
    codes = pa.array([0, 1], pa.int32())
    chunks = [
        pa.DictionaryArray.from_arrays(codes, KEPT if shared else pa.array([*map(str, range(6 * part, 6 * part + 6))])) for part in (1, 2)
    ]
    table = pa.table({"k": pa.chunked_array(chunks)})
    assert most_values(table) == most_values(table, table) == (6 if shared else 12)
    assert count_values(take_events(table, pa.array([0, 1, 2, 3]).to_numpy())["k"]) == values
