"""Label masks against their definition, one event at a time."""

from __future__ import annotations

import math
import operator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_cep_kernels.phase_one.kept_rows import SPARE
from gpu_cep_kernels.phase_one.label_masks import (
    compact,
    mask_by_code,
    mask_by_comparison,
    mask_by_packed_code,
    mask_by_truth,
)
from gpu_cep_kernels.rules.scalars import COMPARISONS

OPERATORS = {"eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge}
EVERYONE = 2**64 - 1
WORDS = st.integers(0, EVERYONE)

INTEGERS = st.sampled_from([-(2**63), -(2**63) + 1, -1, 0, 1, 2**63 - 2, 2**63 - 1])
FLOATS = st.sampled_from([math.nan, -math.inf, -1.5, -0.0, 0.0, 5e-324, 1.5, math.inf])
SHORTS = st.sampled_from([-(2**31), -1, 0, 1, 2**31 - 1])


def words(values):
    return np.array(values, np.uint64)


@st.composite
def spans(draw, length):
    low = draw(st.integers(0, length))
    return low, draw(st.integers(low, length))


@given(st.data(), st.lists(st.integers(0, 3), max_size=20), st.lists(WORDS, min_size=4, max_size=4))
def test_mask_by_code_keeps_the_bits_of_the_codes_entry(data, codes, table):
    low, high = data.draw(spans(len(codes)))
    before = data.draw(st.lists(WORDS, min_size=high - low, max_size=high - low))
    labels = words([1] * low + before + [1] * (len(codes) - high))
    mask_by_code(low, high, np.array(codes, np.int32), words(table), labels)
    masked = [label & table[code] for label, code in zip(before, codes[low:high], strict=True)]
    assert labels.tolist() == [1] * low + masked + [1] * (len(codes) - high)


@pytest.mark.parametrize(("kind", "bits"), [(np.uint8, 1), (np.uint8, 8), (np.uint16, 13), (np.uint32, 32), (np.uint64, 64)])
def test_mask_by_packed_code_does_as_the_table_does(kind, bits):
    @given(st.data(), st.lists(st.integers(0, 2**bits - 1), min_size=1, max_size=64 // bits))
    def check(data, table):
        codes = np.array(data.draw(st.lists(st.integers(0, len(table) - 1), max_size=20)), np.int32)
        low, high = data.draw(spans(len(codes)))
        labels = np.array(data.draw(st.lists(st.integers(0, 2**bits - 1), min_size=len(codes), max_size=len(codes))), kind)
        expected = labels.copy()
        mask_by_code(low, high, codes, np.array(table, kind), expected)
        entries = np.uint64(sum(entry << bits * code for code, entry in enumerate(table)))
        mask_by_packed_code(low, high, codes, entries, bits, labels)
        assert labels.tolist() == expected.tolist()

    check()


@pytest.mark.parametrize(
    ("dtype", "constant_type", "values", "constants"),
    [
        (np.int64, np.int64, INTEGERS, INTEGERS),
        (np.int32, np.int64, SHORTS, INTEGERS),
        (np.float64, np.float64, FLOATS, FLOATS),
        (np.float32, np.float64, FLOATS, FLOATS),
    ],
)
@pytest.mark.parametrize("name", OPERATORS)
def test_mask_by_comparison_leaves_the_others_where_the_comparison_fails(dtype, constant_type, values, constants, name):
    @given(st.data(), st.lists(values, max_size=12), constants, WORDS)
    def check(data, column, constant, others):
        low, high = data.draw(spans(len(column)))
        array = np.array(column, dtype)
        labels = np.full(len(column), np.uint64(EVERYONE))
        mask_by_comparison(low, high, array, COMPARISONS[name], constant_type(constant), np.uint64(others), labels)
        holds = [OPERATORS[name](value, constant) for value in array[low:high].tolist()]
        assert labels.tolist() == [EVERYONE] * low + [EVERYONE if true else others for true in holds] + [EVERYONE] * (len(column) - high)

    check()


@given(st.data(), st.lists(st.integers(0, 2), max_size=20), WORDS)
def test_mask_by_truth_leaves_the_others_where_false(data, truth, others):
    low, high = data.draw(spans(len(truth)))
    labels = np.full(len(truth), np.uint64(EVERYONE))
    mask_by_truth(low, high, np.array(truth, np.uint8), np.uint64(others), labels)
    masked = [EVERYONE if true else others for true in truth[low:high]]
    assert labels.tolist() == [EVERYONE] * low + masked + [EVERYONE] * (len(truth) - high)


@given(st.integers(0, 2**40), st.lists(st.tuples(st.integers(0, 2), st.sampled_from([0, 1, 2**63, EVERYONE])), max_size=20), st.booleans())
def test_compact_keeps_marked_events_or_all(low, events, keeps_all):
    marks, labels = [mark for mark, _ in events], [label for _, label in events]
    rows, kept = np.full(len(labels) + SPARE, -1), words([7] * len(labels))
    count = compact(low, words(marks), words(labels), keeps_all, rows, kept)
    expected = [(low + e, label) for e, (mark, label) in enumerate(events) if mark or keeps_all]
    assert list(zip(rows[:count].tolist(), kept[:count].tolist(), strict=True)) == expected


@given(st.integers(0, 300), st.integers(0, 2**32 - 1), st.floats(0, 1), st.sampled_from([np.uint8, np.uint16, np.uint64]))
def test_compact_keeps_marked_events_of_many(size, seed, share, word):
    random = np.random.default_rng(seed)
    marks = np.where(random.random(size) < share, random.integers(1, 1 << 7, size), 0).astype(word)
    labels = np.arange(size).astype(word)
    rows, kept = np.full(size + SPARE, -1, np.int32), np.zeros(size, word)
    count = compact(5, marks, labels, False, rows, kept)
    expected = np.flatnonzero(marks)
    assert rows[:count].tolist() == (5 + expected).tolist()
    assert kept[:count].tolist() == labels[expected].tolist()
