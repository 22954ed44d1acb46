"""What a slice of time settles of the matches that skip_past_last keeps."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gpu_cep.analysis.options import Options
from gpu_cep.engine.answers import answer
from gpu_cep.engine.events.batches import Batch
from gpu_cep.engine.events.own_events import OwnRows, TimeSlice
from gpu_cep.engine.events.positions import choose_disjoint
from gpu_cep.engine.events.reported import Reported
from gpu_cep.engine.events.runs import ContiguousMatches
from gpu_cep.engine.events.settling import Borders, mark_disjoint, settle
from gpu_cep.engine.output.after_match import settle_batch
from gpu_cep.plan.settings import Settings
from gpu_cep.queries.plans import make_plan

small = st.integers(0, 3)
WINDOW = 6


def settled(streams, begins, ends, own):
    """The matches of a slice that are kept, and those kept for certain; events are numbered by their times."""
    return settle(streams, begins, ends, *told(own, WINDOW, begins, ends))


def told(own, window, begins, ends):
    """Whether matches begin when all of earlier slices have ended, and whether they end before those of later ones begin."""
    late = np.ones(len(begins), np.bool_) if own.begin is None else begins > own.begin + window
    return late, np.ones(len(ends), np.bool_) if own.end is None else ends < own.end


def of_one_stream(begins, ends, own):
    kept, final = settled(np.zeros(len(begins), np.int64), np.array(begins), np.array(ends), own)
    return kept.tolist(), kept[final].tolist()


@given(st.dictionaries(st.tuples(small, st.integers(0, 40)), st.integers(0, WINDOW), max_size=40), st.integers(1, 20))
@example({(0, begin): 1 for begin in range(41)}, 10)  # each overlaps the next, over all slices
@example({(0, begin): WINDOW for begin in range(41)}, 2)  # and is longer than a slice
def test_slices_settle_what_a_choice_among_all_matches_gives(matches, length):
    """Matches of up to a window, cut at every `length` ticks by first events."""
    rows = np.array([(key, begin, begin + long) for (key, begin), long in sorted(matches.items())], np.int64).reshape(-1, 3)
    streams, begins, ends = rows.T
    taken = mark_disjoint(streams, begins, ends)
    kept, final = [], []
    for number in range(40 // length + 1):
        own = np.flatnonzero(begins // length == number)
        borders = TimeSlice(number * length if number else None, (number + 1) * length if number < 40 // length else None)
        found = settled(streams[own], begins[own], ends[own], borders)
        kept += own[found.kept].tolist()
        final += own[found.kept[found.final]].tolist()
    unsettled = np.array(sorted(set(kept) - set(final)), np.int64)
    places = np.zeros(len(unsettled), np.int64)
    others = choose_disjoint(streams[unsettled], (begins[unsettled], places), (ends[unsettled], places))
    assert sorted([*final, *unsettled[others].tolist()]) == np.flatnonzero(taken).tolist()


@given(st.integers(0, 2**32), st.integers(1, 41), st.sets(st.integers(1, 4 * 47 - 1), min_size=1, max_size=8))
def test_batches_drop_only_what_their_slice_drops(seed, length, cuts):
    """Events 47 k to 47 k + 46 are those of key k, at 0 to 46; batches end at `cuts`, and windows reach beyond them."""
    random = np.random.default_rng(seed)
    streams, begins = np.divmod(np.flatnonzero(random.random(4 * 41) < random.random()), 41)
    ends = begins + random.integers(1, WINDOW + 1, len(begins))
    first, last = streams * 47 + begins, streams * 47 + ends
    ordered = SimpleNamespace(offsets=np.arange(5) * 47, times=np.tile(np.arange(47), 4), rows=np.arange(4 * 47))
    limits = [0, *sorted(cuts), 4 * 47]
    kept, final = [], []
    for low, high in zip(range(0, 41, length), [*range(length, 41, length), None], strict=True):
        own = TimeSlice(low or None, high)
        borders = Borders.of_times(own, low - 1 + WINDOW if low else None)
        parts = [_settled_batch(ordered, borders, own, first, last, *each) for each in pairwise(limits)]
        found = np.concatenate(parts)
        late, early = borders.apart.holds(begins[found]), borders.own.holds(ends[found])
        settled_ones = settle(streams[found], first[found], last[found], late, early)
        kept += found[settled_ones.kept].tolist()
        final += found[settled_ones.kept[settled_ones.final]].tolist()
    unsettled = np.array(sorted(set(kept) - set(final)), np.int64)
    places = np.zeros(len(unsettled), np.int64)
    others = choose_disjoint(streams[unsettled], (begins[unsettled], places), (ends[unsettled], places))
    assert sorted([*final, *unsettled[others].tolist()]) == np.flatnonzero(mark_disjoint(streams, first, last)).tolist()


def _settled_batch(ordered, borders, own, first, last, low, high):
    """The numbers of the matches of a slice that one of its batches leaves."""
    inside = np.flatnonzero((first >= low) & (first < high) & own.holds(ordered.times[first]))
    counts = np.stack([np.zeros(len(inside), np.int32), inside.astype(np.int32)], axis=1)
    return settle_batch(ordered, ContiguousMatches(first[inside], last[inside], counts), Batch(low, high, high), borders).counts[:, 1]


def test_slices_settle_what_lies_far_from_their_borders():
    begins, ends = [0, 1, 2, 20, 21, 22, 36, 38, 39], [9, 9, 9, 25, 25, 25, 39, 42, 41]
    kept, final = of_one_stream(begins, ends, TimeSlice(3, 40))
    assert (kept, final) == ([0, 1, 2, 3, 6], [3, 6])


def test_matches_that_end_in_a_later_slice_are_not_settled():
    assert of_one_stream([20, 38, 39], [25, 41, 42], TimeSlice(3, 40)) == ([0, 1, 2], [0])


def test_a_match_around_another_is_dropped_though_neither_is_settled():
    assert of_one_stream([4, 5, 38, 39], [9, 8, 42, 41], TimeSlice(3, 40)) == ([1, 3], [])


@given(st.dictionaries(st.integers(0, 30), st.integers(0, WINDOW), max_size=30), st.integers(-1, WINDOW))
def test_slices_settle_what_is_taken_whatever_earlier_ones_take(matches, reached):
    """The last match that earlier slices take ends at any time up to `reached`, or there is none."""
    begins = np.array(sorted(matches), np.int64)
    ends, streams = begins + [matches[begin] for begin in begins.tolist()], np.zeros(len(begins), np.int64)
    kept, final = settle(streams, begins, ends, begins > reached, np.ones(len(begins), np.bool_))
    behind = [np.flatnonzero(begins > time) for time in range(-1, reached + 1)]
    taken = [set(own[mark_disjoint(streams[own], begins[own], ends[own])].tolist()) for own in behind]
    assert kept.tolist() == sorted(set.union(*taken))
    assert kept[final].tolist() == sorted(set.intersection(*taken))


def test_a_chain_without_gaps_is_settled_where_all_choices_meet():
    """What earlier slices take ends at 3 at the latest; so 0 to 6 or 4 to 8 is taken, 5 to 10 never, and 9 to 15 in any case."""
    assert of_one_stream([0, 4, 5, 9, 18], [6, 8, 10, 15, 24], TimeSlice(-3, 40)) == ([0, 1, 3, 4], [3, 4])


def test_a_chain_that_begins_near_a_border_is_not_settled():
    """If the first match is taken, the last one is; if an earlier slice overlaps it, the one between them is."""
    assert of_one_stream([0, 4, 8], [6, 9, 12], TimeSlice(-3, 40)) == ([0, 1, 2], [])


def test_the_first_and_the_last_slice_settle_what_is_at_their_ends():
    assert of_one_stream([0, 4, 8], [6, 9, 12], TimeSlice()) == ([0, 2], [0, 2])


def test_gaps_of_one_stream_settle_nothing_in_the_next():
    streams, begins, ends = np.array([0, 1, 1]), np.array([20, 9, 10]), np.array([22, 12, 13])
    kept, final = settled(streams, begins, ends, TimeSlice(5, 40))
    assert (kept.tolist(), final.tolist()) == ([0, 1, 2], [True, False, False])


@pytest.mark.parametrize("output", ["matches", "events", "count"])
def test_results_tell_the_last_end_of_matches_that_are_not_settled(output):
    """Pairs of neighbours at 0 to 11 of two keys; the slice begins at 3, and ends at 11."""
    times = [time for time in range(12) for _ in "xy"]
    table = pa.table({"ts": times, "key": list("xy" * 12), "type": [("A", "B")[time % 2] for time in times]})
    settings = Settings(output=output, after_match="skip_to_next")
    plan = replace(make_plan("PATTERN SEQ(A a, B b) WITHIN 2", table.schema, Options(partition_by=("key",)), settings), ends=(0,))
    own, moments = TimeSlice(3, 11), np.array(times)
    found = answer(plan, table, reported=Reported(own, borders=Borders(*map(OwnRows, told(own, 2, moments, moments)))))
    rows = found.group_by(["ts_first", "ts_last"], use_threads=False).aggregate([([], "count_all")]).to_pylist()
    if output == "count":
        assert found.to_pylist() == [
            *({"key": key, "count": 2, "ts_first": 6, "ts_last": None} for key in "xy"),
            *({"key": key, "count": 1, "ts_first": begin, "ts_last": begin + 1} for key in "xy" for begin in (4, 10)),
        ]
    else:
        each = 4 if output == "events" else 2
        expected = {(4, 5): each, (6, None): each, (8, None): each, (10, 11): each}
        assert {(row["ts_first"], row["ts_last"]): row["count_all"] for row in rows} == expected
