"""Turn lark's parse tree of MATCH_RECOGNIZE into its AST, by one function for each rule of the grammar."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpu_cep.errors import Diagnostic, UnsupportedError
from gpu_cep.lang import ast
from gpu_cep.lang.ast import Span
from gpu_cep.lang.diagnosis import span_of
from gpu_cep.lang.expressions import Rule
from gpu_cep.lang.row_patterns.ast import (
    Anchor,
    Definition,
    Empty,
    Exclusion,
    Measure,
    Permute,
    RowPatternQuery,
    Skip,
    SortKey,
    Subset,
)
from gpu_cep.lang.row_patterns.expressions import identifier, row_expression_rules
from gpu_cep.lang.tokens import Word, fault, integer, word
from gpu_cep.lang.translation import SHARED_RULES, apply_rules, as_tuple, bounds_of_sign, check_bounds

if TYPE_CHECKING:
    from lark import Token, Tree

_ALL_ROWS = {None: "show empty", "SHOW": "show empty", "OMIT": "omit empty", "WITH": "with unmatched"}
_Bounds = tuple[int, int | None]


def translate_row_pattern(tree: Tree[Token]) -> RowPatternQuery:
    """Return the query of a whole parse tree."""
    query: RowPatternQuery = apply_rules(_RULES | row_expression_rules(), tree)
    return query


def _row_query(span: Span, children: list[Any]) -> RowPatternQuery:
    keys, order, measures, rows, skip, position, pattern, within, subsets, definitions, _ = children
    if position is not None:
        message = f"{position.upper()} is not supported"
        hint = "it is for row patterns in windows; in FROM every match is sought"
        raise UnsupportedError([Diagnostic(message, span_of(position), hint)])
    return RowPatternQuery(
        pattern, keys or (), order or (), measures or (), rows or "one", skip, within, subsets or (), definitions or (), span=span
    )


def _sort_key(span: Span, children: list[Any]) -> SortKey:
    column, direction, nulls = children
    nulls_first = None if nulls is None else nulls.upper().endswith("FIRST")
    return SortKey(column, direction is not None and direction.upper() == "DESC", nulls_first, span=span)


def _measure(span: Span, children: list[Any]) -> Measure:
    expression, name = children
    return Measure(expression, identifier(name), span=span)


def _row_skip(span: Span, children: list[Any]) -> Skip:
    match children:
        case [keyword, Word() as variable]:
            to: Any = "LAST" if keyword is None else keyword.upper()
            return Skip(to, identifier(variable), span=span)
        case [_, _]:
            return Skip("PAST LAST ROW", span=span)
    return Skip("NEXT ROW", span=span)


def _subset(span: Span, children: list[Any]) -> Subset:
    name, sign, *members = children
    if sign != "=":
        raise fault(f"found {str(sign)!r}, expected =", span_of(sign), "SUBSET U = (A, B)")
    return Subset(identifier(name), tuple(map(identifier, members)), span=span)


def _definition(span: Span, children: list[Any]) -> Definition:
    name, condition = children
    return Definition(identifier(name), condition, span=span)


def _repeat(span: Span, children: list[Any]) -> ast.Repeat:
    element, (minimum, maximum), reluctant = children
    # a number of times that is fixed leaves nothing to prefer
    return ast.Repeat(element, minimum, maximum, reluctant is None or minimum == maximum, span=span)


def _exactly(span: Span, children: list[Any]) -> _Bounds:
    number = integer(children[0])
    return check_bounds(number, number, "row", span)


def _between(span: Span, children: list[Any]) -> _Bounds:
    minimum, maximum = (None if token is None else integer(token) for token in children)
    return check_bounds(minimum or 0, maximum, "row", span)


def _anchor(span: Span, children: list[Any]) -> Anchor:
    sign: Any = str(children[0])
    return Anchor(sign, span=span)


_RULES: dict[str, Rule] = SHARED_RULES | {
    "row_query": _row_query,
    "row_keys": as_tuple,
    "row_order": as_tuple,
    "sort_key": _sort_key,
    "measures": as_tuple,
    "measure": _measure,
    "one_row": lambda span, children: "one",
    "all_rows": lambda span, children: _ALL_ROWS[children[0].upper() if children else None],
    "row_skip": _row_skip,
    "subsets": as_tuple,
    "subset": _subset,
    "row_definitions": as_tuple,
    "row_definition": _definition,
    "row_concatenation": lambda span, children: ast.Seq(tuple(children), span=span),
    "row_alternatives": lambda span, children: ast.Or(tuple(children), span=span),
    "row_repeat": _repeat,
    "row_quantifier": bounds_of_sign,
    "exactly": _exactly,
    "between_bounds": _between,
    "row_variable": lambda span, children: ast.Variable(identifier(word(span, children)), span=span),
    "row_anchor": _anchor,
    "row_empty": lambda span, children: Empty(span=span),
    "row_exclusion": lambda span, children: Exclusion(children[0], span=span),
    "permutation": lambda span, children: Permute(tuple(children), span=span),
}
