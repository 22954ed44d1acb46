"""Held matches of streams in which nothing changes are left alone: what comes out push by push is the same."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa

import gpu_cep as cep
from gpu_cep.engine.slices import disjoint
from gpu_cep.engine.slices.held_matches import HeldMarks, HeldRows
from tests.effort import every_value

QUERIES = {
    "last event": ("PARTITION BY k PATTERN SEQ(A a, B b, C c) WITHIN 60", {}),
    "negation behind": ("PARTITION BY k PATTERN SEQ(A a, B b, NOT(C c)) WITHIN 60", {}),
    "runs": ("PARTITION BY k PATTERN SEQ(A a, b+) WHERE partition_contiguity { b.x >= a.x } WITHIN 60", {}),
    "branches": ("PARTITION BY k PATTERN OR(SEQ(A a, B b), SEQ(C c, NOT(D d), A e)) WITHIN 60", {}),
    "two keys": ("PARTITION BY k, g PATTERN SEQ(A a, B b, NOT(C c)) WITHIN 60", {}),
    "silent keys": ("PARTITION BY k PATTERN SEQ(A a, B b, NOT(C c)) WITHIN 6 EVENTS", {"time_to_live": 90}),
}
PUSH = 50


def events(keys: int) -> pa.Table:
    """Events in order of time, with text keys, some of them NULL, and a dictionary for each of some chunks."""
    random, rows = np.random.default_rng(keys), 1_500
    own = [None if key == 0 else f"key {key}" for key in random.integers(0, keys, rows).tolist()]
    chunks = [pa.array(own[low : low + 400]).dictionary_encode() for low in range(0, rows, 400)]
    times, types = np.cumsum(random.integers(0, 2, rows)), pa.array(list("ABCD")).take(pa.array(random.integers(0, 4, rows)))
    return pa.table({"ts": times, "type": types, "k": pa.chunked_array(chunks), "g": random.integers(0, 2, rows), "x": random.random(rows)})


def pushed(query: str, table: pa.Table, fewest: int, *, saved: bool = False, **options: Any) -> tuple[list[Any], list[int]]:
    """What comes out push by push, and how many matches are held behind each, where so many held ones are looked at by streams."""
    live, tables, held = cep.stream(query, table.schema, after_match="skip_past_last", **options), [], []
    with patch.multiple(disjoint, FEWEST=fewest, PER_NEW=0):
        for low in range(0, len(table), PUSH):
            tables.append(live.push(table.slice(low, PUSH)).to_pylist())
            if saved and low % (3 * PUSH) == 0:
                live = cep.stream.load(live.save())
            held.append(0 if live._state.held is None else len(live._state.held))
        return [*tables, live.finish().to_pylist()], held


@every_value(name=[*QUERIES], output=["matches", "events", "count"])
def test_each_push_gives_the_same_matches(name: str, output: str) -> None:
    query, options = QUERIES[name]
    for keys, saved in ((4, True), (60, False)):
        table = events(keys)
        whole, held = pushed(query, table, 1 << 40, output=output, **options)
        assert sum(map(len, whole))
        apart, kept = pushed(query, table, 0, saved=saved, output=output, **options)
        assert apart == whole
        assert kept == held


def test_only_streams_in_which_something_changes_are_ranked() -> None:
    """Matches of all keys are held, and those of one key end at a time."""
    table, ranked = events(400), []
    rank = disjoint.number_streams

    def counted(query: Any, keys: pa.Table, number: int) -> Any:
        ranked.append(number)
        return rank(query, keys, number)

    with patch.object(disjoint, "number_streams", counted):
        _, held = pushed("PARTITION BY k PATTERN SEQ(A a, b+) WHERE partition_contiguity { b.x >= a.x } WITHIN 400", table, 0)
    # the end of the stream decides all
    assert max(held) > 3 * max(ranked[:-1])


def test_rows_that_are_not_held_any_more_are_given_up() -> None:
    table = pa.table({"x": np.arange(10)})
    held = HeldRows(table, np.zeros(10, np.bool_)).marked(HeldMarks(np.arange(10, dtype=np.uint32), np.arange(10)))
    few, more = held.at(np.array([1, 4])), held.at(np.array([7, 9]))
    assert few.table.num_rows == 10
    both = few.with_more(HeldRows(more.rows, more.given).marked(more.marks))
    assert (both.rows["x"].to_pylist(), both.table.num_rows) == ([1, 4, 7, 9], 4)
    assert both.marks.due.tolist() == [1, 4, 7, 9]
