"""What windows reach of rows, against each pair of rows."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gpu_cep_kernels.phase_one.kept_rows import SPARE
from gpu_cep_kernels.phase_one.rare_events import Nearness, find_spans, keep_spans
from gpu_cep_kernels.rules.scalars import within

LEAST, GREATEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
INTEGERS = st.one_of(st.integers(0, 30), st.sampled_from([LEAST, LEAST + 1, GREATEST]))
REALS = st.one_of(st.integers(0, 60).map(lambda half: half / 2), st.sampled_from([-math.inf, math.inf, -1e300, 1e300]))


@st.composite
def clocks(draw):
    """Times that do not fall, and how far windows reach back and on, of the times' type."""
    if draw(st.booleans()):
        times = np.array(sorted(draw(st.lists(INTEGERS, max_size=30))), np.int64).view(np.uint64)
        lengths = st.one_of(st.integers(0, 9), st.just(2**64 - 1)).map(np.uint64)
    else:
        times = np.array(sorted(draw(st.lists(REALS, max_size=30))), np.float64)
        lengths = st.sampled_from([0.0, 0.5, 3.0, 1e300, math.inf]).map(np.float64)
    return times, draw(lengths), draw(lengths)


def reached(clock, row, other, before, after):
    low, high = min(row, other), max(row, other)
    with np.errstate(all="ignore"):
        return within(clock[low], clock[high], before if other < row else after)


@given(clocks(), st.data())
def test_a_row_reaches_no_further_than_its_bounds(clock_and_lengths, data):
    clock, before, after = clock_and_lengths
    size = len(clock)
    row = data.draw(st.integers(0, size - 1)) if size else 0
    rows = np.arange(row, row + bool(size))
    first, last = data.draw(st.integers(0, row)), data.draw(st.integers(min(row + 1, size), size))
    begins, ends = np.full(len(rows), -1), np.full(len(rows), -1)
    reach = Nearness(clock, before, after)
    find_spans(0, len(rows), rows, np.full(len(rows), first), np.full(len(rows), last), reach, begins, ends)
    found = [each for begin, end in zip(begins.tolist(), ends.tolist(), strict=True) for each in range(begin, end)]
    assert found == [other for other in range(first, last) if reached(clock, row, other, before, after)]


@given(st.lists(st.tuples(st.integers(0, 2), st.booleans()), max_size=30), st.booleans())
def test_marked_rows_of_spans_are_kept(rows, keeps_all):
    marks, inside = np.array([mark for mark, _ in rows], np.uint8), [False, *(flag for _, flag in rows), False]
    begins = np.array([k for k in range(len(rows)) if inside[k + 1] and not inside[k]], np.int64)
    ends = np.array([k + 1 for k in range(len(rows)) if inside[k + 1] and not inside[k + 2]], np.int64)
    kept = np.full(sum(inside) + SPARE, -1, np.int32)
    count = keep_spans(begins, ends, marks, keeps_all, kept)
    assert kept[:count].tolist() == [k for k, (mark, flag) in enumerate(rows) if flag and (mark or keeps_all)]
