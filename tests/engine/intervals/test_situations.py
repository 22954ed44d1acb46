"""The situations of a stream by example: where runs begin, end and are cut, and when they come to be known."""

from __future__ import annotations

from itertools import groupby, product
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest

from gpu_cep.engine.accounting.match_budget import Budget, memory_for_results
from gpu_cep.engine.accounting.profile import Profile
from gpu_cep.engine.events.event_sequence import NO_POSITION
from gpu_cep.engine.events.reported import EVERY_MATCH
from gpu_cep.engine.intervals.situations import DerivedSituations, derive
from gpu_cep.engine.output.footprint import result_footprint
from gpu_cep.engine.phase_one.computed_columns import event_columns
from gpu_cep.engine.phase_one.run import Run
from gpu_cep.keywords import make_options
from gpu_cep.plan.interval_plan import IntervalPlan
from gpu_cep.plan.settings import Settings
from gpu_cep.queries.plans import make_plan
from tests.oracle.lanes import lanes

# First, last and ending row of a situation; it is open if there is none.
Found = tuple[int, int, int | None]


def derived(events: pa.Table, define: str = "A AS a", threads: int = 1, **options: Any) -> DerivedSituations:
    """The situations of `define`, and of Z, which has none."""
    given = {"timestamp": "ts", "partition_by": None, "order_by": None, "type_column": "type"} | options
    chosen = make_options(**given, strategy=None, ties="strict", time_unit=None)
    plan = make_plan(f"DEFINE {define}, Z AS FALSE PATTERN A before Z", events.schema, chosen, Settings())
    assert isinstance(plan, IntervalPlan)
    columns = event_columns(plan, events)
    budget = Budget(None, None, lambda: result_footprint(plan, columns), lambda: memory_for_results(1))
    return derive(plan, Run(plan, columns, (), EVERY_MATCH, budget, threads, Profile()))


def rows(found: DerivedSituations, name: int = 0) -> list[Found]:
    """The input rows of the situations of one name."""
    runs, own = found.runs, slice(int(found.runs.names[name]), int(found.runs.names[name + 1]))
    first, last = (found.events.input_rows(positions[own]).tolist() for positions in (runs.first, runs.last))
    ended = [None if at == NO_POSITION else int(found.events.input_rows(np.array([at]))[0]) for at in runs.ended[own]]
    return list(zip(first, last, ended, strict=True))


def situations(lane: str, ts: list[Any] | None = None, define: str = "A AS a", **options: Any) -> list[Found]:
    return rows(derived(lanes(lane, ts=ts), define, **options))


@pytest.mark.parametrize(
    ("lane", "ts", "found"),
    [
        ("#", None, []),
        (".", None, []),
        ("#.", None, [(0, 0, 1)]),
        (".#.", None, [(1, 1, 2)]),
        ("##.#.", None, [(0, 1, 2), (3, 3, 4)]),
        (".##", None, []),
        ("##?#.", None, [(0, 1, 2), (3, 3, 4)]),
        ("##.", [0, 1_000_000, 1_000_001], [(0, 1, 2)]),
        ("#..", [1, 1, 2], []),
        ("##..", [1, 1, 1, 2], []),
        ("##.", [1, 1, 2], [(0, 1, 2)]),
        ("##.", [0, 1, 1], [(0, 1, 2)]),
        ("#.#.", [1, 2, 2, 3], [(0, 0, 1), (2, 2, 3)]),
        (".#.#.", [1, 1, 1, 1, 2], [(3, 3, 4)]),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_runs_end_with_the_event_behind_them(lane, ts, found):
    """A gap in time ends none; those that are open at the end, or last no time, are none."""
    assert situations(lane, ts) == found


@pytest.mark.parametrize(
    ("lane", "ts", "found"),
    [
        ("#", None, [(0, 0, None)]),
        (".##", None, [(1, 2, None)]),
        ("#.#", None, [(0, 0, 1), (2, 2, None)]),
        ("#.#", [1, 1, 1], [(2, 2, None)]),
    ],
)
def test_open_runs_are_situations_of_early_detection(lane, ts, found):
    assert situations(lane, ts, detect="early") == found


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
@pytest.mark.parametrize("block", [1, 2, 100])
def test_seams_fall_anywhere_in_a_run(threads, block):
    for marks in product("#.", repeat=6):
        lane = "".join(marks)
        with patch("gpu_cep.engine.intervals.borders.BLOCK", block):
            assert rows(derived(lanes(lane), threads=threads)) == by_definition(lane)
            assert rows(derived(lanes(lane), threads=threads, detect="early")) == by_definition(lane, early=True)


def by_definition(lane: str, early: bool = False) -> list[Found]:
    runs = [(mark, [place for place, _ in own]) for mark, own in groupby(enumerate(lane), key=lambda event: event[1])]
    found = [(own[0], own[-1], own[-1] + 1 if own[-1] + 1 < len(lane) else None) for mark, own in runs if mark == "#"]
    return [run for run in found if early or run[2] is not None]


@pytest.mark.parametrize("threads", [1, 2, 5, 12])
@pytest.mark.parametrize("detect", ["final", "early"])
def test_streams_are_cut_apart_however_they_lie(threads, detect):
    """Interleaved, one after the other, and backwards; a slice may lack a stream altogether."""
    first, second = "##.##.", ".##.##"
    table = pa.concat_tables([lanes(first, k=["x"] * 6), lanes(second, k=["y"] * 6)])
    stream = {("x", *run) for run in by_definition(first, detect == "early")}
    stream |= {("y", *run) for run in by_definition(second, detect == "early")}
    orders = {"apart": range(12), "interleaved": [row for pair in zip(range(6), range(6, 12), strict=True) for row in pair]}
    for order in (*orders.values(), [*range(11, -1, -1)], [*range(6), *range(11, 5, -1)]):
        events = table.take(pa.array(order))
        place = {at: row % 6 for at, row in enumerate(order)} | {None: None}
        found = rows(derived(events, threads=threads, detect=detect, partition_by=("k",)))
        assert {(events["k"][first].as_py(), place[first], place[last], place[ended]) for first, last, ended in found} == stream


def test_several_names_open_and_close_at_once():
    found = derived(lanes("##..#.", "..###.", "#.#.#."), "A AS a, B AS b, C AS c OR b", threads=2)
    assert [rows(found, name) for name in range(4)] == [[(0, 1, 2), (4, 4, 5)], [(2, 4, 5)], [(0, 0, 1), (2, 4, 5)], []]


@pytest.mark.parametrize(
    ("bounds", "lengths"),
    [("AT LEAST 2", [2, 3]), ("AT MOST 2", [1, 2]), ("AT LEAST 2 AT MOST 2", [2]), ("AT LEAST 4", []), ("AT MOST 0", [])],
)
def test_durations_include_their_bounds(bounds, lengths):
    found = situations("#.##.###.", define=f"A AS a {bounds}")
    assert [last - first + 1 for first, last, _ in found] == lengths


LEAST, GREATEST = -(2**63), 2**63 - 1


def test_a_duration_may_be_all_there_are_of_64_bits():
    assert situations("#.", [LEAST, GREATEST], "A AS a AT LEAST 9223372036854775807") == [(0, 0, 1)]
    assert situations("#.", [LEAST, GREATEST], "A AS a AT MOST 9223372036854775807") == []
    assert situations("#.", [LEAST, LEAST + 1], "A AS a AT MOST 1") == [(0, 0, 1)]


def test_no_time_passes_from_infinity_to_infinity():
    infinity = float("inf")
    assert situations("#.#.", [-infinity, -infinity, 0.0, infinity]) == [(2, 2, 3)]
    assert situations("#.#.", [-infinity, 0.0, infinity, infinity], "A AS a AT LEAST 1") == [(0, 0, 1)]


def test_ties_are_in_the_order_of_order_by_then_of_rows():
    events = lanes("#.#.", ts=[0, 0, 0, 5], v=[2, 1, 3, 0])
    assert rows(derived(events)) == [(2, 2, 3)]
    assert rows(derived(events, order_by=("v",))) == [(0, 2, 3)]


@pytest.mark.parametrize("threads", [1, 3])
def test_rows_need_no_order(threads):
    events = lanes("##.##.")
    order = [5, 0, 3, 1, 4, 2]
    found = rows(derived(events.take(pa.array(order)), threads=threads))
    assert [(order[first], order[last], order[ended]) for first, last, ended in found if ended is not None] == [(0, 1, 2), (3, 4, 5)]


@pytest.mark.parametrize(
    ("bounds", "known"),
    [
        *[("", [0, 4]), ("AT LEAST 0", [0, 4]), ("AT LEAST 1", [1, 5]), ("AT LEAST 3", [3]), ("AT LEAST 4", [])],
        *[("AT MOST 9", [3]), ("BETWEEN 1 AND 9", [3])],
    ],
)
def test_early_a_situation_is_known_from_its_start_from_when_it_lasts_long_enough_or_from_its_end(bounds, known):
    """The first lasts from 0 to 3, the second from 4 on."""
    found = derived(lanes("###.##"), f"A AS a = TRUE {bounds}", detect="early")
    assert found.situations.known.tolist() == [2 * event for event in known]


def test_early_endpoints_are_twice_the_first_events_of_their_times():
    found = derived(lanes("..###.#", ts=[0, 5, 5, 7, 8, 8, 8]), "A AS a", detect="early")
    assert (found.situations.start.tolist(), found.situations.end.tolist()) == ([2, 8], [8, 14])
    every = np.arange(7), np.zeros(7, np.int64)
    first, last = found.events.tied_events(*every)
    assert (first.tolist(), last.tolist()) == ([0, 1, 1, 3, 4, 4, 4], [0, 2, 2, 3, 6, 6, 6])
    assert found.events.moments(*every, found.events.times).tolist() == first.tolist()


@pytest.mark.parametrize(("bounds", "known"), [("", [2, 6]), ("AT LEAST 4", [5]), ("AT MOST 4", [5])])
def test_early_an_end_by_a_gap_lies_before_the_event_at_which_it_is_known(bounds, known):
    """The first lasts from 1 to 5, the other from 9 on; both are measured against windows at 9, where the silence ends."""
    found = derived(lanes(".###", ts=[0, 1, 2, 9]), f"A AS a = TRUE {bounds}", detect="early", gap=3)
    assert found.situations.known.tolist() == known
    assert found.situations.end[0] == 5
    assert (found.runs.end[0], found.situations.end_clock[0]) == (5, 9)


def test_early_a_stream_ends_where_the_next_begins():
    """Whether a run lasts long enough is for events of its own stream to say."""
    events = pa.concat_tables([lanes(".#", k=[1, 1]), lanes("##.", ts=[3, 9, 20], k=[2, 2, 2])])
    found = derived(events, "A AS a AT LEAST 5", detect="early", partition_by=("k",))
    assert rows(found) == [(2, 3, 4)]


def lasting(found: DerivedSituations) -> list[tuple[int, int]]:
    """From when to when the situations last."""
    return list(zip(found.situations.start.tolist(), found.situations.end.tolist(), strict=True))


@pytest.mark.parametrize(
    ("lane", "ts", "lasts"),
    [
        ("##.", [0, 3, 4], [(0, 4)]),
        ("##.", [0, 4, 5], [(0, 3), (4, 5)]),
        ("##.", [0, 1, 9], [(0, 4)]),
        ("#.#.", [0, 9, 10, 11], [(0, 3), (10, 11)]),
        ("##", [0, 9], [(0, 3)]),
        ("#.##", [0, 1, 2, 99], [(0, 1), (2, 5)]),
        ("##..", [LEAST, GREATEST - 1, GREATEST, GREATEST], [(LEAST, LEAST + 3), (GREATEST - 1, GREATEST)]),
    ],
)
@pytest.mark.parametrize("threads", [1, 2, 4])
def test_a_longer_gap_ends_a_situation_so_long_after_its_last_event(lane, ts, lasts, threads):
    for block in (1, 100):
        with patch("gpu_cep.engine.intervals.borders.BLOCK", block):
            assert lasting(derived(lanes(lane, ts=ts), gap=3, threads=threads)) == lasts


def test_no_gap_at_all_leaves_ties_together():
    assert lasting(derived(lanes("##.", ts=[5, 5, 6]), gap=0)) == []
    assert lasting(derived(lanes("##.", ts=[5, 6, 6]), gap=0)) == []
    assert lasting(derived(lanes("##.", ts=[5.0, 6.0, 7.0]), gap=0.5)) == [(5.0, 5.5), (6.0, 6.5)]


def test_gaps_are_those_of_a_stream():
    events = lanes("#####.", k=[1, 2, 1, 2, 1, 1], ts=[0, 2, 4, 6, 8, 9])
    assert lasting(derived(events, gap=3, partition_by=("k",))) == [(0, 3), (4, 7), (8, 9), (2, 5)]
    assert lasting(derived(events, gap=4, partition_by=("k",))) == [(0, 9)]
