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
from gpu_cep.engine.events.positions import choose_disjoint, positions_of_events
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.plan.settings import Settings
from gpu_cep.queries.plans import make_plan

small = st.integers(0, 3)


@given(st.lists(st.tuples(small, small, small), max_size=12))
def test_positions_ascend_with_the_order_of_events(events):
    keys, times, ranks = zip(*events, strict=True) if events else ((), (), ())
    table = pa.table({"key": pa.array(keys, pa.int64()), "ts": pa.array(times, pa.float64()), "n": pa.array(ranks, pa.int64())})
    options = Options(partition_by=("key",), order_by=("n",))
    plan = make_plan("PATTERN SEQ(a, b)", table.schema, options, Settings())
    found = list(zip(keys, *(each.tolist() for each in positions_of_events(plan, EventColumns(table, plan.query, threads=1))), strict=True))
    in_order = [found[e] for e in sorted(range(len(events)), key=lambda e: (*events[e], e))]
    expected = [(key, float(time)) for key, time, _ in sorted(events)]
    assert [position[:2] for position in in_order] == expected
    for before, after in zip(in_order, in_order[1:], strict=False):
        assert after[2] == (before[2] + 1 if after[:2] == before[:2] else 0)


ticks = st.sampled_from([1, 0.5, 1 << 61])


@given(st.dictionaries(st.tuples(small, small, small), st.tuples(small, small), max_size=10), st.integers(1, 3), ticks)
def test_matches_are_taken_behind_one_another(matches, times, tick):
    rows = [(key, (t, p), max((t, p), last)) for (key, t, p), last in matches.items() for _ in range(times)]
    taken, reached = set(), {}
    for key, last, first in sorted({(key, last, first) for key, first, last in rows}):
        if first > reached.get(key, (-1, -1)):
            taken.add((key, first))
            reached[key] = last
    streams = np.array([key for key, _, _ in rows], np.int64)
    first, last = ((column(rows, end, 0) * tick, column(rows, end, 1)) for end in (1, 2))
    assert choose_disjoint(streams, first, last).tolist() == [(key, begin) in taken for key, begin, _ in rows]


def column(rows, end, part):
    return np.array([row[end][part] for row in rows], np.int64)


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
