"""Columns that are read chunk by chunk: the matches of joined chunks, and no chunk of a plain column is joined."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_cep as cep
from gpu_cep.engine.input import chunks, event_columns
from gpu_cep.engine.input.pieces import Pieces
from gpu_cep.engine.phase_one import label_events
from tests.effort import every_pair, examples

QUERIES = [
    ("PATTERN SEQ(A a, B b+, C c) WHERE [s] AND b[i].x > b[i-1].x WITHIN 9", {}),
    ("PATTERN SEQ(A a, B b) WHERE b.x > a.x AND b.k >= 0 WITHIN 9", {"strategy": "skip_till_any_match"}),
    ("PATTERN SEQ(a, b+) WHERE [s] AND [k] AND b.f >= 0 WITHIN 9", {"strategy": "partition_contiguity"}),
    ("PATTERN SEQ(A a, B b, C c) WHERE b.x > a.x AND c.x > b.x WITHIN 9", {"strategy": "robust_skip_till_next_match", "partition_by": "s"}),
    ("PATTERN SEQ(a, b) WHERE a.x < 0 AND b.f > 1 AND [s] WITHIN 5", {"order_by": ["k"]}),
    ("DEFINE H AS x > 0, L AS f > 0 PATTERN H overlaps L WITHIN 30", {"partition_by": "s"}),
    ("DEFINE H AS x > 0, L AS f > 0 PATTERN H meets L WITHIN 30", {"partition_by": "s", "detect": "early"}),
]


@st.composite
def chunked_events(draw):
    """A table of several chunks, some of them empty; types share a dictionary, keys may, or are plain text."""
    sizes = draw(st.lists(st.integers(0, 12), min_size=1, max_size=5))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    total, missing = sum(sizes), draw(st.booleans())
    times = np.cumsum(random.integers(0, 3, total))
    begins = np.cumsum([0, *sizes])
    order = draw(st.sampled_from(["ascending", "ascending in chunks", "any"]))
    if order != "ascending":
        times = random.permutation(times)
    if order == "ascending in chunks":
        times = np.concatenate([np.sort(times[begin : begin + size]) for begin, size in zip(begins, sizes, strict=False)])
    types = pa.array(random.choice(list("ABC"), total)).dictionary_encode()
    x, k = random.integers(-5, 5, total).astype(np.float64), random.integers(-3, 3, total)
    whole = pa.table(
        {
            "ts": times,
            "type": types,
            "x": pa.array(x, mask=random.random(total) < 0.2 if missing else None),
            "f": pa.array(random.integers(-3, 3, total).astype(np.float32)),
            "k": pa.array(k.astype(np.int16), mask=random.random(total) < 0.1 if missing else None),
            "s": pa.array(random.choice(["q", "p"], total), mask=random.random(total) < 0.2 if missing else None),
        }
    )
    keys = draw(st.sampled_from(["text", "one dictionary", "a dictionary for each chunk"]))
    source = _encode_keys(whole) if keys == "one dictionary" else whole
    parts = [source.slice(int(begin), size) for begin, size in zip(begins, sizes, strict=False)]
    return whole, pa.concat_tables([_encode_keys(part) if keys == "a dictionary for each chunk" else part for part in parts])


def _encode_keys(part, place=5):
    """A chunk whose keys have a dictionary of their own."""
    return part.set_column(place, "s", part["s"].combine_chunks().dictionary_encode())


@pytest.mark.filterwarnings("ignore::gpu_cep.AbsentValueWarning")
@every_pair(query=QUERIES, threads=[1, 2], dearer=[0, 4])
def test_chunks_that_are_not_joined_have_the_same_matches(monkeypatch, query, threads, dearer):
    """Results take their rows from chunks if they are few, which all are that cost nothing."""
    text, options = query
    monkeypatch.setattr(chunks, "FEWEST_ROWS", 0)
    monkeypatch.setattr(event_columns, "_DEARER", dearer)

    @examples(25, 150)
    @given(events=chunked_events(), output=st.sampled_from(["indices", "matches", "count"]))
    def check(events, output):
        whole, chunked = events
        given_options = {**options, "output": output, "threads": threads}
        joined, apart = (cep.match(table, text, **given_options) for table in (whole.combine_chunks(), chunked))
        assert getattr(joined, "to_pylist", lambda: joined)() == getattr(apart, "to_pylist", lambda: apart)()

    check()


DICTIONARY = "dictionary<values=string, indices=int32, ordered=0>"


def joined_types(monkeypatch) -> list[str]:
    """Return a list that gets the types of the columns that are joined from then on."""
    joined: list[str] = []
    for module, name in ((chunks, "combine_chunks"), (event_columns, "one_array")):
        join = getattr(module, name)
        monkeypatch.setattr(module, name, lambda column, *threads, _join=join: joined.append(str(column.type)) or _join(column, *threads))
    return joined


@pytest.mark.parametrize(("shared", "expected"), [(True, []), (False, [DICTIONARY])])
def test_long_chunks_are_not_joined(monkeypatch, shared, expected):
    """Not the times, values and types of a query; the keys are if they have a dictionary for each chunk."""
    joined = joined_types(monkeypatch)
    size = 1 << 16
    random = np.random.default_rng(1)
    types = pa.array(random.choice(list("ABC"), size)).dictionary_encode()
    part = pa.table({"ts": range(size), "type": types, "x": random.random(size), "s": random.choice(["p", "q"], size)})
    later = part.set_column(0, "ts", pa.array(range(size, 2 * size)))
    if not shared:
        later = later.set_column(3, "s", pa.array(["q"] * size))
    events = pa.concat_tables([_encode_keys(part, 3), _encode_keys(later, 3)])
    assert cep.match(events, "PATTERN SEQ(A a, B b) WHERE [s] AND b.x > a.x WITHIN 9", output="count", threads=1)
    assert joined == expected


def test_results_of_few_matches_join_no_chunks(monkeypatch):
    joined = joined_types(monkeypatch)
    size = 1 << 16
    types = pa.array(["A", "B", *["C"] * (size - 2)]).dictionary_encode()
    part = pa.table({"ts": range(size), "type": types, "other": pa.array(range(size)).cast(pa.string()), "empty": pa.nulls(size)})
    events = pa.concat_tables([part, part.set_column(0, "ts", pa.array(range(size, 2 * size)))])
    found = cep.match(events, "PATTERN SEQ(A a, B b) WITHIN 9", threads=1)
    assert [(row["a"]["other"], row["b"]["ts"], row["b"]["type"]) for row in found.to_pylist()] == [("0", 1, "B"), ("0", size + 1, "B")]
    assert joined == []


@pytest.mark.parametrize("shared", [True, False])
def test_null_keys_of_long_chunks_are_counted(shared):
    """Events without a key are in no match, whether their chunks are joined or not."""
    size = 1 << 16
    keys = pa.array(["p", None] * (size // 2)).dictionary_encode()
    other = keys if shared else pa.array([None, "q"] * (size // 2)).dictionary_encode()
    events = pa.table({"ts": range(2 * size), "type": pa.array(["A", "A", "B", "B"] * (size // 2)), "s": pa.chunked_array([keys, other])})
    found = cep.match(events, "PATTERN SEQ(A a, B b) WHERE [s] WITHIN 2", output="count", threads=1)
    assert found["count"].to_pylist() == [size // 2]


@given(st.lists(st.lists(st.integers(0, 99), max_size=4), min_size=1, max_size=5), st.data())
def test_pieces_are_their_rows(arrays, data):
    pieces = Pieces.of([np.array(array, np.int64) for array in arrays])
    whole = [value for array in arrays for value in array]
    rows = [row for row in range(len(whole)) if data.draw(st.booleans())]
    assert len(pieces) == len(whole)
    assert all(map(len, pieces.arrays)) or not whole
    assert pieces.whole.tolist() == whole
    assert pieces.at(np.array(rows, np.int64)).tolist() == [whole[row] for row in rows]
    shuffled = data.draw(st.permutations(rows))
    assert pieces.at_any(np.array(shuffled, np.int64)).tolist() == [whole[row] for row in shuffled]
    low = data.draw(st.integers(0, len(whole)))
    high = data.draw(st.integers(low, len(whole)))
    assert pieces.between(low, high).tolist() == whole[low:high]


@pytest.mark.parametrize(
    "text",
    ["PATTERN SEQ(A a, B b) WHERE b.x > 1 WITHIN 9", "DEFINE H AS x > 0.9, L AS x < 0.1 PATTERN H before L WITHIN 9"],
)
def test_labels_are_found_chunk_by_chunk(monkeypatch, text):
    """No block of rows that is labelled reaches into a second chunk, so that no values are copied."""
    blocks = []
    whole = label_events.HostBlock
    monkeypatch.setattr(label_events, "HostBlock", lambda columns, low, high: blocks.append((low, high)) or whole(columns, low, high))
    size = 1 << 16
    random = np.random.default_rng(1)
    part = pa.table({"type": pa.array(random.choice(list("ABC"), size)).dictionary_encode(), "x": random.random(size)})
    events = pa.concat_tables([part, part, part]).add_column(0, "ts", pa.chunked_array([pa.array(range(3 * size))]))
    cep.match(events, text, output="count", threads=1)
    assert sum(high - low for low, high in blocks) >= 3 * size
    assert all(low // size == (high - 1) // size for low, high in blocks if low < high)
