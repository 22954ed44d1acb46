"""Turn lark's parse tree into the AST, by one function for each rule of the grammar.

The tree is walked without recursion, so that only :mod:`gpu_cep.lang.parser` limits its depth. A
rule's function takes the rule's span and what its children became. These are tokens, nodes, words,
or None for an optional part that the text leaves out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from gpu_cep.errors import Diagnostic, PatternError, nearest
from gpu_cep.lang import ast
from gpu_cep.lang.ast import Expression, PatternNode, Query, Span
from gpu_cep.lang.ast_intervals import IntervalQuery
from gpu_cep.lang.diagnosis import span_of
from gpu_cep.lang.expressions import Rule, expression_rules
from gpu_cep.lang.situations import SITUATION_RULES, Ending, constraints_of
from gpu_cep.lang.tokens import Word, amount, fault, integer, unit, word

if TYPE_CHECKING:
    from lark import Token, Tree

_COMPOSITES: dict[str, type[ast.Seq] | type[ast.And] | type[ast.Or]] = {"SEQ": ast.Seq, "AND": ast.And, "OR": ast.Or}
_QUANTIFIERS: dict[str, tuple[int, int | None]] = {"PLUS": (1, None), "STAR": (0, None), "QUESTION": (0, 1)}
# Rules that declare a variable or a situation -> the index of its name among their children that are names.
_DECLARATIONS = {"untyped": -1, "typed": -1, "typed_binding": -1, "situation": 0}


@dataclass(frozen=True, slots=True)
class _Where:
    """The WHERE clause: the condition, the strategy, and the variables listed behind that."""

    condition: Expression | None
    strategy: str | None = None
    variables: tuple[str, ...] = ()


def translate(tree: Tree[Token]) -> Query | IntervalQuery:
    """Return the query of a whole parse tree."""
    query: Query | IntervalQuery = apply_rules(_RULES | SITUATION_RULES | expression_rules(_variables(tree)), tree)
    return query


def apply_rules(rules: dict[str, Rule], tree: Tree[Token]) -> Any:
    """Return what the rules make of a whole parse tree, from the leaves up."""
    values: list[Any] = []
    for node in _postorder(tree):
        if not hasattr(node, "children"):
            values.append(node)
            continue
        start = len(values) - len(node.children)
        children = values[start:]
        del values[start:]
        values.append(rules[node.data](span_of(node.meta), children))
    return values.pop()


def _postorder(tree: Tree[Token]) -> list[Any]:
    pending: list[Any] = [tree]
    reverse = []
    while pending:
        node = pending.pop()
        reverse.append(node)
        pending += getattr(node, "children", ())
    return reverse[::-1]


def _variables(tree: Tree[Token]) -> frozenset[str]:
    """Return the names that PATTERN or DEFINE declares.

    A bare name among them is a variable, any other an attribute.
    """
    declared = tree.find_pred(lambda node: node.data in _DECLARATIONS)
    names: list[Any] = [
        [child for child in node.children if getattr(child, "data", None) == "name"][_DECLARATIONS[node.data]] for node in declared
    ]
    return frozenset(word(span_of(name.meta), name.children).text for name in names)


def _event_query(span: Span, children: list[Any]) -> Query:
    source, keys, pattern, where, within, returns, _ = children
    where = where or _Where(None)
    return Query(
        pattern,
        source,
        _partition_by(source, keys or ()),
        where.condition,
        where.strategy,
        where.variables,
        within,
        returns or (),
        span=span,
    )


def _interval_query(span: Span, children: list[Any]) -> IntervalQuery:
    source, keys, situations, parts, ending = children
    constraints = constraints_of(parts, ending)
    last = ending or Ending()
    return IntervalQuery(situations, constraints, source, _partition_by(source, keys or ()), last.within, last.returns, span=span)


def _partition_by(source: ast.Source | None, keys: tuple[tuple[Word | None, Word], ...]) -> tuple[str, ...]:
    known = () if source is None else tuple(name for name in (source.name, source.alias) if name is not None)
    faults = [
        Diagnostic(f"{qualifier.text!r} is neither FROM's name nor its alias", qualifier.span, nearest(qualifier.text, known))
        for qualifier, _ in keys
        if qualifier is not None and qualifier.text not in known
    ]
    if faults:
        raise PatternError(faults)
    return tuple(attribute.text for _, attribute in keys)


def _partition_key(span: Span, children: list[Any]) -> tuple[Word | None, Word]:
    first, second = children
    return (None, first) if second is None else (first, second)


def _source(span: Span, children: list[Any]) -> ast.Source:
    name, alias = children
    return ast.Source(name.text, alias and alias.text, span=span)


def _braced_where(span: Span, children: list[Any]) -> _Where:
    strategy, variables, condition = children
    return _Where(condition, strategy and strategy.upper().lower(), variables or ())


def as_tuple(span: Span, children: list[Any]) -> tuple[Any, ...]:
    """Return what stands in a list."""
    return tuple(children)


def _within(span: Span, children: list[Any]) -> ast.Window:
    length: ast.Window = children[0]
    return replace(length, span=span)


def _length(span: Span, children: list[Any]) -> ast.Window:
    number, name = children
    length = amount(number)
    if name is None:
        return ast.Window(length, None, span=span)
    if name.lower() not in ("event", "events"):
        return ast.Window(length, unit(name, ("EVENTS", "RETURN"), str(number)), span=span)
    if isinstance(length, Decimal):
        raise fault("a window of events takes a whole number", span_of(number))
    return ast.Window(length, "events", span=span)


def _item(span: Span, children: list[Any]) -> ast.ReturnItem:
    expression, name = children
    return ast.ReturnItem(expression, name and name.text, span=span)


def _composite(span: Span, children: list[Any]) -> PatternNode:
    keyword, *elements, bounds = children
    composite = _COMPOSITES[keyword.type](tuple(elements), span=span)
    return composite if bounds is None else ast.Repeat(composite, *bounds, span=span)


def _gap(span: Span, children: list[Any]) -> ast.Gap:
    word, element = children
    return ast.Gap(element, ast.GAPS[word.upper()], span=span)


def _primitive(span: Span, children: list[Any]) -> PatternNode:
    *words, bounds, until = children
    return _repeat(words, bounds, until, span)


def _typed_binding(span: Span, children: list[Any]) -> PatternNode:
    event_type, bounds, name, until = children
    return _repeat([event_type, name], bounds, until, span)


def _repeat(words: list[Word], bounds: tuple[int, int | None] | None, until: ast.Expression | None, span: Span) -> PatternNode:
    event_type = words[0].text if len(words) == 2 else None
    first, last = words[0].span, words[-1].span
    variable = ast.Variable(words[-1].text, event_type, span=Span(first.line, first.column, last.end_line, last.end_column))
    return variable if bounds is None else ast.Repeat(variable, *bounds, until=until, span=span)


def bounds_of_sign(span: Span, children: list[Any]) -> tuple[int, int | None]:
    """Return the bounds for which a quantifier of one sign stands."""
    return _QUANTIFIERS[children[0].type]


def _bounds(span: Span, children: list[Any]) -> tuple[int, int | None]:
    numbers = [None if token is None else integer(token) for token in children]
    minimum, maximum = numbers[0], numbers[-1]
    assert minimum is not None
    return check_bounds(minimum, maximum, "event", span)


def check_bounds(minimum: int, maximum: int | None, bound: str, span: Span) -> tuple[int, int | None]:
    """Return the bounds of a quantifier; raise a fault if nothing lies between them but none. `bound` is what it counts."""
    if maximum == 0:
        raise fault(f"a quantifier must allow at least one {bound}", span, "NOT(A a) forbids an event" if bound == "event" else None)
    if maximum is not None and maximum < minimum:
        raise fault(f"the quantifier's maximum {maximum} is below its minimum {minimum}", span)
    return minimum, maximum


# Rules that row patterns have, too.
SHARED_RULES: dict[str, Rule] = {"within": _within, "length": _length, "name": word, "attribute": word}

_RULES: dict[str, Rule] = SHARED_RULES | {
    "event_query": _event_query,
    "interval_query": _interval_query,
    "source": _source,
    "partition": as_tuple,
    "partition_key": _partition_key,
    "where": lambda span, children: _Where(children[0]),
    "braced_where": _braced_where,
    "listed": lambda span, children: tuple(word.text for word in children),
    "returns": as_tuple,
    "item": _item,
    "composite": _composite,
    "negation": lambda span, children: ast.Not(children[-1], span=span),
    "adjacency": lambda span, children: ast.Next(children[0], span=span),
    "gap": _gap,
    "untyped": _primitive,
    "typed": _primitive,
    "typed_binding": _typed_binding,
    "until": lambda span, children: children[0],
    "sign": bounds_of_sign,
    "bounds": _bounds,
}
