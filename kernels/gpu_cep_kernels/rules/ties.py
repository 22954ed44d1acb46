"""Judge which of two events of a stream comes first, and where ties count (docs/language.md, Ties)."""

from __future__ import annotations

from typing import Any

from gpu_cep_kernels.compile.jit import rule


@rule
def are_tied(one: int, other: int, times: Any) -> bool:
    """Return whether two events have one time."""
    return bool(times[one] == times[other])


@rule
def is_before(one: int, other: int, strict: bool, times: Any) -> bool:
    """Return whether the first of two events of a stream comes before the other: by place and, if ties are `strict`, also by time.

    `times` may be empty if ties are not strict.
    """
    return one < other and not (strict and are_tied(one, other, times))


@rule
def first_behind(after: Any, event: int) -> int:
    """Return the first event behind `event`: the next one or, where ties are strict, the next that is later.

    `after` holds it for each event where ties are strict and do occur. Elsewhere it
    is empty, and the answer is the next event.
    """
    return int(after[event]) if after.size else event + 1
