"""Read the keywords of the oracles, and compare them with the clauses of a query's text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from gpu_cep.errors import PatternError

T = TypeVar("T")


def names(given: str | Sequence[str] | None) -> tuple[str, ...]:
    if given is None:
        return ()
    return (given,) if isinstance(given, str) else tuple(given)


def agreed(clause: str, written: T | None, given: T | None) -> T | None:
    """Return what the text or the keyword says; raise PatternError if they contradict each other."""
    if written and given and written != given:
        raise PatternError(f"the query says {clause} {written!r}, the call {given!r}")
    return written or given


def known(clause: str, name: str, values: Mapping[str, T]) -> T:
    if name not in values:
        raise PatternError(f"{clause} is one of {', '.join(values)}, not {name!r}")
    return values[name]
