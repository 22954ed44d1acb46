"""Find the rows that lie in a window around a rare event, and so may share a match with it."""

from __future__ import annotations

from typing import Any, NamedTuple

from gpu_cep_kernels.compile.jit import kernel, rule, sequential
from gpu_cep_kernels.phase_one.kept_rows import keep_rows
from gpu_cep_kernels.rules.scalars import within


class Nearness(NamedTuple):
    """Say how near other rows must be to a row.

    - clock: the time of each row.
    - before, after: how much earlier and how much later another row may be.
    """

    clock: Any
    before: Any
    after: Any


@rule
def _is_in_reach(row: int, other: int, low: int, high: int, clock: Any, length: Any) -> bool:
    """Return whether `other` is one of the rows [low, high), and at most `length` from `row` on the clock."""
    return low <= other and other < high and within(clock[min(row, other)], clock[max(row, other)], length)


@rule
def _farthest(row: int, place: int, direction: int, low: int, high: int, clock: Any, length: Any) -> int:
    """Return the last row, in a direction (1 or -1) from `place`, that is in reach of `row`; `place` is.

    Steps are doubled first, and halved then.
    """
    step = direction
    while _is_in_reach(row, place + step, low, high, clock, length):
        place += step
        step *= 2
    while step != 0:
        if _is_in_reach(row, place + step, low, high, clock, length):
            place += step
        # halved towards 0 in both directions
        step = direction * (abs(step) // 2)
    return place


@kernel(writes=("begins", "ends"))
def find_spans(
    low: int, high: int, rows: Any, first: Any, last: Any, reach: Nearness, begins: Any, ends: Any
) -> None:  # fmt: skip
    """``[begins[k], ends[k])``: the rows within `reach` of ``rows[k]``.

    They are searched among the rows ``[first[k], last[k])``, over which the clock does not fall.
    """
    clock, before, after = reach
    for k in range(low, high):
        begins[k] = _farthest(rows[k], rows[k], -1, first[k], last[k], clock, before)
        ends[k] = _farthest(rows[k], rows[k], 1, first[k], last[k], clock, after) + 1


@sequential(writes=("rows",))
def keep_spans(begins: Any, ends: Any, marks: Any, keeps_all: bool, rows: Any) -> int:
    """Write the rows of all spans whose mark is not 0, or all if `keeps_all`; return how many.

    `rows` needs spare slots as :func:`keep_rows` says.
    """
    count = 0
    for k in range(begins.size):
        count += keep_rows(begins[k], marks[begins[k] : ends[k]], keeps_all, rows[count:])
    return count
