"""Labels of a card's events against their definition, one event at a time."""

from __future__ import annotations

import math
import operator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_cep_kernels.phase_one.label_tiles import LabelTests, judge_events, judge_further
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
