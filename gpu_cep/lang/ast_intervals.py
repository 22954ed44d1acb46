"""Define the abstract syntax of queries over situations, as frozen dataclasses beside those of :mod:`gpu_cep.lang.ast`."""

from __future__ import annotations

from dataclasses import dataclass

from gpu_cep.lang.ast import Expression, Node, ReturnItem, Source, Window


@dataclass(frozen=True, slots=True)
class Situation(Node):
    """A definition in DEFINE: ``name AS condition AT LEAST d AT MOST e``.

    It stands for the longest runs of events that satisfy `condition`.
    `at_least`, `at_most`: the bounds of their duration; None where the text leaves them out.
    """

    name: str
    condition: Expression
    at_least: Window | None = None
    at_most: Window | None = None


@dataclass(frozen=True, slots=True)
class Relation(Node):
    """A relation between two situations, ``left relation right``; `relation` is a key of :data:`RELATIONS`."""

    left: str
    relation: str
    right: str


@dataclass(frozen=True, slots=True)
class Constraint(Node):
    """Relations of which at least one must hold; all relate the same pair of situations."""

    alternatives: tuple[Relation, ...]


@dataclass(frozen=True, slots=True)
class IntervalQuery(Node):
    """A query over situations (docs/intervals.md); all of the `constraints` must hold."""

    situations: tuple[Situation, ...]
    constraints: tuple[Constraint, ...]
    source: Source | None = None
    partition_by: tuple[str, ...] = ()
    within: Window | None = None
    returns: tuple[ReturnItem, ...] = ()


# Relation -> the same relation with its sides exchanged.
RELATIONS = {
    "before": "after",
    "after": "before",
    "meets": "met-by",
    "met-by": "meets",
    "overlaps": "overlapped-by",
    "overlapped-by": "overlaps",
    "starts": "started-by",
    "started-by": "starts",
    "during": "contains",
    "contains": "during",
    "finishes": "finished-by",
    "finished-by": "finishes",
    "equals": "equals",
}
