"""Define the abstract syntax of queries over events, as frozen dataclasses.

Every node carries the source span that it was read from. Spans take no part in equality, so that
``parse(format(query)) == query``.

The tree can say more than the planner runs. Quantifiers may stand on any node, and say whether they
are greedy. Alternatives are ordered. ``prev`` of a binding is a node of its own; it is not SQL's
PREV, which is the previous row.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from itertools import chain
from typing import get_args

from gpu_cep.choices import Strategy


@dataclass(frozen=True, slots=True)
class Span:
    """A node's place in the text; lines and columns count from 1, and the end is exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True, slots=True)
class Node:
    """The base of all nodes."""

    span: Span | None = field(default=None, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Expression(Node):
    """The base of all nodes that have a value."""


@dataclass(frozen=True, slots=True)
class Literal(Expression):
    """A constant.

    `value`: an int, text, a truth value, None (NULL), a date or a timestamp.
    A number with a fraction is a Decimal, one with an exponent is a float.
    """

    value: int | Decimal | float | str | bool | date | datetime | None


@dataclass(frozen=True, slots=True)
class DurationLiteral(Expression):
    """A length of time, ``15 days``; `unit` is a key of :data:`UNITS`."""

    amount: int | Decimal
    unit: str


@dataclass(frozen=True, slots=True)
class Index(Node):
    """The base of what stands in the brackets of ``v[…]``."""


@dataclass(frozen=True, slots=True)
class EachIndex(Index):
    """The current event: ``v[i]``."""


@dataclass(frozen=True, slots=True)
class PreviousIndex(Index):
    """The event bound before the current one: ``v[i-1]``."""


@dataclass(frozen=True, slots=True)
class NumberIndex(Index):
    """An event by its number: ``v[1]`` is the first."""

    number: int


@dataclass(frozen=True, slots=True)
class LastIndex(Index):
    """The last event: ``v[v.LEN]``."""


@dataclass(frozen=True, slots=True)
class Reference(Expression):
    """A reference to an attribute: ``v.attr`` or ``v[index].attr``.

    `variable`: None for a bare attribute.
    `attribute`: None for a bare variable (in RETURN only).
    `index`: None where none is written.
    """

    variable: str | None
    attribute: str | None
    index: Index | None = None


@dataclass(frozen=True, slots=True)
class PrevBound(Expression):
    """``prev(v.attr)``: the attribute of the event bound to `variable` just before the current one."""

    variable: str
    attribute: str


@dataclass(frozen=True, slots=True)
class Aggregate(Expression):
    """An aggregate: ``avg(v.attr)``.

    `function`: one of :data:`AGGREGATES`, in lower case.
    ``count_distinct`` is written ``count(DISTINCT v.attr)``.
    `variable`, `attribute`: what is aggregated; `attribute` is None for ``count(v)``.
    `running`: whether only earlier events count, as in ``avg(v[..i-1].attr)``.
    """

    function: str
    variable: str
    attribute: str | None
    running: bool = False


@dataclass(frozen=True, slots=True)
class Call(Expression):
    """A call of a scalar function, whose name is in lower case."""

    function: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Case(Expression):
    """``CASE WHEN condition THEN value … ELSE otherwise END``: the value of the first condition that is true.

    `conditions`, `values`: one of each for every WHEN.
    `otherwise`: None where no ELSE is written, which stands for NULL.
    ``CASE x WHEN y THEN …`` has the condition ``x = y``.
    """

    conditions: tuple[Expression, ...]
    values: tuple[Expression, ...]
    otherwise: Expression | None = None


@dataclass(frozen=True, slots=True)
class Unary(Expression):
    """An operator before its operand; `operator` is ``-`` or ``NOT``."""

    operator: str
    operand: Expression


@dataclass(frozen=True, slots=True)
class Binary(Expression):
    """An operator between two operands.

    `operator` is one of ``+ - * / % = <> < <= > >=`` (canonical spellings).
    """

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Connective(Expression):
    """Conditions joined by one operator, ``AND`` or ``OR``; :func:`connect` makes it.

    `operands`: two or more, none of which is a connective of the same operator.
    """

    operator: str
    operands: tuple[Expression, ...]


def connect(operator: str, operands: Iterable[Expression], span: Span | None = None) -> Connective:
    """Return `operands` joined by AND or OR; the operands of connectives of the same operator stand in their place."""
    parts = (each.operands if isinstance(each, Connective) and each.operator == operator else (each,) for each in operands)
    return Connective(operator, tuple(chain.from_iterable(parts)), span=span)


@dataclass(frozen=True, slots=True)
class Between(Expression):
    """``operand BETWEEN low AND high``, or NOT BETWEEN."""

    operand: Expression
    low: Expression
    high: Expression
    negated: bool = False


@dataclass(frozen=True, slots=True)
class In(Expression):
    """``operand IN (items)``, or NOT IN."""

    operand: Expression
    items: tuple[Expression, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Like(Expression):
    """``operand LIKE pattern``, or NOT LIKE."""

    operand: Expression
    pattern: Expression
    negated: bool = False


@dataclass(frozen=True, slots=True)
class IsNull(Expression):
    """``operand IS NULL``, or IS NOT NULL."""

    operand: Expression
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Equivalence(Expression):
    """``[attr]``: all events of the match agree on `attribute`."""

    attribute: str


@dataclass(frozen=True, slots=True)
class PatternNode(Node):
    """The base of the nodes of the PATTERN clause."""


@dataclass(frozen=True, slots=True)
class Variable(PatternNode):
    """An event variable; `event_type` is None where none is written before it."""

    name: str
    event_type: str | None = None


@dataclass(frozen=True, slots=True)
class Repeat(PatternNode):
    """A quantifier: `element` is repeated `minimum` to `maximum` times (None: any number).

    `until`: the condition on an event that ends the repetition, of ``UNTIL (…)``; None where none is written.
    """

    element: PatternNode
    minimum: int
    maximum: int | None
    greedy: bool = True
    until: Expression | None = None


@dataclass(frozen=True, slots=True)
class Seq(PatternNode):
    """``SEQ(…)``: the elements in this order."""

    elements: tuple[PatternNode, ...]


@dataclass(frozen=True, slots=True)
class And(PatternNode):
    """``AND(…)``: all elements, in any order."""

    elements: tuple[PatternNode, ...]


@dataclass(frozen=True, slots=True)
class Or(PatternNode):
    """``OR(…)``: one of the elements; their order is kept."""

    elements: tuple[PatternNode, ...]


@dataclass(frozen=True, slots=True)
class Not(PatternNode):
    """``NOT(…)``: in its place no event may match `element`."""

    element: PatternNode


@dataclass(frozen=True, slots=True)
class Next(PatternNode):
    """``NEXT(…)`` in a SEQ: no event lies between what precedes `element` and its first event."""

    element: PatternNode


@dataclass(frozen=True, slots=True)
class Gap(PatternNode):
    """``FIRST(…)`` or ``ANY(…)`` in a SEQ: which of the events that fit `element` may be taken.

    `strategy`: the strategy of the gap before it, a value of :data:`GAPS`.
    """

    element: PatternNode
    strategy: str


@dataclass(frozen=True, slots=True)
class Source(Node):
    """The events, ``FROM name alias``; `alias` is None where none is written."""

    name: str
    alias: str | None = None


@dataclass(frozen=True, slots=True)
class Window(Node):
    """A length of time or of events: ``WITHIN amount unit``.

    `unit` is None for a bare number, ``events`` for a number of events, else a key of
    :data:`UNITS`.
    """

    amount: int | Decimal
    unit: str | None


@dataclass(frozen=True, slots=True)
class ReturnItem(Node):
    """An item of RETURN, ``expression AS name``; `name` is None where none is written."""

    expression: Expression
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Query(Node):
    """A query over events (docs/language.md).

    `where`: the whole condition, not yet split.
    `strategy`: None where the text leaves it out.
    `strategy_variables`: the variables listed behind the strategy.
    The other fields are the clauses; None or empty where the text leaves them out.
    """

    pattern: PatternNode
    source: Source | None = None
    partition_by: tuple[str, ...] = ()
    where: Expression | None = None
    strategy: str | None = None
    strategy_variables: tuple[str, ...] = ()
    within: Window | None = None
    returns: tuple[ReturnItem, ...] = ()


STRATEGIES = get_args(Strategy)

# The word before an element of a SEQ -> the strategy of the gap before it.
GAPS = {"FIRST": "skip_till_next_match", "ANY": "skip_till_any_match"}

AGGREGATES = ("avg", "sum", "min", "max", "count", "first", "last", "median", "count_distinct")

# Canonical unit name -> its length in nanoseconds.
UNITS = {
    "ns": 1,
    "us": 1_000,
    "ms": 1_000_000,
    "seconds": 1_000_000_000,
    "minutes": 60 * 1_000_000_000,
    "hours": 3_600 * 1_000_000_000,
    "days": 86_400 * 1_000_000_000,
    "weeks": 7 * 86_400 * 1_000_000_000,
}
