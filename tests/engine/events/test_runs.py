"""Matches of neighbours: what they bind, as they are and in an order of their own, and those that do not overlap."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_cep.engine.events.matches import Ends, ones
from gpu_cep.engine.events.runs import ContiguousMatches
from gpu_cep.engine.output.after_match import take_runs_apart

# where each begins, and how many events each of three variables binds
MATCHES = st.lists(st.tuples(st.integers(0, 9), *[st.integers(1, 6)] * 3), max_size=9)
# no more than there may be: rows are copied several at a time
ROWS = np.arange(27, dtype=np.int32) * 7


def runs_of(matches):
    first, counts = np.array([m[0] for m in matches], np.int64), np.array([m[1:] for m in matches], np.int32).reshape(-1, 3)
    return ContiguousMatches(first, first + counts.sum(axis=1) - 1, counts)


def bindings(match):
    """The rows that each variable binds."""
    begin, rows = match[0], []
    for count in match[1:]:
        rows.append([7 * event for event in range(begin, begin + count)])
        begin += count
    return rows


def listed(found, variables, threads):
    """The rows of some variables, as lists for each match."""
    lists = found.bound_rows(np.array(variables, np.int64), ROWS, threads)
    return [[rows[low:high].tolist() for low, high in zip(places, places[1:], strict=False)] for rows, places in lists]


@given(MATCHES, st.sets(st.integers(0, 2)).map(sorted), st.integers(1, 3), st.data())
def test_rows_of_variables(matches, variables, threads, data):
    """As they are, and some in an order of their own."""
    chosen = data.draw(st.lists(st.integers(0, len(matches) - 1), unique=True)) if matches else []
    runs = runs_of(matches)
    for found, wanted in ((runs, matches), (runs.reorder(np.array(chosen, np.int64)), [matches[m] for m in chosen])):
        assert listed(found, variables, threads) == [[bindings(match)[v] for match in wanted] for v in variables]
        assert (len(found), found.bound) == (len(wanted), sum(sum(match[1:]) for match in wanted))
        assert found.first.tolist() == [match[0] for match in wanted]
        assert found.last.tolist() == [match[0] + sum(match[1:]) - 1 for match in wanted]
        assert found.counts.tolist() == [[*match[1:]] for match in wanted]
        assert (7 * found.events).tolist() == [row for match in wanted for rows in bindings(match) for row in rows]
        assert found.binds_all


@given(MATCHES, st.sets(st.tuples(st.integers(0, 2), st.booleans())).map(sorted), st.integers(1, 3), st.data())
def test_rows_of_the_first_and_last_events_of_variables(matches, ends, threads, data):
    order = data.draw(st.permutations(range(len(matches))))
    runs, asked = runs_of(matches), Ends(np.array([v for v, _ in ends], np.int64), np.array([last for _, last in ends], np.bool_))
    for found, wanted in ((runs, matches), (runs.reorder(np.array(order, np.int64)), [matches[m] for m in order])):
        picked = found.rows_of_ends(asked, ROWS, threads)
        assert picked.tolist() == [[bindings(match)[v][-last] for match in wanted] for v, last in ends]


@given(st.lists(st.integers(0, 9), max_size=9), st.integers(1, 3), st.data())
def test_matches_of_single_variables_need_no_counts(starts, threads, data):
    order = data.draw(st.permutations(range(len(starts))))
    first = np.array(starts, np.int64)
    ordered = ContiguousMatches(first, first + 1, ones(len(first), 2)).reorder(np.array(order, np.int64))
    assert ordered.single
    for variables in ([0, 1], [1], []):
        rows = ordered.rows_of_singles(np.array(variables, np.int64), ROWS, threads)
        assert rows.tolist() == [[7 * (starts[m] + v) for m in order] for v in variables]
    assert listed(ordered, [1], threads) == [[[7 * (starts[m] + 1)] for m in order]]


@pytest.mark.parametrize("threads", [1, 2])
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 4)), max_size=12))
def test_matches_that_do_not_overlap(threads, matches):
    """The first to end are taken, each behind the one before; all of them if none overlap."""
    starts = np.cumsum([gap + 1 for gap, _ in matches]).tolist()
    ends = [start + length - 1 for start, (_, length) in zip(starts, matches, strict=True)]
    first, last = np.array(starts, np.int64), np.array(ends, np.int64)
    kept, reached = [], -1
    for end, start in sorted(zip(ends, starts, strict=True)):
        if start > reached:
            kept.append((start, end))
            reached = end
    found = take_runs_apart(ContiguousMatches(first, last, (last - first + 1).astype(np.int32)[:, np.newaxis]), threads)
    assert [*zip(found.first.tolist(), found.last.tolist(), strict=True)] == kept
