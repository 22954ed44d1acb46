"""Turn the parse trees of columns, navigations and aggregates in row patterns into AST nodes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gpu_cep.lang import ast, literals
from gpu_cep.lang.ast import AGGREGATES, Expression, Span
from gpu_cep.lang.diagnosis import span_of
from gpu_cep.lang.expressions import Rule, expression_rules, function_of
from gpu_cep.lang.row_patterns.ast import NAVIGATIONS, PHYSICAL, SYNONYMS, Classifier, Column, MatchNumber, Navigation, RowAggregate
from gpu_cep.lang.tokens import Word, fault

# Aggregates of event patterns that are navigations here.
ROW_AGGREGATES = tuple(function for function in AGGREGATES if function.upper() not in NAVIGATIONS)
_TWO_ARGUMENTS = {"min": "least", "max": "greatest"}
_NO_OPERANDS = frozenset({"classifier", "match_number", "match_sequence_number"})
OWN_FUNCTIONS = frozenset(map(str.lower, (*NAVIGATIONS, *SYNONYMS))).union(ROW_AGGREGATES, _NO_OPERANDS)
"""The names of functions that mean something else than in event patterns, or nothing there."""


def identifier(name: Word) -> str:
    """Return a name as an identifier: a quoted one keeps its quotes, which are double."""
    return literals.write_text(name.text, '"') if name.quoted else name.text


def row_expression_rules() -> dict[str, Rule]:
    """Return the functions of all rules of expressions in row patterns."""
    own: dict[str, Rule] = {"reference": _column, "call": _call, "star_call": _star_call, "marked_call": _marked_call}
    return expression_rules(frozenset()) | own


def _column(span: Span, children: list[Any]) -> Column:
    first, second = (each and identifier(each) for each in children)
    return Column(None, first, span=span) if second is None else Column(first, second, span=span)


def _call(span: Span, children: list[Any]) -> Expression:
    name, distinct, *arguments = children
    if arguments == [None]:
        arguments = []
    function = function_of(name, distinct)
    if name.quoted:
        return ast.Call(function, tuple(arguments), span=span)
    written = function.upper()
    if written in (*NAVIGATIONS, *SYNONYMS):
        return _navigation(written, arguments, span)
    if function in ROW_AGGREGATES:
        return _aggregate(function, arguments, span)
    if function in _NO_OPERANDS:
        return _measure_function(function, arguments, span)
    return ast.Call(function, tuple(arguments), span=span)


def _navigation(written: str, arguments: list[Expression], span: Span) -> Navigation:
    function = SYNONYMS.get(written, written)
    match arguments:
        case [argument]:
            return Navigation(function, argument, span=span)
        case [argument, ast.Literal(value=int(offset))] if not isinstance(offset, bool) and offset >= 0:
            return Navigation(function, argument, offset, span=span)
        case [_, offset]:
            raise fault(f"the offset of {written} is a whole number from 0 up, written as a literal", offset.span or span)
    hint = f"where there is no such row the value is NULL: coalesce({written}(A.x, 1), 0)" if len(arguments) == 3 else None
    raise fault(f"{written} takes an expression and an offset: {written}(A.x), {written}(A.x, 2)", span, hint)


def _aggregate(function: str, arguments: list[Expression], span: Span) -> RowAggregate:
    if len(arguments) == 1:
        return RowAggregate(function, arguments[0], span=span)
    several = f"{_TWO_ARGUMENTS[function]}(…) compares several values" if function in _TWO_ARGUMENTS and len(arguments) > 1 else None
    hint = "rows are counted by count(*), those of a variable by count(A.*)" if function == "count" and not arguments else several
    raise fault(f"{function} takes one expression: {function}(A.x)", span, hint)


def _measure_function(function: str, arguments: list[Expression], span: Span) -> Expression:
    match function, arguments:
        case "match_number", []:
            return MatchNumber(span=span)
        case "match_sequence_number", []:
            return RowAggregate("count", None, span=span)  # what Snowflake calls the number of a row in its match
        case "classifier", []:
            return Classifier(span=span)
        case "classifier", [Column(variable=None, name=name)]:
            return Classifier(name, span=span)
    accepted = "CLASSIFIER takes a variable or nothing: CLASSIFIER(A), CLASSIFIER()"
    raise fault(accepted if function == "classifier" else f"{function.upper()} takes nothing: {function.upper()}()", span)


def _star_call(span: Span, children: list[Any]) -> RowAggregate:
    name, variable, _ = children
    if name.quoted or name.text.lower() != "count":
        raise fault(f"{name.text} does not take *", span, "count(*) and count(A.*) count rows")
    return RowAggregate("count", None, variable and identifier(variable), span=span)


def _marked_call(span: Span, children: list[Any]) -> Expression:
    mark, called = children
    marked: Any = mark.upper()
    match called:
        case RowAggregate():
            return replace(called, semantics=marked, span=span)
        case Navigation(function=function) if function not in PHYSICAL:
            return replace(called, semantics=marked, span=span)
    raise fault(f"{marked} stands before FIRST, LAST and aggregates only", span_of(mark), _inside(called))


def _inside(called: Expression) -> str | None:
    if isinstance(called, Navigation):
        return f"it stands inside: {called.function}(FINAL LAST(A.x))"
    return None
