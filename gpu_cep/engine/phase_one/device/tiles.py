"""Carry what groups of tiles counted or found from group to group; groups are few, so the host does it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gpu_cep.engine.events.matches import Indices
from gpu_cep_kernels.phase_one.tiles import GROUP, NOWHERE, TILE


def tiles_of(size: int) -> int:
    """Return how many tiles so many events make."""
    return -(-size // TILE)


def groups_of(size: int) -> int:
    """Return how many groups of tiles so many events make."""
    return -(-tiles_of(size) // GROUP)


def parts_of(size: int) -> int:
    """Return how many places in four tiles, one behind the other, so many events make."""
    return TILE * -(-tiles_of(size) // 4)


def numbers_before(numbers: npt.NDArray[Any]) -> Indices:
    """Return for each group the sum of the numbers of the groups before it."""
    before: Indices = np.cumsum(numbers, dtype=np.int64) - numbers
    return before


def firsts_behind(firsts: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Return for each group, the last axis, the least event of the groups behind it."""
    behind = np.full_like(firsts, NOWHERE)
    behind[..., :-1] = np.minimum.accumulate(firsts[..., :0:-1], axis=-1)[..., ::-1]
    return behind
