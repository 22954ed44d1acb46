"""From lark's parse tree to the AST: one function for each rule of the grammar.

The tree is walked without recursion, so that its depth is limited by
:mod:`gpu_cep.lang.parser` alone. A rule's function takes the rule's span and
what its children became: tokens, nodes, words, or None for an optional part
that the text leaves out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from gpu_cep.errors import Diagnostic, PatternError, PatternSyntaxError, nearest
from gpu_cep.lang import ast, literals
from gpu_cep.lang.ast import Expression, PatternNode, Query, Span
from gpu_cep.lang.diagnosis import span_of

if TYPE_CHECKING:
    from lark import Token, Tree

T = TypeVar("T")
Rule = Callable[[Span, list[Any]], Any]

_COMPOSITES: dict[str, type[ast.Seq] | type[ast.And] | type[ast.Or]] = {"SEQ": ast.Seq, "AND": ast.And, "OR": ast.Or}
_QUANTIFIERS: dict[str, tuple[int, int | None]] = {"PLUS": (1, None), "STAR": (0, None), "QUESTION": (0, 1)}
_CONSTANTS = {"TRUE": True, "FALSE": False, "NULL": None}
_CANONICAL = {"==": "=", "!=": "<>"}
_PRIMITIVES = ("untyped", "typed", "typed_binding")


@dataclass(frozen=True, slots=True)
class Word:
    """A name as it stands in the text."""

    text: str
    span: Span
    quoted: bool


@dataclass(frozen=True, slots=True)
class _LengthIndex:
    """``[v.LEN]``, not yet known to be of the variable before the bracket."""

    variable: Word
    span: Span


@dataclass(frozen=True, slots=True)
class _Where:
    condition: Expression | None
    strategy: str | None = None
    variables: tuple[str, ...] = ()


def translate(tree: Tree[Token]) -> Query:
    """The query that a whole parse tree stands for."""
    rules = _RULES | {"reference": partial(_reference, _variables(tree))}
    values: list[Any] = []
    for node in _postorder(tree):
        if not hasattr(node, "children"):
            values.append(node)
            continue
        start = len(values) - len(node.children)
        children = values[start:]
        del values[start:]
        values.append(rules[node.data](span_of(node.meta), children))
    query: Query = values.pop()
    return query


def _postorder(tree: Tree[Token]) -> list[Any]:
    pending: list[Any] = [tree]
    reverse = []
    while pending:
        node = pending.pop()
        reverse.append(node)
        pending += getattr(node, "children", ())
    return reverse[::-1]


def _variables(tree: Tree[Token]) -> frozenset[str]:
    """The names that PATTERN declares: a bare name among them is a variable, any other an attribute."""
    declared = tree.find_pred(lambda node: node.data in _PRIMITIVES)
    names: list[Any] = [[child for child in node.children if getattr(child, "data", None) == "name"][-1] for node in declared]
    return frozenset(_word(span_of(name.meta), name.children).text for name in names)


def _fault(message: str, span: Span, hint: str | None = None) -> PatternSyntaxError:
    return PatternSyntaxError([Diagnostic(message, span, hint)])


def _read(reader: Callable[[str], T], text: str, span: Span) -> T:
    try:
        return reader(str(text))
    except ValueError as error:
        raise _fault(str(error), span) from None


def _word(span: Span, children: list[Any]) -> Word:
    token = children[0]
    quoted = token.type == "QUOTED"
    return Word(literals.read_text(token) if quoted else str(token), span, quoted)


# Query -------------------------------------------------------------------------


def _start(span: Span, children: list[Any]) -> Query:
    source, keys, _, pattern, where, within, returns = children
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


def _where(span: Span, children: list[Any]) -> _Where:
    return _Where(children[0])


def _braced_where(span: Span, children: list[Any]) -> _Where:
    strategy, variables, condition = children
    return _Where(condition, strategy and strategy.upper().lower(), variables or ())


def _texts(span: Span, children: list[Any]) -> tuple[str, ...]:
    return tuple(word.text for word in children)


def _tuple(span: Span, children: list[Any]) -> tuple[Any, ...]:
    return tuple(children)


def _within(span: Span, children: list[Any]) -> ast.Window:
    amount = _amount(children[0])
    if children[1] is None:
        return ast.Window(amount, None, span=span)
    if children[1].lower() not in ("event", "events"):
        return ast.Window(amount, _unit(children[1], ("EVENTS", "RETURN")), span=span)
    if isinstance(amount, Decimal):
        raise _fault("a window of events takes a whole number", span_of(children[0]))
    return ast.Window(amount, "events", span=span)


def _item(span: Span, children: list[Any]) -> ast.ReturnItem:
    expression, name = children
    return ast.ReturnItem(expression, name and name.text, span=span)


# Patterns ----------------------------------------------------------------------


def _composite(span: Span, children: list[Any]) -> PatternNode:
    keyword, *elements = children
    return _COMPOSITES[keyword.type](tuple(elements), span=span)


def _negation(span: Span, children: list[Any]) -> ast.Not:
    return ast.Not(children[-1], span=span)


def _primitive(span: Span, children: list[Any]) -> PatternNode:
    *words, bounds = children
    return _repeated(words, bounds, span)


def _typed_binding(span: Span, children: list[Any]) -> PatternNode:
    event_type, bounds, name = children
    return _repeated([event_type, name], bounds, span)


def _repeated(words: list[Word], bounds: tuple[int, int | None] | None, span: Span) -> PatternNode:
    event_type = words[0].text if len(words) == 2 else None
    first, last = words[0].span, words[-1].span
    variable = ast.Variable(words[-1].text, event_type, span=Span(first.line, first.column, last.end_line, last.end_column))
    return variable if bounds is None else ast.Repeat(variable, *bounds, span=span)


def _sign(span: Span, children: list[Any]) -> tuple[int, int | None]:
    return _QUANTIFIERS[children[0].type]


def _bounds(span: Span, children: list[Any]) -> tuple[int, int | None]:
    numbers = [None if token is None else _integer(token) for token in children]
    minimum, maximum = numbers[0], numbers[-1]
    assert minimum is not None
    if maximum == 0:
        raise _fault("a quantifier must allow at least one event", span)
    if maximum is not None and maximum < minimum:
        raise _fault(f"the quantifier's maximum {maximum} is below its minimum {minimum}", span)
    return minimum, maximum


# Expressions ---------------------------------------------------------------------


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
    return ast.Literal(_read(literals.read_number, children[0], span), span=span)


def _negative_number(span: Span, children: list[Any]) -> ast.Literal:
    return ast.Literal(literals.negative(children[1].value), span=span)


def _integer(token: Token) -> int:
    value = _read(literals.read_number, token, span_of(token))
    assert isinstance(value, int)
    return value


def _text(span: Span, children: list[Any]) -> ast.Literal:
    return ast.Literal(literals.read_text(children[0]), span=span)


def _constant(span: Span, children: list[Any]) -> ast.Literal:
    return ast.Literal(_CONSTANTS[children[0].type], span=span)


def _date(span: Span, children: list[Any]) -> ast.Literal:
    return ast.Literal(_read(literals.read_date, literals.read_text(children[0]), span), span=span)


def _timestamp(span: Span, children: list[Any]) -> ast.Literal:
    return ast.Literal(_read(literals.read_timestamp, literals.read_text(children[0]), span), span=span)


def _duration(span: Span, children: list[Any]) -> ast.DurationLiteral:
    return ast.DurationLiteral(_amount(children[0]), _unit(children[1], ("AND", "OR", "IN", "LIKE")), span=span)


def _amount(token: Token) -> int | Decimal:
    text = literals.read_text(token) if token.type == "TEXT" else str(token)
    return _read(literals.read_amount, text, span_of(token))


def _unit(token: Token, keywords: tuple[str, ...]) -> str:
    name = token.lower()
    if name in literals.UNIT_SPELLINGS:
        return literals.UNIT_SPELLINGS[name]
    if name.rstrip("s") in ("month", "year"):
        raise _fault(f"a {name.rstrip('s')} has no fixed length: say it in days", span_of(token))
    hint = nearest(token, (*literals.UNIT_SPELLINGS, *keywords))
    raise _fault(f"'{token}' is no unit of time", span_of(token), hint)


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
        raise _fault(f"the last event of {variable.text} is {variable.text}[{variable.text}.LEN]", index.span)
    return ast.LastIndex(span=index.span)


def _each_index(span: Span, children: list[Any]) -> ast.EachIndex:
    _check_counter(children[0])
    return ast.EachIndex(span=span)


def _previous_index(span: Span, children: list[Any]) -> ast.PreviousIndex:
    counter, _, distance = children
    _check_counter(counter)
    if _integer(distance) != 1:
        raise _fault("only the event bound just before can be read: v[i-1]", span)
    return ast.PreviousIndex(span=span)


def _number_index(span: Span, children: list[Any]) -> ast.NumberIndex:
    number = _integer(children[0])
    if number == 0:
        raise _fault("the events of a binding are counted from 1", span)
    return ast.NumberIndex(number, span=span)


def _last_index(span: Span, children: list[Any]) -> _LengthIndex:
    variable, attribute = children
    if attribute.text.upper() != "LEN":
        raise _fault(f"found {attribute.text!r}, expected LEN, as in v[v.LEN]", attribute.span)
    return _LengthIndex(variable, span)


def _check_counter(word: Word) -> None:
    if word.text.lower() != "i":
        raise _fault(f"found {word.text!r}, expected the index i, i-1, a number or v.LEN", word.span)


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
    raise _fault("prev takes one attribute of a variable: prev(v.attr)", span)


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
    raise _fault(f"{function} takes {accepted}", span, hint)


def _running_aggregate(span: Span, children: list[Any]) -> ast.Aggregate:
    name, variable, counter, _, distance, attribute = children
    function = name.text.lower()
    _check_counter(counter)
    if _integer(distance) != 1:
        raise _fault("a running aggregate covers the events before the current one: v[..i-1]", span)
    if name.quoted or function not in ast.AGGREGATES:
        raise _fault(f"{name.text!r} is no aggregate", name.span, nearest(name.text, ast.AGGREGATES))
    if attribute is None and function != "count":
        raise _fault(f"{function} takes one attribute of a variable: {function}(v[..i-1].attr)", span)
    return ast.Aggregate(function, variable.text, attribute and attribute.text, running=True, span=span)


_RULES: dict[str, Rule] = {
    "start": _start,
    "source": _source,
    "partition": _tuple,
    "partition_key": _partition_key,
    "where": _where,
    "braced_where": _braced_where,
    "listed": _texts,
    "within": _within,
    "returns": _tuple,
    "item": _item,
    "composite": _composite,
    "negation": _negation,
    "untyped": _primitive,
    "typed": _primitive,
    "typed_binding": _typed_binding,
    "sign": _sign,
    "bounds": _bounds,
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
    "name": _word,
    "attribute": _word,
}
