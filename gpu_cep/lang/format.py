"""Write queries and expressions as canonical text.

:func:`gpu_cep.lang.parser.parse` turns that text into the same tree again.
"""

from __future__ import annotations

from collections.abc import Iterable

from gpu_cep.lang import ast
from gpu_cep.lang.ast import Expression, PatternNode, Query
from gpu_cep.lang.ast_intervals import Constraint, IntervalQuery, Situation
from gpu_cep.lang.expression_texts import (
    expression_text,
    join_operands,
    refuse_unsayable,
    write_bounds,
    write_length,
    write_operand,
    write_quantifier,
)
from gpu_cep.lang.literals import write_name
from gpu_cep.lang.row_patterns.ast import RowPatternQuery
from gpu_cep.lang.row_patterns.format import format_row_pattern


@refuse_unsayable()
def format_query(query: Query | IntervalQuery | RowPatternQuery) -> str:
    """Return `query` in canonical form, one clause to a line.

    Raises
    ------
    PatternError
        If the tree holds what no text can say: an infinite number, an empty name, a reluctant quantifier.
    """
    if isinstance(query, RowPatternQuery):
        return format_row_pattern(query)
    return "\n".join([*_input(query), *_write_match(query), *_output(query)])


@refuse_unsayable()
def format_expression(expression: Expression) -> str:
    """Return `expression` in canonical form, with as few parentheses as possible.

    Raises as :func:`format_query`.
    """
    return expression_text(expression)


@refuse_unsayable()
def format_operand(expression: Expression) -> str:
    """Return `expression` in canonical form, in parentheses if an operator beside it could divide it.

    Raises as :func:`format_query`.
    """
    return write_operand(expression)


@refuse_unsayable()
def format_pattern(query: Query | IntervalQuery) -> str:
    """Return the pattern or the constraints of `query`, with its window on a line of its own.

    Raises as :func:`format_query`.
    """
    return "\n".join([_write_relation(query), *_window(query)])


@refuse_unsayable()
def format_element(element: PatternNode) -> str:
    """Return a pattern, or an element of one, in canonical form; raises as :func:`format_query`."""
    return _pattern(element)


@refuse_unsayable()
def format_definition(situation: Situation) -> str:
    """Return the condition of a situation and the bounds of its duration; raises as :func:`format_query`."""
    return _definition(situation)


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


def _pattern(node: PatternNode) -> str:
    """Return the text of a pattern, or of an element of one."""
    match node:
        case ast.Variable():
            name = write_name(node.name)
            return name if node.event_type is None else f"{write_name(node.event_type)} {name}"
        case ast.Repeat():
            if not isinstance(node.element, ast.Variable | ast.Seq | ast.And | ast.Or) or not node.greedy:
                raise ValueError("a quantifier is written on a variable, SEQ, AND or OR, and is greedy")
            if not isinstance(node.element, ast.Variable):
                return f"{_pattern(node.element)}{_group_bounds(node)}"
            until = "" if node.until is None else f" UNTIL ({expression_text(node.until)})"
            return _pattern(node.element) + write_quantifier(node.minimum, node.maximum) + until
        case ast.Seq():
            return f"SEQ({join_operands(map(_pattern, node.elements))})"
        case ast.And():
            return f"AND({join_operands(map(_pattern, node.elements))})"
        case ast.Or():
            return f"OR({join_operands(map(_pattern, node.elements))})"
        case ast.Not():
            return f"NOT({_pattern(node.element)})"
        case ast.Next():
            return f"NEXT({_pattern(node.element)})"
        case ast.Gap():
            word = next(word for word, strategy in ast.GAPS.items() if strategy == node.strategy)
            return f"{word}({_pattern(node.element)})"
    raise TypeError(f"no text for {type(node).__name__}")


def _group_bounds(node: ast.Repeat) -> str:
    """Return the text of the bounds of a composite, which takes no other quantifier and no UNTIL."""
    if node.until is not None:
        raise ValueError("UNTIL is written on a variable")
    return "?" if (node.minimum, node.maximum) == (0, 1) else write_bounds(node.minimum, node.maximum)
