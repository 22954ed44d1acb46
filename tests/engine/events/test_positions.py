"""Positions in streams of which a table holds parts, and the matches that are taken by them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_cep.analysis.options import Options
from gpu_cep.engine.answers import answer
from gpu_cep.engine.events.positions import choose_disjoint, may_be_chosen, positions_of_events
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.plan.settings import Settings
from gpu_cep.query_plans import make_plan

small = st.integers(0, 3)


@given(st.lists(st.tuples(small, small, small), max_size=12))
def test_positions_ascend_with_the_order_of_events(events):
    keys, times, ranks = zip(*events, strict=True) if events else ((), (), ())
    table = pa.table({"key": pa.array(keys, pa.int64()), "ts": pa.array(times, pa.float64()), "n": pa.array(ranks, pa.int64())})
    options = Options(partition_by=("key",), order_by=("n",))
    plan = make_plan("PATTERN SEQ(a, b)", table.schema, options, Settings())
    found = list(zip(keys, *(each.tolist() for each in positions_of_events(plan, EventColumns(table, plan.query))), strict=True))
    in_order = [found[e] for e in sorted(range(len(events)), key=lambda e: (*events[e], e))]
    expected = [(key, float(time)) for key, time, _ in sorted(events)]
    assert [position[:2] for position in in_order] == expected
    for before, after in zip(in_order, in_order[1:], strict=False):
        assert after[2] == (before[2] + 1 if after[:2] == before[:2] else 0)


@given(st.dictionaries(st.tuples(small, small, small), st.tuples(small, small), max_size=10), st.integers(1, 3))
def test_matches_are_taken_behind_one_another(matches, times):
    rows = [(key, (t, p), max((t, p), last)) for (key, t, p), last in matches.items() for _ in range(times)]
    taken, reached = set(), {}
    for key, last, first in sorted({(key, last, first) for key, first, last in rows}):
        if first > reached.get(key, (-1, -1)):
            taken.add((key, first))
            reached[key] = last
    streams = np.array([key for key, _, _ in rows], np.int64)
    first, last = (tuple(np.array([row[end][part] for row in rows], np.int64) for part in range(2)) for end in (1, 2))
    assert choose_disjoint(streams, first, last).tolist() == [(key, begin) in taken for key, begin, _ in rows]


@given(st.dictionaries(st.tuples(small, st.integers(0, 40)), st.integers(0, 6), max_size=40), st.integers(1, 20), st.integers(1, 2))
def test_matches_that_a_slice_drops_are_never_taken(matches, length, times):
    """Matches of up to six ticks, cut at every `length` ticks by first events."""
    rows = np.array([(key, begin, begin + long) for (key, begin), long in matches.items() for _ in range(times)], np.int64).reshape(-1, 3)
    streams, begins, ends = rows.T
    first, last = ((values, np.zeros(len(rows), np.int64)) for values in (begins, ends))
    taken = choose_disjoint(streams, first, last)
    kept = np.zeros(len(rows), np.bool_)
    for number in range(40 // length + 1):
        own = np.flatnonzero(begins // length == number)
        parts = [(values[own], places[own]) for values, places in (first, last)]
        reached = number * length - 1 + 6 if number else None
        kept[own] = may_be_chosen(streams[own], *parts, reached, (number + 1) * length if number < 40 // length else None)
    assert not (taken & ~kept).any()
    among = np.flatnonzero(kept)
    again = choose_disjoint(streams[among], *((values[among], places[among]) for values, places in (first, last)))
    assert again.tolist() == taken[among].tolist()


def test_a_slice_drops_what_overlaps_far_from_its_borders():
    begins = np.array([0, 1, 2, 20, 21, 22, 38, 39], np.int64)
    ends = np.array([9, 9, 9, 25, 25, 25, 42, 41], np.int64)
    places, streams = np.zeros(8, np.int64), np.zeros(8, np.int64)
    kept = may_be_chosen(streams, (begins, places), (ends, places), 9, 40)
    assert kept.tolist() == [True, True, True, True, False, False, True, True]


def test_a_slice_keeps_a_chain_that_begins_near_its_border():
    """If the first match is taken, the last one is; if an earlier slice overlaps it, the one between them is."""
    begins, ends = np.array([0, 4, 8], np.int64), np.array([6, 9, 12], np.int64)
    places, streams = np.zeros(3, np.int64), np.zeros(3, np.int64)
    assert may_be_chosen(streams, (begins, places), (ends, places), 3, 40).all()


@pytest.mark.parametrize("output", ["matches", "events"])
def test_results_end_with_what_the_ends_of_matches_hold(output):
    table = pa.table({"ts": [1, 2, 3, 4], "type": list("ABAB"), "n": [5, 6, 7, 8]})
    plan = make_plan("PATTERN SEQ(A a, B b)", table.schema, Options(), Settings(output=output))
    found = answer(replace(plan, ends=(2, 1)), table)
    plain = answer(plan, table)
    assert found.column_names == [*plain.column_names, "n_first", "type_first", "n_last", "type_last"]
    assert found.select(plain.column_names).equals(plain)
    rows = 2 if output == "events" else 1
    ends = (
        {"n_first": 5, "type_first": "A", "n_last": 6, "type_last": "B"},
        {"n_first": 7, "type_first": "A", "n_last": 8, "type_last": "B"},
    )
    assert found.select(list(ends[0])).to_pylist() == [end for end in ends for _ in range(rows)]
