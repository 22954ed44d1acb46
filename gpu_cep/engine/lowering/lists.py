"""Lay lists of different lengths one behind the other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt


def offsets(sizes: Sequence[int] | npt.NDArray[np.int64] | npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Return where parts of these sizes begin in their concatenation, and where the last one ends; a flag is a size of 0 or 1."""
    begins = np.zeros(len(sizes) + 1, np.int64)
    np.add.accumulate(sizes, out=begins[1:], dtype=np.int64)
    return begins
