"""Labels of a card's events against their definition, one event at a time."""

from __future__ import annotations

import math
import operator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_cep_kernels.phase_one.label_tiles import FALLS, GREATEST, LEAST, LabelTests, judge_events, judge_further, mark_kept, span_lanes
from gpu_cep_kernels.phase_one.tiles import GROUP, TILE
from gpu_cep_kernels.rules.scalars import COMPARISONS

OPERATORS = {"eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge}
INTEGERS = st.sampled_from([-(2**63), -1, 0, 1, 2**63 - 1])
FLOATS = st.sampled_from([math.nan, -math.inf, -0.0, 0.0, 5e-324, 1.5, math.inf])


@pytest.mark.parametrize("word", [np.uint8, np.uint16, np.uint32, np.uint64])
@pytest.mark.parametrize(("values", "kind"), [(INTEGERS, np.int64), (FLOATS, np.float64)])
def test_events_are_judged_one_test_after_another(word, values, kind):
    bits = st.integers(0, np.iinfo(word).max)

    @given(
        st.lists(st.tuples(values, st.booleans(), st.integers(0, 2)), max_size=20), st.booleans(), st.booleans(), bits,
        st.lists(bits, min_size=3, max_size=3), st.lists(st.tuples(st.sampled_from(list(OPERATORS)), values, bits), max_size=3),
    )  # fmt: skip
    def check(events, coded, nullable, every, table, comparisons):
        column, size = np.array([value for value, _, _ in events], kind), len(events)
        codes = np.array([code for _, _, code in events] if coded else [], np.uint8)
        present = np.array([known for _, known, _ in events] if nullable else [], np.uint8)
        tests = LabelTests(
            0, word(every), codes, np.array(table, word), column, present,
            np.array([COMPARISONS[name] for name, _, _ in comparisons], np.int64),
            np.array([constant for _, constant, _ in comparisons], kind), np.array([others for _, _, others in comparisons], word),
        )  # fmt: skip
        expected = []
        for value, known, code in events:
            label = every & (table[code] if coded else every)
            for name, constant, others in comparisons:
                holds = (known or not nullable) and OPERATORS[name](value, constant)
                label &= label if holds else others
            expected.append(label)
        packs = -(-size * np.dtype(word).itemsize // 8)
        packed, further = np.zeros((1, packs), np.uint64), np.full((1, packs), np.uint64(0x5AC3_0F96_69F0_3CA5))
        before = further.view(word)[0, :size].tolist()
        judge_events(0, packs, size, tests, packed)
        judge_further(0, packs, size, tests, further)
        assert packed.view(word)[0, :size].tolist() == expected
        assert further.view(word)[0, :size].tolist() == [label & had for label, had in zip(expected, before, strict=True)]

    check()


@pytest.mark.parametrize("word", [np.uint8, np.uint16, np.uint32, np.uint64])
@given(st.data())
def test_kept_events_are_marked_in_packs(word, data):
    words = data.draw(st.integers(1, 2))
    labels = np.array([data.draw(st.lists(st.sampled_from([0, 1, np.iinfo(word).max]), max_size=40))] * words, word)
    labels[-1] &= word(data.draw(st.integers(0, 1)))
    size, keeps_all = labels.shape[1], data.draw(st.booleans())
    # what fills the last word is arbitrary
    packed = np.full((words, -(-size * labels.itemsize // 8)), np.uint64(2**64 - 1))
    packed.view(word)[:, :size] = labels
    packs = np.full(-(-size // TILE) * TILE // 8, 0xFF, np.uint8)
    mark_kept(0, len(packs), keeps_all, labels, packed, packs)
    flags = np.unpackbits(packs, bitorder="little")
    assert np.array_equal(flags[:size], labels.any(axis=0) | keeps_all)
    assert not flags[size:].any()


@given(st.lists(st.tuples(st.sampled_from([-(2**63), -1, 0, 1, 2**63 - 1]), st.booleans()), min_size=1), st.integers(0, GROUP * TILE))
def test_spans_are_those_of_the_kept_keys_of_a_group(events, apart):
    # a second copy of the events, some way behind, so that groups and empty tiles lie between
    kept = np.array([held for _, held in events] + [False] * apart + [held for _, held in events])
    keys = np.array([key for key, _ in events] + [7] * apart + [key for key, _ in events], np.int64)
    tiles = -(-len(keys) // TILE)
    bits = np.packbits(np.pad(kept, (0, tiles * TILE - len(kept))), bitorder="little").view(np.uint32)
    groups = -(-tiles // GROUP)
    spans = np.zeros((3, groups * TILE), np.int64)
    span_lanes(0, spans.shape[1], bits, keys, spans)
    for g, own in enumerate(np.split(spans, groups, axis=1)):
        group = slice(g * GROUP * TILE, (g + 1) * GROUP * TILE)
        held = keys[group][kept[group]]
        assert own[LEAST].min() == held.min(initial=2**63 - 1)
        assert own[GREATEST].max() == held.max(initial=-(2**63))
        assert own[FALLS].any() == (held[1:] < held[:-1]).any()
