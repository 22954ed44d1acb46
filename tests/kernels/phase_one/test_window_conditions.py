"""The necessary match conditions against the thesis' definitions, and the matches that can be read off them."""

from __future__ import annotations

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from gpu_cep_kernels.labels_decide.direct import bind_events, count_bindings
from gpu_cep_kernels.phase_one.kept_rows import SPARE
from gpu_cep_kernels.phase_one.window_conditions import (
    chain_windows,
    judge_windows,
    keep_windows,
    labels_overlap,
    prefix_counts,
    select_starts,
)
from gpu_cep_kernels.rules.tables import Strategy
from tests.kernels.reference import matches
from tests.kernels.statistics import summary_statistics
from tests.kernels.streams import of_characters, problems

LABELS = st.lists(st.integers(0, 7), max_size=20)


def fits(stream, v, events):
    return [e for e in events if stream.labels[e] >> v & 1]


def statistic(pattern, stream, v, window):
    """cnt_v of a window (Def. 5.2): the events that fit v and follow one of each variable of the set before."""
    return sum(
        all(any(stream.is_before(f, e) for f in fits(stream, u, window)) for u in pattern.direct(v)) for e in fits(stream, v, window)
    )


def has_ties(stream):
    return stream.strict and len(set(stream.times)) < len(stream.times)


def every_start(stream):
    return np.arange(len(stream.labels))


@given(LABELS)
def test_prefix_counts(labels):
    counts = np.full((3, len(labels) + 1), -1, np.int32)
    prefix_counts(np.array(labels, np.uint64), 3, counts)
    assert counts.tolist() == [[sum(label >> v & 1 for label in labels[:e]) for e in range(len(labels) + 1)] for v in range(3)]


@given(st.lists(st.sampled_from([0, 1, 2, 2**63]), max_size=8), st.sampled_from([0, 3, 2**63 + 1]))
def test_labels_overlap(labels, other):
    assert labels_overlap(np.array([*labels, other], np.uint64)) == (other != 0)
    assert not labels_overlap(np.array(labels, np.uint64))


@given(LABELS)
def test_select_starts(marks):
    starts = np.full(len(marks) + SPARE, -1)
    count = select_starts(np.array(marks, np.uint64), starts)
    assert starts[:count].tolist() == [e for e, mark in enumerate(marks) if mark]


@given(problems())
def test_summary_statistics(problem):
    pattern, stream = problem
    variables = len(pattern.level)
    arrays, starts = stream.arrays(variables), every_start(stream)
    statistics = summary_statistics(starts, arrays.ends, arrays.next_events, pattern.table(), arrays.counts)
    expected = [[statistic(pattern, stream, v, stream.window(e)) for v in range(variables)] for e in starts]
    assert statistics.tolist() == expected
    fewest = sum(minimum for minimum, _ in pattern.quantifiers)
    holds = np.empty(len(starts), np.bool_)
    judge_windows(0, len(starts), starts, arrays.ends, arrays.next_events, pattern.table(), fewest, arrays.counts, holds)
    enough = [all(n >= minimum for n, (minimum, _) in zip(row, pattern.quantifiers, strict=True)) for row in expected]
    assert holds.tolist() == [enough[e] and len(stream.window(e)) >= fewest for e in starts]


def chained(pattern, stream, exact=False):
    """The starts that the chained condition keeps, and what it found to be their earliest events, [variable, start]."""
    variables = len(pattern.level)
    arrays, starts = stream.arrays(variables), every_start(stream)
    earliest, kept = np.full((variables + 1, len(starts) + 1), -1, np.int32), np.full(len(starts) + 1, -1)
    holds = np.empty(len(starts), np.bool_)
    middle = len(starts) // 2
    for low, high in ((0, middle), (middle, len(starts))):
        chain_windows(low, high, starts, arrays.limits, arrays.next_events, pattern.table(), exact, earliest, holds)
    count = keep_windows(holds, starts, earliest[:variables], kept)
    return arrays, kept[:count], earliest[:variables]


def earliest_events(pattern, stream, start):
    """Of each variable in turn the first event behind the earliest of all before it; None if the window has none."""
    found = []
    for v in range(len(pattern.level)):
        later = [e for e in fits(stream, v, stream.window(start)) if all(stream.is_before(found[u], e) for u in pattern.direct(v))]
        if not later:
            return None
        found.append(later[0])
    return found


@given(problems())
def test_chained_windows(problem):
    pattern, stream = problem
    _, selected, earliest = chained(pattern, stream)
    expected = {start: earliest_events(pattern, stream, start) for start in range(len(stream.labels))}
    assert selected.tolist() == [start for start, events in expected.items() if events is not None]
    assert earliest[:, : len(selected)].T.tolist() == [expected[start] for start in selected.tolist()]


@given(problems())
def test_necessary_conditions_keep_every_match(problem):
    pattern, stream = problem
    starts = {min(sum(match, ())) for match in matches(pattern, stream, Strategy.ANY)}
    assert starts <= set(chained(pattern, stream)[1].tolist())


@given(problems(st.sampled_from([(1, 1), (1, None)]), max_size=14, exclusive=True))
def test_matches_of_exclusive_variables_are_read_off_the_chain(problem):
    pattern, stream = problem
    # among ties, the successor that is bound first would decide whether a quantified variable still binds
    repeated = [v for v, (_, maximum) in enumerate(pattern.quantifiers) if maximum is None]
    assume(not has_ties(stream) or all(pattern.successors(v) <= 1 for v in repeated))
    arrays, selected, earliest = chained(pattern, stream, exact=True)
    minimal = np.array([0 < stream.labels[start] < 1 << pattern.sizes[0] for start in selected], np.bool_)
    starts, earliest = selected[minimal], np.ascontiguousarray(earliest[:, : len(selected)][:, minimal])
    counts = np.full((len(starts), len(pattern.level)), -1, np.int32)
    count_bindings(0, len(starts), starts, arrays.limits, pattern.table(), arrays.next_events.occurrence, earliest, counts)
    offsets = np.concatenate([[0], np.cumsum(counts.sum(axis=1))]).astype(np.int64)
    events = np.full(int(offsets[-1]), -1)
    bind_events(0, len(starts), 100, offsets, counts, arrays.next_events.occurrence, earliest, events)
    borders = np.concatenate([[0], np.cumsum(counts)]).astype(int)
    bindings = [tuple((events[low:high] - 100).tolist()) for low, high in zip(borders, borders[1:], strict=False)]
    width = len(pattern.level)
    found = [tuple(bindings[m * width : (m + 1) * width]) for m in range(len(starts))]
    assert found == matches(pattern, stream, Strategy.NEXT)


def test_the_chain_of_a_word():
    pattern, stream = of_characters("ab-cab-c", (1, 1, 1), ((1, 1),) * 3, length=4)
    _, selected, earliest = chained(pattern, stream)
    assert selected.tolist() == [0, 3, 4]
    assert earliest[:, :3].T.tolist() == [[0, 1, 3], [4, 5, 7], [4, 5, 7]]
