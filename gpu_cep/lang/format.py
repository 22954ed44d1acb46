"""Write queries and expressions as canonical text.

:func:`gpu_cep.lang.parser.parse` turns that text into the same tree again.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import singledispatch

from gpu_cep.errors import PatternError
from gpu_cep.lang import ast, literals
from gpu_cep.lang.ast import Expression, Index, Node, PatternNode, Query
from gpu_cep.lang.ast_intervals import Constraint, IntervalQuery, Situation
from gpu_cep.lang.literals import write_attribute, write_name
from gpu_cep.lang.row_patterns.ast import RowPatternQuery

# How tightly operators bind, in ascending order; operands that bind less tightly than their place demands get parentheses.
_OR, _AND, _NOT, _PREDICATE, _SUM, _PRODUCT, _SIGN, _ATOM = range(8)
_LEVELS = {"OR": _OR, "AND": _AND, "+": _SUM, "-": _SUM, "*": _PRODUCT, "/": _PRODUCT, "%": _PRODUCT}
# Names of functions that mean something else without quotes, here or in row patterns.
_QUOTED_FUNCTIONS = frozenset({*ast.AGGREGATES, "prev", "next", "classifier", "match_number", "subset"})
_PLAIN_QUANTIFIERS = {(1, None): "+", (0, None): "*", (0, 1): "?"}


def format_query(query: Query | IntervalQuery | RowPatternQuery) -> str:
    """Return `query` in canonical form, one clause to a line.

    Raises
    ------
    PatternError
        If the tree holds what no text can say: an infinite number, an empty name, a reluctant quantifier.
    """
    if isinstance(query, RowPatternQuery):
        from gpu_cep.lang.row_patterns.format import format_row_pattern

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


def write_length(length: ast.Window) -> str:
    """Return the text of a length of time, or of a number of events."""
    amount = literals.write_number(length.amount)
    return amount if length.unit is None else literals.with_unit(amount, length.unit).upper()


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


def join_operands(texts: Iterable[str]) -> str:
    """Return the texts with commas between them."""
    return ", ".join(texts)


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
    return _bounds(node.minimum, node.maximum)


def write_quantifier(minimum: int, maximum: int | None) -> str:
    """Return the text of a quantifier."""
    plain = _PLAIN_QUANTIFIERS.get((minimum, maximum))
    return _bounds(minimum, maximum) if plain is None else plain


def _bounds(minimum: int, maximum: int | None) -> str:
    return f"{{{minimum}}}" if minimum == maximum else f"{{{minimum},{'' if maximum is None else maximum}}}"


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


def _within(node: Expression, level: int) -> str:
    """Return the text of `node`, in parentheses if it binds less tightly than `level`."""
    text = expression_text(node)
    return text if _level(node, text) >= level else f"({text})"


def _level(node: Expression, text: str) -> int:
    match node:
        case ast.Binary() | ast.Connective():
            return _LEVELS.get(node.operator, _PREDICATE)
        case ast.Unary(operator="NOT"):
            return _NOT
        case ast.Unary():
            return _SIGN
        case ast.Between() | ast.In() | ast.Like() | ast.IsNull():
            return _PREDICATE
        case ast.Literal():
            return _SIGN if text.startswith("-") else _ATOM
    return _ATOM


@singledispatch
def expression_text(node: Node) -> str:
    """Return the text of an expression, or of an index."""
    raise TypeError(f"no text for {type(node).__name__}")


@expression_text.register
def _(node: ast.Literal) -> str:
    return literals.write_literal(node)


@expression_text.register
def _(node: ast.DurationLiteral) -> str:
    return literals.write_duration(node)


@expression_text.register
def _(node: ast.Reference) -> str:
    if node.variable is None:
        assert node.attribute is not None
        return write_name(node.attribute)
    return _attribute_of(node.variable, node.index, node.attribute)


def _attribute_of(variable: str, index: Index | None, attribute: str | None) -> str:
    name = write_name(variable)
    place = "" if index is None else f"[{_index(index, name)}]"
    return name + place + ("" if attribute is None else f".{write_attribute(attribute)}")


def _index(index: Index, variable: str) -> str:
    match index:
        case ast.EachIndex():
            return "i"
        case ast.PreviousIndex():
            return "i-1"
        case ast.NumberIndex():
            return str(index.number)
        case ast.LastIndex():
            return f"{variable}.LEN"
    raise TypeError(f"no text for {type(index).__name__}")


@expression_text.register
def _(node: ast.Equivalence) -> str:
    return f"[{write_attribute(node.attribute)}]"


@expression_text.register
def _(node: ast.PrevBound) -> str:
    return f"prev({_attribute_of(node.variable, None, node.attribute)})"


@expression_text.register
def _(node: ast.Aggregate) -> str:
    place = "[..i-1]" if node.running else ""
    attribute = "" if node.attribute is None else f".{write_attribute(node.attribute)}"
    function = "count(DISTINCT " if node.function == "count_distinct" else f"{node.function}("
    return f"{function}{write_name(node.variable)}{place}{attribute})"


@expression_text.register
def _(node: ast.Call) -> str:
    name = write_name(node.function)
    if node.function in _QUOTED_FUNCTIONS:
        name = literals.write_text(node.function, '"')
    return f"{name}({join_operands(map(expression_text, node.arguments))})"


@expression_text.register
def _(node: ast.Case) -> str:
    branches = (
        f" WHEN {expression_text(condition)} THEN {expression_text(value)}"
        for condition, value in zip(node.conditions, node.values, strict=True)
    )
    otherwise = "" if node.otherwise is None else f" ELSE {expression_text(node.otherwise)}"
    return f"CASE{''.join(branches)}{otherwise} END"


@expression_text.register
def _(node: ast.Unary) -> str:
    if node.operator == "NOT":
        return f"NOT {_within(node.operand, _NOT)}"
    number = isinstance(node.operand, ast.Literal) and not isinstance(node.operand.value, str)
    return f"-({expression_text(node.operand)})" if number else f"-{_within(node.operand, _ATOM)}"


@expression_text.register
def _(node: ast.Binary) -> str:
    level = _LEVELS.get(node.operator, _PREDICATE)
    left = _SUM if level == _PREDICATE else level
    return f"{_within(node.left, left)} {node.operator} {_within(node.right, level + 1)}"


@expression_text.register
def _(node: ast.Connective) -> str:
    level = _LEVELS[node.operator]
    return f" {node.operator} ".join(_within(operand, level + 1) for operand in node.operands)


@expression_text.register
def _(node: ast.Between) -> str:
    return f"{_within(node.operand, _SUM)}{_not(node.negated)} BETWEEN {_within(node.low, _SUM)} AND {_within(node.high, _SUM)}"


@expression_text.register
def _(node: ast.In) -> str:
    return f"{_within(node.operand, _SUM)}{_not(node.negated)} IN ({join_operands(map(expression_text, node.items))})"


@expression_text.register
def _(node: ast.Like) -> str:
    return f"{_within(node.operand, _SUM)}{_not(node.negated)} LIKE {_within(node.pattern, _SUM)}"


@expression_text.register
def _(node: ast.IsNull) -> str:
    return f"{_within(node.operand, _SUM)} IS{_not(node.negated)} NULL"


def _not(negated: bool) -> str:
    return " NOT" if negated else ""
