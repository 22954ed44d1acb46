"""Hashes of stream keys: the same for equal keys, whatever stands beside them and however they are encoded; different for others."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_cep.analysis.options import Options
from gpu_cep.engine.events import key_hashes
from gpu_cep.engine.events.key_hashes import hash_keys
from gpu_cep.engine.events.stream_keys import encode_keys
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.plan.settings import Settings
from gpu_cep.queries.plans import make_plan
from tests.engine.events.test_stream_keys import COLUMNS

TEXTS = st.none() | st.text(max_size=20) | st.sampled_from(["", "a" * 8, "a" * 9, "b" + "a" * 15, "a" * 16, "a" * 17, "a" * 8 + "b"])
TEXT_TYPES = (pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.int32(), pa.large_string()))


def columns_of(*columns: pa.Array) -> EventColumns:
    table = pa.table([np.arange(len(columns[0])), *columns], names=["ts", *map(str, range(len(columns)))])
    return EventColumns(table, make_plan("PATTERN a", table.schema, Options(), Settings()).query, threads=1)


def hashes_of(*columns: pa.Array) -> list[int]:
    return hash_keys(columns_of(*columns), tuple(range(1, len(columns) + 1))).tolist()


@pytest.mark.parametrize("name", COLUMNS)
def test_blocks_of_events_have_the_hashes_of_all(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    column = COLUMNS[name]
    whole = hashes_of(column, column)
    monkeypatch.setattr(key_hashes, "BLOCK", 3)
    assert len(column) > 3
    assert hashes_of(column, column) == whole


@pytest.mark.parametrize("other", COLUMNS)
@pytest.mark.parametrize("name", COLUMNS)
def test_keys_are_told_apart_as_streams_are(name: str, other: str) -> None:
    both = COLUMNS[name], COLUMNS[other]
    codes = encode_keys(columns_of(*both), (1, 2)).codes
    assert codes is not None
    pairs = zip(codes.tolist(), hashes_of(*both), strict=True)
    assert len(set(pairs)) == len(set(codes.tolist())) == len(set(hashes_of(*both)))


@given(st.lists(TEXTS, min_size=1, max_size=20), st.sampled_from(TEXT_TYPES), st.data())
def test_text_has_one_hash_in_every_encoding_and_slice(texts: list[str | None], kind: pa.DataType, data: st.DataObject) -> None:
    whole = dict(zip(texts, hashes_of(pa.array(texts, pa.string())), strict=True))
    assert len(set(whole.values())) == len(whole)
    low = data.draw(st.integers(0, len(texts)), "low")
    encoded = pa.array(texts).dictionary_encode().cast(kind) if pa.types.is_dictionary(kind) else pa.array(texts, kind)
    assert hashes_of(encoded[low:]) == [whole[text] for text in texts[low:]]


@pytest.mark.parametrize("keys", [np.arange(50_000), np.arange(50_000) << 40, np.arange(50_000) * 0.25])
@pytest.mark.parametrize("as_text", [False, True])
def test_the_highest_bits_tell_keys_apart(keys: np.ndarray, as_text: bool) -> None:
    column = pa.array(keys).cast(pa.string()) if as_text else pa.array(keys)
    highest = np.array(hashes_of(column), np.uint64) >> np.uint64(42)
    # 50,000 of 4,194,304 places drawn at random have 49,703 values
    assert len(np.unique(highest)) > 49_400
