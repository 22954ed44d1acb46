"""Cases of the kernels that aggregate over the rows of matches of SQL's row patterns."""

from __future__ import annotations

import numpy as np

from gpu_cep_kernels.row_patterns import totals
from gpu_cep_kernels.rules.running import AGGREGATIONS
from tests.kernel_cases.calls import Call, KernelCase, cases
from tests.kernel_cases.inputs import Random, flags, floats, integers, stream_offsets


def _totalling(size: int, random: Random, slots: int, step: str, every: bool, nulls: bool = True, given: bool = True) -> Call:
    places = stream_offsets(size, random)
    firsts = np.array([random.integers(0, size - length + 1) for length in np.diff(places)], np.int64)
    rows = random.permutation(size) if nulls else np.empty(0, np.int64)
    states = random.integers(0, 3, size if every else 0).astype(np.int32)
    entries = totals.MatchEntries(places, firsts, rows, states, np.array([True, False, True][: 3 * every], np.bool_))
    kind = np.float64 if step.endswith("floats") else np.int64
    length = size if every else len(places) - 1
    values = (floats if kind is np.float64 else integers)(size if given else 0, random)
    missing = flags(size if nulls else 0, random, 0.2)
    return Call(len(places) - 1, (entries, values, missing, AGGREGATIONS[step], every, np.zeros(length, np.int64), np.zeros(length, kind)))


def _medians(size: int, random: Random, slots: int) -> Call:
    offsets = stream_offsets(size, random)
    return Call(
        len(offsets) - 1,
        (offsets, floats(size, random), flags(size, random, 0.2), np.zeros(size), np.zeros(size, np.int64), np.zeros(size)),
    )


ROW_TOTAL_CASES: tuple[KernelCase, ...] = (
    *cases(
        totals.total_ints,
        _totalling,
        {
            "sum": {"step": "sum_ints", "every": False},
            "min": {"step": "min_ints", "every": True},
            "count": {"step": "count_events", "every": True, "given": False},
            "max": {"step": "max_ints", "every": False, "nulls": False},
        },
    ),
    *cases(
        totals.total_floats,
        _totalling,
        {
            "sum": {"step": "sum_floats", "every": True},
            "min": {"step": "min_floats", "every": False},
            "max": {"step": "max_floats", "every": True, "nulls": False},
        },
    ),
    *cases(totals.running_medians, _medians, {"": {}}),
)
