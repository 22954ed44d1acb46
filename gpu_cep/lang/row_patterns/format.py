"""Write MATCH_RECOGNIZE as canonical text, which the parser turns into the same tree again."""

from __future__ import annotations

from collections.abc import Iterable

from gpu_cep.lang import ast
from gpu_cep.lang.ast import PatternNode
from gpu_cep.lang.expression_texts import expression_text, join_operands, refuse_unsayable, write_length, write_quantifier
from gpu_cep.lang.row_patterns.ast import (
    Anchor,
    Classifier,
    Column,
    Empty,
    Exclusion,
    MatchNumber,
    Navigation,
    Permute,
    RowAggregate,
    RowPatternQuery,
    Skip,
    SortKey,
)

# How tightly the parts of a pattern bind, in ascending order.
_ALTERNATIVES, _SEQUENCE, _FACTOR, _PRIMARY = range(4)
_ROWS = {
    "one": "ONE ROW PER MATCH",
    "show empty": "ALL ROWS PER MATCH",
    "omit empty": "ALL ROWS PER MATCH OMIT EMPTY MATCHES",
    "with unmatched": "ALL ROWS PER MATCH WITH UNMATCHED ROWS",
}


@refuse_unsayable()
def format_row_pattern(query: RowPatternQuery) -> str:
    """Return `query` in canonical form, one clause to a line.

    Raises
    ------
    PatternError
        If the tree holds what no text can say, such as an infinite number.
    """
    return "\n  ".join(["MATCH_RECOGNIZE (", *_clauses(query)]) + "\n)"


def format_row_expression(expression: ast.Expression) -> str:
    """Return an expression of MEASURES or DEFINE in canonical form."""
    return expression_text(expression)


def _clauses(query: RowPatternQuery) -> Iterable[str]:
    if query.partition_by:
        yield f"PARTITION BY {join_operands(map(expression_text, query.partition_by))}"
    if query.order_by:
        yield f"ORDER BY {join_operands(map(_sort_key, query.order_by))}"
    if query.measures:
        yield f"MEASURES {join_operands(f'{expression_text(each.expression)} AS {each.name}' for each in query.measures)}"
    yield _ROWS[query.rows]
    if query.skip is not None:
        yield f"AFTER MATCH SKIP {_skip(query.skip)}"
    yield f"PATTERN ({_pattern(query.pattern)})"
    if query.within is not None:
        yield f"WITHIN {write_length(query.within)}"
    if query.subsets:
        yield f"SUBSET {join_operands(f'{each.name} = ({join_operands(each.members)})' for each in query.subsets)}"
    if query.definitions:
        yield f"DEFINE {join_operands(f'{each.name} AS {expression_text(each.condition)}' for each in query.definitions)}"


def _sort_key(key: SortKey) -> str:
    nulls = {None: "", True: " NULLS FIRST", False: " NULLS LAST"}[key.nulls_first]
    return f"{expression_text(key.column)}{' DESC' if key.descending else ''}{nulls}"


def _skip(skip: Skip) -> str:
    if skip.variable is not None:
        return f"TO {skip.to} {skip.variable}"
    return skip.to if skip.to == "PAST LAST ROW" else f"TO {skip.to}"


def _within(node: PatternNode, level: int) -> str:
    """Return the text of `node`, in parentheses if it binds less tightly than `level`."""
    levels: dict[type, int] = {ast.Or: _ALTERNATIVES, ast.Seq: _SEQUENCE, ast.Repeat: _FACTOR}
    text = _pattern(node)
    return text if levels.get(type(node), _PRIMARY) >= level else f"({text})"


def _pattern(node: PatternNode) -> str:
    """Return the text of a pattern, or of an element of one."""
    match node:
        case ast.Variable():
            # before a bracket the bare word would be PERMUTE(…)
            return f"({node.name})" if node.name.upper() == "PERMUTE" else node.name
        case ast.Repeat():
            reluctant = "" if node.greedy else "?"
            return f"{_within(node.element, _PRIMARY)}{write_quantifier(node.minimum, node.maximum)}{reluctant}"
        case ast.Seq():
            return " ".join(_within(each, _FACTOR) for each in node.elements)
        case ast.Or():
            return " | ".join(_within(each, _SEQUENCE) for each in node.elements)
        case Anchor():
            return node.sign
        case Empty():
            return "()"
        case Exclusion():
            return f"{{- {_pattern(node.element)} -}}"
        case Permute():
            return f"PERMUTE({join_operands(map(_pattern, node.elements))})"
    raise TypeError(f"no text for {type(node).__name__}")


@expression_text.register
def _(node: Column) -> str:
    return node.name if node.variable is None else f"{node.variable}.{node.name}"


@expression_text.register
def _(node: Navigation) -> str:
    offset = "" if node.offset is None else f", {node.offset}"
    return f"{_mark(node.semantics)}{node.function}({expression_text(node.argument)}{offset})"


@expression_text.register
def _(node: RowAggregate) -> str:
    rows = "*" if node.variable is None else f"{node.variable}.*"
    argument = rows if node.argument is None else expression_text(node.argument)
    function = "count(DISTINCT " if node.function == "count_distinct" else f"{node.function}("
    return f"{_mark(node.semantics)}{function}{argument})"


@expression_text.register
def _(node: Classifier) -> str:
    return f"CLASSIFIER({node.variable or ''})"


@expression_text.register
def _(node: MatchNumber) -> str:
    return "MATCH_NUMBER()"


def _mark(semantics: str | None) -> str:
    return "" if semantics is None else f"{semantics} "
