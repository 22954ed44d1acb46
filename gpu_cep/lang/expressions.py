"""Turn the parse trees of expressions into AST nodes, one function for each rule of the grammar."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from gpu_cep.errors import nearest
from gpu_cep.lang import ast, literals
from gpu_cep.lang.ast import Expression, Span
from gpu_cep.lang.tokens import Word, amount, fault, integer, read, unit

Rule = Callable[[Span, list[Any]], Any]

_CONSTANTS = {"TRUE": True, "FALSE": False, "NULL": None}
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
    left, token, right = children
    operator = token.type if token.type in ("AND", "OR") else _CANONICAL.get(token, str(token))
    return ast.Binary(operator, left, right, span=span)


def _unary(span: Span, children: list[Any]) -> ast.Unary:
    token, operand = children
    return ast.Unary("NOT" if token.type == "NOT" else "-", operand, span=span)


def _between(span: Span, children: list[Any]) -> ast.Between:
    operand, negation, low, _, high = children
    return ast.Between(operand, low, high, negation is not None, span=span)


def _membership(span: Span, children: list[Any]) -> ast.In:
    operand, negation, *items = children
    return ast.In(operand, tuple(items), negation is not None, span=span)


def _like(span: Span, children: list[Any]) -> ast.Like:
    operand, negation, pattern = children
    return ast.Like(operand, pattern, negation is not None, span=span)


def _is_null(span: Span, children: list[Any]) -> ast.IsNull:
    operand, negation, _ = children
    return ast.IsNull(operand, negation is not None, span=span)


def _number(span: Span, children: list[Any]) -> ast.Literal:
    return ast.Literal(read(literals.read_number, children[0], span), span=span)


def _negative_number(span: Span, children: list[Any]) -> ast.Literal:
    return ast.Literal(literals.negative(children[1].value), span=span)


def _text(span: Span, children: list[Any]) -> ast.Literal:
    return ast.Literal(literals.read_text(children[0]), span=span)


def _constant(span: Span, children: list[Any]) -> ast.Literal:
    return ast.Literal(_CONSTANTS[children[0].type], span=span)


def _date(span: Span, children: list[Any]) -> ast.Literal:
    return ast.Literal(read(literals.read_date, literals.read_text(children[0]), span), span=span)


def _timestamp(span: Span, children: list[Any]) -> ast.Literal:
    return ast.Literal(read(literals.read_timestamp, literals.read_text(children[0]), span), span=span)


def _duration(span: Span, children: list[Any]) -> ast.DurationLiteral:
    return ast.DurationLiteral(amount(children[0]), unit(children[1], ("AND", "OR", "IN", "LIKE")), span=span)


def _equivalence(span: Span, children: list[Any]) -> ast.Equivalence:
    return ast.Equivalence(children[0].text, span=span)


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
        raise fault("the events of a binding are counted from 1", span)
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
    name, *arguments = children
    function = name.text.lower()
    if arguments == [None]:
        arguments = []
    if name.quoted or function not in (*ast.AGGREGATES, "prev"):
        return ast.Call(function, tuple(arguments), span=span)
    argument = arguments[0] if len(arguments) == 1 and isinstance(arguments[0], ast.Reference) else None
    if function == "prev":
        return _prev_bound(span, argument)
    return _aggregate(function, span, argument, len(arguments))


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
    hint = f"{scalar}(…) compares several values" if scalar else None
    accepted = (
        "a variable or one of its attributes: count(v), count(v.attr)"
        if function == "count"
        else f"one attribute of a variable: {function}(v.attr)"
    )
    raise fault(f"{function} takes {accepted}", span, hint)


def _running_aggregate(span: Span, children: list[Any]) -> ast.Aggregate:
    name, variable, counter, _, distance, attribute = children
    function = name.text.lower()
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
    "unary": _unary,
    "between": _between,
    "membership": _membership,
    "like": _like,
    "is_null": _is_null,
    "number": _number,
    "negative_number": _negative_number,
    "text": _text,
    "constant": _constant,
    "date": _date,
    "timestamp": _timestamp,
    "duration": _duration,
    "equivalence": _equivalence,
    "call": _call,
    "running_aggregate": _running_aggregate,
    "each_index": _each_index,
    "previous_index": _previous_index,
    "number_index": _number_index,
    "last_index": _last_index,
}
