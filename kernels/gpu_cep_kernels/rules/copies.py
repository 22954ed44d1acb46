"""Copy short lists of rows, one after the other."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_cep_kernels.compile.jit import rule

# Rows that are copied as fast as one.
_AT_ONCE = 4


@rule
def copy_rows(rows: Any, begin: int, target: int, end: int, last: int, lists: Any) -> None:
    """Write the rows from ``rows[begin]`` on to ``lists[target:end]``; the lists up to ``lists[last]`` are written afterwards.

    Most lists are so short that a loop over one takes longer to leave than to run. So some
    rows are copied whatever its length; the next lists replace what is too much.
    """
    copied = 0
    if target + _AT_ONCE <= last and begin + _AT_ONCE <= rows.size:
        for i in range(_AT_ONCE):
            lists[np.uint64(target + i)] = rows[np.uint64(begin + i)]
        copied = _AT_ONCE
    for i in range(copied, end - target):
        lists[np.uint64(target + i)] = rows[np.uint64(begin + i)]
