"""Write expressions, lengths and quantifiers as canonical text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import singledispatch

from gpu_cep.errors import PatternError
from gpu_cep.lang import ast, literals
from gpu_cep.lang.ast import Expression, Index, Node
from gpu_cep.lang.literals import write_attribute, write_name

# How tightly operators bind, in ascending order; operands that bind less tightly than their place demands get parentheses.
_OR, _AND, _NOT, _PREDICATE, _SUM, _PRODUCT, _SIGN, _ATOM = range(8)
_LEVELS = {"OR": _OR, "AND": _AND, "+": _SUM, "-": _SUM, "*": _PRODUCT, "/": _PRODUCT, "%": _PRODUCT}
# Names of functions that mean something else without quotes, here or in row patterns.
_QUOTED_FUNCTIONS = frozenset({*ast.AGGREGATES, "prev", "next", "classifier", "match_number", "subset"})
_PLAIN_QUANTIFIERS = {(1, None): "+", (0, None): "*", (0, 1): "?"}


@contextmanager
def refuse_unsayable() -> Iterator[None]:
    """Raise PatternError where a tree holds what no text can say, in a block or in a function that this decorates."""
    try:
        yield
    except ValueError as error:
        raise PatternError(str(error)) from None


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


def write_operand(node: Expression) -> str:
    """Return the text of an expression, in parentheses if it is more than one operand."""
    return _within(node, _ATOM)


def write_length(length: ast.Window) -> str:
    """Return the text of a length of time, or of a number of events."""
    amount = literals.write_number(length.amount)
    return amount if length.unit is None else literals.with_unit(amount, length.unit).upper()


def join_operands(texts: Iterable[str]) -> str:
    """Return the texts with commas between them."""
    return ", ".join(texts)


def write_quantifier(minimum: int, maximum: int | None) -> str:
    """Return the text of a quantifier."""
    plain = _PLAIN_QUANTIFIERS.get((minimum, maximum))
    return write_bounds(minimum, maximum) if plain is None else plain


def write_bounds(minimum: int, maximum: int | None) -> str:
    """Return the text of bounds in braces."""
    return f"{{{minimum}}}" if minimum == maximum else f"{{{minimum},{'' if maximum is None else maximum}}}"


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
