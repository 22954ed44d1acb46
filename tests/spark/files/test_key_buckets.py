"""Buckets of streams partition the events, each stream whole in one, whatever the table in which its events come."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pyspark")

from gpu_cep.analysis.options import Options
from gpu_cep.engine.events import key_hashes
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.plan.settings import Settings
from gpu_cep.queries.plans import make_plan
from gpu_cep_spark.files.key_buckets import KeyBucket, rows_of_bucket

KEYS = st.tuples(st.none() | st.sampled_from(["", "a", "b", "ü"]), st.none() | st.sampled_from([0.0, -0.0, 1.5, float("nan")]))


def columns_of(table: pa.Table) -> EventColumns:
    return EventColumns(table, make_plan("PATTERN a", table.schema, Options(), Settings()).query, threads=1)


def table_of(keys: list[tuple[str | None, float | None]], kind: pa.DataType) -> pa.Table:
    words, numbers = (pa.array([key[place] for key in keys], of) for place, of in ((0, pa.string()), (1, pa.float64())))
    return pa.table({"ts": np.arange(len(keys)), "word": words.cast(kind), "number": numbers})


@given(st.lists(KEYS, min_size=1, max_size=30), st.integers(1, 5), st.data())
def test_each_stream_is_in_one_bucket(keys: list[tuple[str | None, float | None]], of: int, data: st.DataObject) -> None:
    plain, encoded = table_of(keys, pa.string()), table_of(keys, pa.dictionary(pa.int32(), pa.string()))
    marks = np.stack([rows_of_bucket(columns_of(plain), (1, 2), KeyBucket(number, of)) for number in range(of)])
    assert (marks.sum(axis=0) == 1).all()
    numbers = marks.argmax(axis=0).tolist()
    # zeros of either sign are one key, and so are all NaNs
    same = [(word, "NaN" if number != number else number) for word, number in keys]
    assert len(set(zip(same, numbers, strict=True))) == len(set(same))
    low = data.draw(st.integers(0, len(keys)), "low")
    number = data.draw(st.integers(0, of - 1), "number")
    assert rows_of_bucket(columns_of(encoded.slice(low)), (1, 2), KeyBucket(number, of)).tolist() == marks[number, low:].tolist()


def test_blocks_of_events_are_in_the_buckets_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = columns_of(pa.table({"ts": np.arange(100), "key": np.arange(100) % 7}))
    whole = [rows_of_bucket(columns, (1,), KeyBucket(number, 3)).tolist() for number in range(3)]
    monkeypatch.setattr(key_hashes, "BLOCK", 8)
    assert [rows_of_bucket(columns, (1,), KeyBucket(number, 3)).tolist() for number in range(3)] == whole


@pytest.mark.parametrize("of", [2, 3, 8])
def test_buckets_are_even(of: int) -> None:
    table = pa.table({"ts": np.arange(40_000), "key": np.arange(40_000)})
    held = [int(rows_of_bucket(columns_of(table), (1,), KeyBucket(number, of)).sum()) for number in range(of)]
    assert max(held) < 1.05 * 40_000 / of
