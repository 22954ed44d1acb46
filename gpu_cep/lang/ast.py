"""The abstract syntax of queries over events and over situations: frozen dataclasses, no behaviour.

Every node carries the source span it was read from; spans take no part in
equality, so that ``parse(format(query)) == query``.

The tree says more than the planner runs: quantifiers sit on any node and say
whether they are greedy, alternatives are ordered, and ``prev`` of a binding is
its own node, apart from SQL's PREV, which is the previous row.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal


@dataclass(frozen=True, slots=True)
class Span:
    """Where a node stands in the text; lines and columns count from 1, the end is exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True, slots=True)
class Node:
    """Base of all nodes."""

    span: Span | None = field(default=None, compare=False, repr=False, kw_only=True)


# Expressions -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Expression(Node):
    """Base of everything that has a value."""


@dataclass(frozen=True, slots=True)
class Literal(Expression):
    """A constant.

    It is an int, a Decimal (a number with a fraction), a float (one with an
    exponent), text, a truth value, NULL, a date or a timestamp.
    """

    value: int | Decimal | float | str | bool | date | datetime | None


@dataclass(frozen=True, slots=True)
class DurationLiteral(Expression):
    """``15 days``: `unit` is one of :data:`UNITS`' canonical names."""

    amount: int | Decimal
    unit: str


@dataclass(frozen=True, slots=True)
class Index(Node):
    """Base of what stands in the brackets of ``v[…]``."""


@dataclass(frozen=True, slots=True)
class EachIndex(Index):
    """``v[i]``"""


@dataclass(frozen=True, slots=True)
class PreviousIndex(Index):
    """``v[i-1]``"""


@dataclass(frozen=True, slots=True)
class NumberIndex(Index):
    """``v[1]``"""

    number: int


@dataclass(frozen=True, slots=True)
class LastIndex(Index):
    """``v[v.LEN]``"""


@dataclass(frozen=True, slots=True)
class Reference(Expression):
    """``v.attr`` or ``v[index].attr``; `variable` is None for a bare attribute, `attribute` None for a bare variable (RETURN only)."""

    variable: str | None
    attribute: str | None
    index: Index | None = None


@dataclass(frozen=True, slots=True)
class PrevBound(Expression):
    """``prev(v.attr)``: the event bound to `variable` just before the current one."""

    variable: str
    attribute: str


@dataclass(frozen=True, slots=True)
class Aggregate(Expression):
    """``avg(v.attr)``; `running` for ``avg(v[..i-1].attr)``; `attribute` is None for ``count(v)``.

    `function` is one of avg, sum, min, max, count, first, last (lower case).
    """

    function: str
    variable: str
    attribute: str | None
    running: bool = False


@dataclass(frozen=True, slots=True)
class Call(Expression):
    """A scalar function; `function` is lower case."""

    function: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Unary(Expression):
    """`operator` is ``-`` or ``NOT``."""

    operator: str
    operand: Expression


@dataclass(frozen=True, slots=True)
class Binary(Expression):
    """`operator` is one of ``+ - * / % = <> < <= > >= AND OR`` (canonical spellings)."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Between(Expression):
    operand: Expression
    low: Expression
    high: Expression
    negated: bool = False


@dataclass(frozen=True, slots=True)
class In(Expression):
    operand: Expression
    items: tuple[Expression, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Like(Expression):
    operand: Expression
    pattern: Expression
    negated: bool = False


@dataclass(frozen=True, slots=True)
class IsNull(Expression):
    operand: Expression
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Equivalence(Expression):
    """``[attr]``: all events of the match agree on `attribute`."""

    attribute: str


# Patterns --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PatternNode(Node):
    """Base of the PATTERN clause's nodes."""


@dataclass(frozen=True, slots=True)
class Variable(PatternNode):
    """An event variable, with its event type if one was written before it."""

    name: str
    event_type: str | None = None


@dataclass(frozen=True, slots=True)
class Repeat(PatternNode):
    """A quantifier: `element` from `minimum` to `maximum` times (None: no upper bound)."""

    element: PatternNode
    minimum: int
    maximum: int | None
    greedy: bool = True


@dataclass(frozen=True, slots=True)
class Seq(PatternNode):
    """Each element before the next."""

    elements: tuple[PatternNode, ...]


@dataclass(frozen=True, slots=True)
class And(PatternNode):
    """All elements, in any order."""

    elements: tuple[PatternNode, ...]


@dataclass(frozen=True, slots=True)
class Or(PatternNode):
    """One of the elements; their order is kept."""

    elements: tuple[PatternNode, ...]


@dataclass(frozen=True, slots=True)
class Not(PatternNode):
    """No event in its place may match `element`."""

    element: PatternNode


# Queries ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Source(Node):
    """``FROM name alias``"""

    name: str
    alias: str | None = None


@dataclass(frozen=True, slots=True)
class Window(Node):
    """``WITHIN amount unit``.

    `unit` is None for the timestamp's own unit, ``events`` for a count of
    events, else a canonical name of :data:`UNITS`.
    """

    amount: int | Decimal
    unit: str | None


@dataclass(frozen=True, slots=True)
class ReturnItem(Node):
    """``expression AS name``; `name` is None where none was written."""

    expression: Expression
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Query(Node):
    """A query over events (SPEC section 2).

    `strategy` is None where the text leaves it out; `strategy_variables` are
    those listed behind it. `where` is the whole condition, not yet split.
    """

    pattern: PatternNode
    source: Source | None = None
    partition_by: tuple[str, ...] = ()
    where: Expression | None = None
    strategy: str | None = None
    strategy_variables: tuple[str, ...] = ()
    within: Window | None = None
    returns: tuple[ReturnItem, ...] = ()


@dataclass(frozen=True, slots=True)
class Situation(Node):
    """``name AS condition AT LEAST d``: the longest runs of events that satisfy `condition`, as far as their duration suits.

    A bound is None where the text leaves it out.
    """

    name: str
    condition: Expression
    at_least: Window | None = None
    at_most: Window | None = None


@dataclass(frozen=True, slots=True)
class Relation(Node):
    """``left allen right``: `relation` is one of :data:`RELATIONS`."""

    left: str
    relation: str
    right: str


@dataclass(frozen=True, slots=True)
class Constraint(Node):
    """Relations of which at least one holds; all relate the same pair of situations."""

    alternatives: tuple[Relation, ...]


@dataclass(frozen=True, slots=True)
class IntervalQuery(Node):
    """A query over situations (SPEC section 4): all of the `constraints` hold."""

    situations: tuple[Situation, ...]
    constraints: tuple[Constraint, ...]
    source: Source | None = None
    partition_by: tuple[str, ...] = ()
    within: Window | None = None
    returns: tuple[ReturnItem, ...] = ()


# Relation -> the same with its sides exchanged.
RELATIONS = {
    "before": "after",
    "after": "before",
    "meets": "met-by",
    "met-by": "meets",
    "overlaps": "overlapped-by",
    "overlapped-by": "overlaps",
    "starts": "started-by",
    "started-by": "starts",
    "during": "contains",
    "contains": "during",
    "finishes": "finished-by",
    "finished-by": "finishes",
    "equals": "equals",
}

STRATEGIES = (
    "strict_contiguity",
    "partition_contiguity",
    "skip_till_next_match",
    "skip_till_any_match",
    "robust_skip_till_next_match",
)

AGGREGATES = ("avg", "sum", "min", "max", "count", "first", "last")

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
