"""Check what the standard allows inside navigations, aggregates, DEFINE and MEASURES."""

from __future__ import annotations

from collections.abc import Iterator

from gpu_cep.analysis.faults import Faults
from gpu_cep.lang.ast import Expression, Node
from gpu_cep.lang.row_patterns.ast import PHYSICAL, Classifier, Column, MatchNumber, Navigation, RowAggregate
from gpu_cep.lang.row_patterns.format import format_row_expression
from gpu_cep.lang.row_patterns.names import folded
from gpu_cep.lang.walks import children

_Holder = Navigation | RowAggregate | None


def check_expression(expression: Expression, clause: str, faults: Faults) -> None:
    """Record what the standard forbids in an expression of `clause`, DEFINE or MEASURES."""
    _check(expression, None, clause, faults)


def read_by(expression: Node) -> Iterator[Column | Classifier]:
    """Yield the columns and classifiers in an expression, from left to right."""
    if isinstance(expression, Column | Classifier):
        yield expression
    for child in children(expression):
        yield from read_by(child)


def navigations_of(expression: Node) -> Iterator[Navigation]:
    """Yield the navigations in an expression, from left to right, outer ones first."""
    if isinstance(expression, Navigation):
        yield expression
    for child in children(expression):
        yield from navigations_of(child)


def _check(node: Node, holder: _Holder, clause: str, faults: Faults) -> None:
    match node:
        case Navigation():
            _check_navigation(node, holder, faults)
            _check_argument(node, node.argument, faults)
        case RowAggregate():
            _check_aggregate(node, holder, faults)
            _check_argument(node, node.argument, faults)
        case MatchNumber() if clause == "DEFINE":
            faults.error("MATCH_NUMBER() has no place in DEFINE", node.span, "a match is counted when it is found: return it in MEASURES")
        case MatchNumber() if isinstance(holder, RowAggregate):
            hint = "it is the same in all rows of a match: compute with it outside of the aggregate"
            faults.error(f"MATCH_NUMBER() has no place in {holder.function}", node.span, hint)
    if isinstance(node, Navigation | RowAggregate):
        if node.semantics == "FINAL" and clause == "DEFINE":
            faults.error(
                f"{format_row_expression(node)} has no place in DEFINE", node.span, "while rows are mapped, the match has no end yet"
            )
        holder = node
    for child in children(node):
        _check(child, holder, clause, faults)


def _check_navigation(node: Navigation, holder: _Holder, faults: Faults) -> None:
    """Record a navigation that stands where none may."""
    if holder is None:
        return
    hint: str | None
    if isinstance(holder, RowAggregate):
        message, hint = "has no place in an aggregate", f"{holder.function}(A.x) goes over the rows of A by itself"
    elif holder.function not in PHYSICAL:
        message = f"has no place in {holder.function}"
        hint = f"{node.function} goes around: {node.function}({holder.function}(A.x))" if node.function in PHYSICAL else None
    elif node.function in PHYSICAL:
        message, hint = f"has no place in {holder.function}", "one navigation goes all the way: PREV(A.x, 2)"
    elif holder.argument is not node:
        message, hint = f"must be all of what {holder.function} takes", f"{holder.function}({node.function}(A.x + A.y))"
    else:
        return
    faults.error(f"{format_row_expression(node)} {message}", node.span, hint)


def _check_aggregate(node: RowAggregate, holder: _Holder, faults: Faults) -> None:
    if holder is not None:
        faults.error(f"{format_row_expression(node)} has no place in {holder.function}", node.span, "aggregates do not nest")


def _check_argument(node: Navigation | RowAggregate, argument: Expression | None, faults: Faults) -> None:
    """Record an argument that reads no row, or rows of several variables."""
    if argument is None or isinstance(argument, Navigation):
        return
    read = list(read_by(argument))
    if isinstance(node, Navigation) and not read:
        faults.error(f"{format_row_expression(node)} reads no row", node.span, f"{node.function} takes a column or CLASSIFIER()")
    names = {None if each.variable is None else folded(each.variable): each.variable or "any row" for each in read}
    if len(names) > 1:
        message = f"{format_row_expression(node)} mixes rows of {' and '.join(names.values())}"
        faults.error(message, node.span, "all columns in it belong to one variable, or all to none")
