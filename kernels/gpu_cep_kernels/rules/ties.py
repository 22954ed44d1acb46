"""Judge which of two events of one stream is before the other, and where ties count (SPEC section 1, "before")."""

from __future__ import annotations

from typing import Any

from gpu_cep_kernels.compile.jit import rule


@rule
def are_tied(one: int, other: int, times: Any) -> bool:
    """Whether two events have one time."""
    return bool(times[one] == times[other])


@rule
def is_before(one: int, other: int, strict: bool, times: Any) -> bool:
    """Whether the first of two events of a stream is before the other: by its place and, if ties are `strict`, by its time.

    `times` may be empty if ties are not strict.
    """
    return one < other and not (strict and are_tied(one, other, times))


@rule
def first_behind(after: Any, event: int) -> int:
    """Return the first event that `event` is before: the next one, or, where ties are strict, the next that is later.

    `after` holds it for each event where ties are strict and do occur; it is
    empty where the next event in the stream will do.
    """
    return int(after[event]) if after.size else event + 1
