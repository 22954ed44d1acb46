"""Turn the parse trees of situations and relations into AST nodes, one function for each rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gpu_cep.errors import nearest
from gpu_cep.lang import ast
from gpu_cep.lang.ast import Span
from gpu_cep.lang.ast_intervals import RELATIONS, Constraint, Relation, Situation
from gpu_cep.lang.diagnosis import span_of
from gpu_cep.lang.expressions import Rule
from gpu_cep.lang.tokens import fault


@dataclass(frozen=True, slots=True)
class Ending:
    """The clauses that follow PATTERN."""

    within: ast.Window | None = None
    returns: tuple[ast.ReturnItem, ...] = ()


# The shortest and the longest duration; None where there is no bound.
_Bounds = tuple[ast.Window | None, ast.Window | None]


def _situation(span: Span, children: list[Any]) -> Situation:
    name, condition, *bounds = children
    low = next((low for low, _ in bounds if low is not None), None)
    high = next((high for _, high in bounds if high is not None), None)
    return Situation(name.text, condition, low, high, span=span)


def _lasting(span: Span, children: list[Any]) -> _Bounds:
    low, _, high = children
    return _time(low), _time(high)


def _time(length: ast.Window) -> ast.Window:
    if length.unit == "events":
        assert length.span is not None
        raise fault("a situation lasts some time, not a number of events", length.span)
    return length


@dataclass(frozen=True, slots=True)
class WrittenConstraint:
    """A constraint as it is written; `semicolon` is the place of the semicolon behind it, or None."""

    constraint: Constraint
    semicolon: Span | None


def constraints_of(parts: tuple[WrittenConstraint, ...], ending: Ending | None) -> tuple[Constraint, ...]:
    """Return the constraints of a query; raise a fault if anything follows a closing semicolon."""
    for part in parts if ending is not None else parts[:-1]:
        if part.semicolon is not None:
            raise fault("a semicolon stands between two relations, or ends the query", part.semicolon)
    return tuple(part.constraint for part in parts)


def _constraint(span: Span, children: list[Any]) -> WrittenConstraint:
    relations = tuple(child for child in children if isinstance(child, Relation))
    return WrittenConstraint(Constraint(relations, span=span), None if children[-1] is None else span_of(children[-1]))


def _relation(span: Span, children: list[Any]) -> Relation:
    left, word, inverse, right = children
    written = f"{word}-by" if inverse is not None else str(word)
    relation = written.lower().replace("_", "-")
    if relation not in RELATIONS:
        raise fault(f"{written!r} is no relation between intervals", span_of(word), nearest(relation, RELATIONS))
    return Relation(left.text, relation, right.text, span=span)


def _ending(span: Span, children: list[Any]) -> Ending:
    within = next((child for child in children if isinstance(child, ast.Window)), None)
    returns = next((child for child in children if isinstance(child, tuple)), ())
    return Ending(within, returns)


SITUATION_RULES: dict[str, Rule] = {
    "definitions": lambda span, children: tuple(children),
    "situation": _situation,
    "at_least": lambda span, children: (_time(children[0]), None),
    "at_most": lambda span, children: (None, _time(children[0])),
    "lasting": _lasting,
    "constraints": lambda span, children: tuple(child for child in children if isinstance(child, WrittenConstraint)),
    "constraint": _constraint,
    "relation": _relation,
    "ending": _ending,
}
