"""The summary statistics of windows (thesis Def. 5.2), as the necessary match conditions count them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gpu_cep_kernels.phase_one.window_conditions import NextEvents, judge_windows
from gpu_cep_kernels.rules.tables import PatternTable


def summary_statistics(
    starts: Any, ends: Any, next_events: NextEvents, pattern: PatternTable, counts: Any
) -> npt.NDArray[np.int64]:  # fmt: skip
    """Return cnt_v of each window, [window, v]: the greatest minimum of v with which the window is kept."""
    variables, places = counts.shape
    statistics, holds = np.zeros((len(starts), variables), np.int64), np.empty(len(starts), np.bool_)
    for v in range(variables):
        for least in range(1, places):
            minimum = np.zeros_like(pattern.minimum)
            minimum[v] = least
            judge_windows(0, len(starts), starts, ends, next_events, pattern._replace(minimum=minimum), 0, counts, holds)
            statistics[:, v] += holds
    return statistics
