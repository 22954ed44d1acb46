"""Turn the parse trees of expressions into AST nodes, one function for each rule of the grammar."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from gpu_cep.errors import nearest
from gpu_cep.lang import ast, literals
from gpu_cep.lang.ast import Expression, Span
from gpu_cep.lang.diagnosis import span_of
from gpu_cep.lang.limits import fault_of_conditions
from gpu_cep.lang.literal_lists import CONSTANTS, check_number_of_items, read_literals
from gpu_cep.lang.tokens import Word, amount, fault, integer, read, unit

Rule = Callable[[Span, list[Any]], Any]

_CANONICAL = {"==": "=", "!=": "<>"}


@dataclass(frozen=True, slots=True)
class _LengthIndex:
    """The index ``[v.LEN]``, before it is checked that v is the variable before the bracket."""

    variable: Word
    span: Span


def expression_rules(variables: frozenset[str]) -> dict[str, Rule]:
    """Return the functions by rule; `variables` are those that PATTERN declares.

    A bare name among them is a variable, any other an attribute.
    """
    return _RULES | {"reference": partial(_reference, variables)}


def _binary(span: Span, children: list[Any]) -> ast.Binary:
    left, operator, right = children
    return ast.Binary(_CANONICAL.get(operator, str(operator)), left, right, span=span)


def _connective(span: Span, children: list[Any]) -> ast.Connective:
    found = ast.connect(children[1].type, children[::2], span)
    message = fault_of_conditions(len(found.operands))
    if message is not None:
        raise fault(message, found.operands[-1].span or span)
    return found


def _unary(span: Span, children: list[Any]) -> ast.Unary:
    token, operand = children
    return ast.Unary("NOT" if token.type == "NOT" else "-", operand, span=span)


def _between(span: Span, children: list[Any]) -> ast.Between:
    operand, negation, low, _, high = children
    return ast.Between(operand, low, high, negation is not None, span=span)


def _membership(span: Span, children: list[Any]) -> ast.In:
    operand, negation, *items = children
    check_number_of_items(len(items), span)
    return ast.In(operand, tuple(items), negation is not None, span=span)


def _literal_membership(span: Span, children: list[Any]) -> ast.In:
    operand, negation, listed = children
    return ast.In(operand, read_literals(listed), negation is not None, span=span)


def _like(span: Span, children: list[Any]) -> ast.Like:
    operand, negation, pattern = children
    return ast.Like(operand, pattern, negation is not None, span=span)


def _is_null(span: Span, children: list[Any]) -> ast.IsNull:
    operand, negation, _ = children
    return ast.IsNull(operand, negation is not None, span=span)


def _duration(span: Span, children: list[Any]) -> ast.DurationLiteral:
    return ast.DurationLiteral(amount(children[0]), unit(children[1], ("AND", "OR", "IN", "LIKE"), str(children[0])), span=span)


def _reference(variables: frozenset[str], span: Span, children: list[Any]) -> ast.Reference:
    name, index, attribute = children
    if isinstance(index, _LengthIndex):
        index = _last_of(name, index)
    if attribute is None and index is None and name.text not in variables:
        return ast.Reference(None, name.text, span=span)
    return ast.Reference(name.text, attribute and attribute.text, index, span=span)


def _last_of(variable: Word, index: _LengthIndex) -> ast.LastIndex:
    if index.variable.text != variable.text:
        raise fault(f"the last event of {variable.text} is {variable.text}[{variable.text}.LEN]", index.span)
    return ast.LastIndex(span=index.span)


def _each_index(span: Span, children: list[Any]) -> ast.EachIndex:
    _check_counter(children[0])
    return ast.EachIndex(span=span)


def _previous_index(span: Span, children: list[Any]) -> ast.PreviousIndex:
    counter, _, distance = children
    _check_counter(counter)
    if integer(distance) != 1:
        raise fault("only the event bound just before can be read: v[i-1]", span)
    return ast.PreviousIndex(span=span)


def _number_index(span: Span, children: list[Any]) -> ast.NumberIndex:
    number = integer(children[0])
    if number == 0:
        raise fault("the events of a binding are counted from 1", span, "the first event is v[1]")
    return ast.NumberIndex(number, span=span)


def _last_index(span: Span, children: list[Any]) -> _LengthIndex:
    variable, attribute = children
    if attribute.text.upper() != "LEN":
        raise fault(f"found {attribute.text!r}, expected LEN, as in v[v.LEN]", attribute.span)
    return _LengthIndex(variable, span)


def _check_counter(word: Word) -> None:
    if word.text.lower() != "i":
        raise fault(f"found {word.text!r}, expected the index i, i-1, a number or v.LEN", word.span)


def _call(span: Span, children: list[Any]) -> Expression:
    name, distinct, *arguments = children
    function = function_of(name, distinct)
    if arguments == [None]:
        arguments = []
    if name.quoted or function not in (*ast.AGGREGATES, "prev"):
        return ast.Call(function, tuple(arguments), span=span)
    argument = arguments[0] if len(arguments) == 1 and isinstance(arguments[0], ast.Reference) else None
    if function == "prev":
        return _prev_bound(span, argument)
    return _aggregate(function, span, argument, len(arguments))


def function_of(name: Word, distinct: Any) -> str:
    """Return the name of a function in lower case; ``count(DISTINCT …)`` is an aggregate of its own."""
    function = name.text.lower()
    if distinct is None:
        return function
    if name.quoted or function != "count":
        raise fault(f"{name.text} takes no DISTINCT", span_of(distinct), "count(DISTINCT v.attr) counts the values that differ")
    return "count_distinct"


def _prev_bound(span: Span, argument: ast.Reference | None) -> ast.PrevBound:
    match argument:
        case ast.Reference(variable=str(variable), attribute=str(attribute), index=None):
            return ast.PrevBound(variable, attribute, span=span)
    raise fault("prev takes one attribute of a variable: prev(v.attr)", span)


def _aggregate(function: str, span: Span, argument: ast.Reference | None, arguments: int) -> ast.Aggregate:
    match argument:
        case ast.Reference(variable=str(variable), attribute=attribute, index=None | ast.EachIndex()) if attribute or function == "count":
            return ast.Aggregate(function, variable, attribute, span=span)
    scalar = {"min": "least", "max": "greatest"}.get(function) if arguments > 1 else None
    computed = arguments == 1 and argument is None and function != "count"
    hint = f"{scalar}(…) compares several values" if scalar else _COMPUTED if computed else None
    raise fault(_ACCEPTED.get(function, f"{function} takes one attribute of a variable: {function}(v.attr)"), span, hint)


_COMPUTED = "compute the expression as a column of the events first; MATCH_RECOGNIZE has aggregates of expressions"
_ACCEPTED = {
    "count": "count takes a variable or one of its attributes: count(v), count(v.attr)",
    "count_distinct": "DISTINCT takes one attribute of a variable: count(DISTINCT v.attr)",
}


def _when(span: Span, children: list[Any]) -> tuple[Expression, Expression]:
    condition, value = children
    return condition, value


def _case(span: Span, children: list[Any]) -> ast.Case:
    subject, *branches, otherwise = children
    conditions, values = zip(*branches, strict=True)
    if subject is not None:
        conditions = tuple(ast.Binary("=", subject, each, span=_from_to(subject, each)) for each in conditions)
    return ast.Case(conditions, values, otherwise, span=span)


def _from_to(first: Expression, last: Expression) -> Span:
    start, end = first.span, last.span
    assert start is not None, "what is read has a place"
    assert end is not None, "what is read has a place"
    return Span(start.line, start.column, end.end_line, end.end_column)


def _running_aggregate(span: Span, children: list[Any]) -> ast.Aggregate:
    name, distinct, variable, counter, _, distance, attribute = children
    function = function_of(name, distinct)
    _check_counter(counter)
    if integer(distance) != 1:
        raise fault("a running aggregate covers the events before the current one: v[..i-1]", span)
    if name.quoted or function not in ast.AGGREGATES:
        raise fault(f"{name.text!r} is no aggregate", name.span, nearest(name.text, ast.AGGREGATES))
    if attribute is None and function != "count":
        raise fault(f"{function} takes one attribute of a variable: {function}(v[..i-1].attr)", span)
    return ast.Aggregate(function, variable.text, attribute and attribute.text, running=True, span=span)


_RULES: dict[str, Rule] = {
    "binary": _binary,
    "connective": _connective,
    "unary": _unary,
    "between": _between,
    "membership": _membership,
    "literal_membership": _literal_membership,
    "like": _like,
    "is_null": _is_null,
    "number": lambda span, children: ast.Literal(read(literals.read_number, children[0], span), span=span),
    "negative_number": lambda span, children: ast.Literal(literals.negative(children[1].value), span=span),
    "text": lambda span, children: ast.Literal(literals.read_text(children[0]), span=span),
    "constant": lambda span, children: ast.Literal(CONSTANTS[children[0].type], span=span),
    "date": lambda span, children: ast.Literal(read(literals.read_date, literals.read_text(children[0]), span), span=span),
    "timestamp": lambda span, children: ast.Literal(read(literals.read_timestamp, literals.read_text(children[0]), span), span=span),
    "duration": _duration,
    "equivalence": lambda span, children: ast.Equivalence(children[0].text, span=span),
    "call": _call,
    "case": _case,
    "when": _when,
    "running_aggregate": _running_aggregate,
    "each_index": _each_index,
    "previous_index": _previous_index,
    "number_index": _number_index,
    "last_index": _last_index,
}
