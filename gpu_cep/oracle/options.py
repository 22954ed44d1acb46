"""Hold what a caller says beside the text of a query, and compare it with the clauses of that text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from gpu_cep.errors import PatternError
from gpu_cep.lang import ast
from gpu_cep.oracle.expressions import Scalar

T = TypeVar("T")
Ranking = tuple[ast.Expression, bool]


@dataclass(frozen=True, slots=True)
class QueryOptions:
    """What a caller says beside the text of any query; the fields are keywords of :func:`gpu_cep.match`.

    `functions`: those that the query may call, with the kinds of their results.
    """

    timestamp: str = "ts"
    partition_by: str | Sequence[str] | None = None
    order_by: str | Sequence[str] | None = None
    time_unit: str | None = None
    functions: Mapping[str, Scalar] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EventOptions(QueryOptions):
    """What a caller says beside the text of a query over events.

    `ranking`: the expression by whose value the matches of one first event are kept first, and whether the
    greatest come first; None: in the order of results.
    """

    type_column: str = "type"
    strategy: str | None = None
    ties: str = "strict"
    after_match: str = "all"
    limit_per_start: int | None = None
    ranking: Ranking | None = None


@dataclass(frozen=True, slots=True)
class IntervalOptions(QueryOptions):
    """What a caller says beside the text of a query over situations; `gap` is read already."""

    detect: str = "final"
    allen: str = "paper"
    gap: ast.Window | None = None


def names(given: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the names of a keyword that takes none, one or several."""
    if given is None:
        return ()
    return (given,) if isinstance(given, str) else tuple(given)


def agreed(clause: str, written: T | None, given: T | None) -> T | None:
    """Return what the text or the keyword says; raise PatternError if they contradict each other."""
    if written and given and written != given:
        raise PatternError(f"the query says {clause} {written!r}, the call {given!r}")
    return written or given


def known(clause: str, name: str, values: Mapping[str, T]) -> T:
    """Return the value that `name` stands for; raise PatternError, which says what `clause` may be, if it stands for none."""
    if name not in values:
        raise PatternError(f"{clause} is one of {', '.join(values)}, not {name!r}")
    return values[name]
