"""Write queries and expressions as canonical text.

:func:`gpu_cep.lang.parser.parse` turns that text into the same tree again.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import singledispatch

from gpu_cep.errors import PatternError
from gpu_cep.lang import ast
from gpu_cep.lang.ast import Expression, PatternNode, Query
from gpu_cep.lang.ast_intervals import Constraint, IntervalQuery, Situation
from gpu_cep.lang.expression_texts import expression_text, join_operands, write_bounds, write_length, write_operand, write_quantifier
from gpu_cep.lang.literals import write_name
from gpu_cep.lang.row_patterns.ast import RowPatternQuery
from gpu_cep.lang.row_patterns.format import format_row_pattern


def format_query(query: Query | IntervalQuery | RowPatternQuery) -> str:
    """Return `query` in canonical form, one clause to a line.

    Raises
    ------
    PatternError
        If the tree holds what no text can say: an infinite number, an empty name, a reluctant quantifier.
    """
    if isinstance(query, RowPatternQuery):
        return format_row_pattern(query)
    try:
        return "\n".join([*_input(query), *_write_match(query), *_output(query)])
    except ValueError as error:
        raise PatternError(str(error)) from None


def format_expression(expression: Expression) -> str:
    """Return `expression` in canonical form, with as few parentheses as possible.

    Raises as :func:`format_query`.
    """
    try:
        return expression_text(expression)
    except ValueError as error:
        raise PatternError(str(error)) from None


def format_operand(expression: Expression) -> str:
    """Return `expression` in canonical form, in parentheses if an operator beside it could divide it.

    Raises as :func:`format_query`.
    """
    try:
        return write_operand(expression)
    except ValueError as error:
        raise PatternError(str(error)) from None


def format_pattern(query: Query | IntervalQuery) -> str:
    """Return the pattern or the constraints of `query`, with its window on a line of its own.

    Raises as :func:`format_query`.
    """
    try:
        return "\n".join([_write_relation(query), *_window(query)])
    except ValueError as error:
        raise PatternError(str(error)) from None


def format_element(element: PatternNode) -> str:
    """Return a pattern, or an element of one, in canonical form; raises as :func:`format_query`."""
    try:
        return _pattern(element)
    except ValueError as error:
        raise PatternError(str(error)) from None


def format_definition(situation: Situation) -> str:
    """Return the condition of a situation and the bounds of its duration; raises as :func:`format_query`."""
    try:
        return _definition(situation)
    except ValueError as error:
        raise PatternError(str(error)) from None


def _input(query: Query | IntervalQuery) -> Iterable[str]:
    if query.source is not None:
        yield "FROM " + " ".join(write_name(name) for name in (query.source.name, query.source.alias) if name is not None)
    if query.partition_by:
        yield f"PARTITION BY {join_operands(write_name(name) for name in query.partition_by)}"


def _write_match(query: Query | IntervalQuery) -> Iterable[str]:
    match query:
        case Query():
            yield f"PATTERN {_write_relation(query)}"
            if query.strategy is not None:
                yield _braced_where(query)
            elif query.where is not None:
                yield f"WHERE {expression_text(query.where)}"
        case IntervalQuery():
            yield f"DEFINE {join_operands(map(_situation, query.situations))}"
            yield f"PATTERN {_write_relation(query)}"


def _write_relation(query: Query | IntervalQuery) -> str:
    if isinstance(query, Query):
        return _pattern(query.pattern)
    return " AND ".join(map(format_constraint, query.constraints))


def _window(query: Query | IntervalQuery) -> Iterable[str]:
    if query.within is not None:
        yield f"WITHIN {write_length(query.within)}"


def _output(query: Query | IntervalQuery) -> Iterable[str]:
    yield from _window(query)
    if query.returns:
        yield f"RETURN {join_operands(_item(item) for item in query.returns)}"


def _situation(situation: Situation) -> str:
    return f"{write_name(situation.name)} AS {_definition(situation)}"


def _definition(situation: Situation) -> str:
    # AT LEAST and AT MOST, since BETWEEN behind an operand would be read as the operator
    low = "" if situation.at_least is None else f" AT LEAST {write_length(situation.at_least)}"
    high = "" if situation.at_most is None else f" AT MOST {write_length(situation.at_most)}"
    return f"{expression_text(situation.condition)}{low}{high}"


def format_constraint(constraint: Constraint) -> str:
    """Return the alternatives of a constraint as text."""
    return "; ".join(f"{write_name(each.left)} {each.relation} {write_name(each.right)}" for each in constraint.alternatives)


def _braced_where(query: Query) -> str:
    variables = f"({join_operands(write_name(name) for name in query.strategy_variables)})" if query.strategy_variables else ""
    condition = "" if query.where is None else f" {expression_text(query.where)} "
    return f"WHERE {query.strategy}{variables} {{{condition}}}"


def _item(item: ast.ReturnItem) -> str:
    text = expression_text(item.expression)
    return text if item.name is None else f"{text} AS {write_name(item.name)}"


@singledispatch
def _pattern(node: PatternNode) -> str:
    raise TypeError(f"no text for {type(node).__name__}")


@_pattern.register
def _(node: ast.Variable) -> str:
    name = write_name(node.name)
    return name if node.event_type is None else f"{write_name(node.event_type)} {name}"


@_pattern.register
def _(node: ast.Repeat) -> str:
    if not isinstance(node.element, ast.Variable | ast.Seq | ast.And | ast.Or) or not node.greedy:
        raise ValueError("a quantifier is written on a variable, SEQ, AND or OR, and is greedy")
    if not isinstance(node.element, ast.Variable):
        return f"{_pattern(node.element)}{_group_bounds(node)}"
    until = "" if node.until is None else f" UNTIL ({expression_text(node.until)})"
    return _pattern(node.element) + write_quantifier(node.minimum, node.maximum) + until


def _group_bounds(node: ast.Repeat) -> str:
    """Return the text of the bounds of a composite, which takes no other quantifier and no UNTIL."""
    if node.until is not None:
        raise ValueError("UNTIL is written on a variable")
    return "?" if (node.minimum, node.maximum) == (0, 1) else write_bounds(node.minimum, node.maximum)


@_pattern.register
def _(node: ast.Seq) -> str:
    return f"SEQ({join_operands(map(_pattern, node.elements))})"


@_pattern.register
def _(node: ast.And) -> str:
    return f"AND({join_operands(map(_pattern, node.elements))})"


@_pattern.register
def _(node: ast.Or) -> str:
    return f"OR({join_operands(map(_pattern, node.elements))})"


@_pattern.register
def _(node: ast.Not) -> str:
    return f"NOT({_pattern(node.element)})"


@_pattern.register
def _(node: ast.Next) -> str:
    return f"NEXT({_pattern(node.element)})"


@_pattern.register
def _(node: ast.Gap) -> str:
    word = next(word for word, strategy in ast.GAPS.items() if strategy == node.strategy)
    return f"{word}({_pattern(node.element)})"
