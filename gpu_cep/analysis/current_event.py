"""Read conditions on the event at hand, whose attributes stand bare or behind a name of the event."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from functools import partial
from typing import Any

from gpu_cep.analysis.hints import beside, name_hint
from gpu_cep.analysis.scope import Scope
from gpu_cep.errors import nearest
from gpu_cep.lang.ast import Aggregate, Equivalence, Expression, Literal, PrevBound, Reference
from gpu_cep.lang.format import format_expression

# How the names are called that may stand before an attribute.
_QUALIFIERS = {"DEFINE": "alias", "UNTIL": "variable"}


def of_event(node: Expression, variable: str, qualifiers: Sequence[str], where: str, scope: Scope) -> Expression:
    """Return the expression with each attribute as a reference to an event of `variable`.

    Attributes stand bare, or behind one of `qualifiers`. `where` is what the expression stands in, for messages.
    What reads other events is a fault, and NULL stands in its place.
    """
    match node:
        case Reference(variable=None, attribute=str(attribute)) | Reference(variable=str(attribute), attribute=None, index=None):
            # a bare name is an attribute, even if a variable or a situation has the same name
            if attribute in scope.schema.names:
                return Reference(variable, attribute, span=node.span)
            scope.faults.unknown("attribute", attribute, scope.schema.names, node.span, also=name_hint(attribute, node.span, scope))
            return Literal(None, span=node.span)
        case Reference(variable=str(qualifier), attribute=str(attribute), index=None) if qualifier in qualifiers:
            return Reference(variable, attribute, span=node.span)
        case Reference() | PrevBound() | Aggregate() | Equivalence():
            read = f"{where} reads attributes of the current event, as attribute or {_QUALIFIERS[where]}.attribute"
            scope.faults.error(f"{format_expression(node)} has no place in {where}: {read}", node.span, _instead(node, qualifiers))
            return Literal(None, span=node.span)
    change = partial(of_event, variable=variable, qualifiers=qualifiers, where=where, scope=beside(node, scope))
    parts: dict[str, Any] = {name: tuple(map(change, part)) if isinstance(part, tuple) else change(part) for name, part in _parts(node)}
    return replace(node, **parts)


def _parts(node: Expression) -> Iterator[tuple[str, Expression | tuple[Expression, ...]]]:
    """Yield the operands of an expression with the names of their fields."""
    for each in fields(node):
        value = getattr(node, each.name)
        if isinstance(value, Expression) or (isinstance(value, tuple) and all(isinstance(item, Expression) for item in value)):
            yield each.name, value


def _instead(node: Expression, qualifiers: Sequence[str]) -> str | None:
    match node:
        case Reference(variable=str(qualifier), attribute=str(attribute), index=None):
            return nearest(qualifier, qualifiers) or f"write {attribute}"
    return None
