"""The bound query: names resolved to numbers, types explicit, conditions split.

It is what :mod:`gpu_cep.analysis.bind` makes of an AST and a schema, and what
plan and engine read. Variables are numbered in order of first appearance in
the pattern, columns by their place in the schema; computed columns follow.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from gpu_cep.analysis.types import DataType, Schema
from gpu_cep.lang.ast import Span


class Place(enum.Enum):
    """Which event of its variable's binding a field is read from."""

    EACH = "each"  # every event of the binding
    PREVIOUS = "previous"  # the event bound just before the current one
    FIRST = "first"  # the first event of the binding
    FIRST_BEFORE = "first before"  # the first event of the binding, seen from a later one
    LAST = "last"  # the last event of the binding


@dataclass(frozen=True, slots=True)
class Constant:
    """A typed constant in its machine representation.

    `value` is an int (also for DATE, TIMESTAMP, DURATION, DECIMAL: ticks or
    unscaled value), a float, a bool, a str (kind STRING) or None.
    """

    value: int | float | bool | str | None
    type: DataType


@dataclass(frozen=True, slots=True)
class Field:
    """``v.attr`` at `place`; `variable` is the variable's number."""

    variable: int
    column: int
    type: DataType
    place: Place = Place.EACH


@dataclass(frozen=True, slots=True)
class ScalarFunction:
    """A function that the caller brings: plain Python, compiled where it runs.

    It takes `minimum` to `maximum` arguments. `digest` tells its code and
    what that reads from other functions: two of one name and digest are one
    function, in whichever process.
    """

    name: str
    digest: str
    minimum: int
    maximum: int
    body: Callable[..., Any] = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Operation:
    """`name` applied to `arguments`.

    The names, with operands of one machine type unless said otherwise:

    * ``add sub mul neg abs sign least greatest coalesce nullif`` — both int64 or both FLOAT; overflow of int64 is an EventError
    * ``mod`` — sign of the dividend, x % 0 is NULL; ``div`` — FLOAT only, x / 0 is NULL
    * ``floor ceil round sqrt`` — FLOAT only
    * ``eq ne lt le gt ge`` — operands of equal type (two STRING operands included)
    * ``in`` — first argument against constants of its type (a NULL among them as in SQL); ``like`` — STRING against a STRING constant
    * ``is_null`` — any operand, never NULL itself
    * ``and or not`` — BOOLEAN, three-valued
    * ``cast`` — to `type`: INTEGER→FLOAT, INTEGER→DECIMAL, DECIMAL→FLOAT, DECIMAL→wider scale, DATE→TIMESTAMP,
      TIMESTAMP→finer unit, DURATION→finer unit, DURATION→FLOAT (its ticks)
    * ``call`` — `function` of INTEGER, FLOAT and BOOLEAN operands; an exception that it raises is an EventError
    * ``dot`` — the inner product of two lists, less the mean of each, in the order of positions (NULL counts as zeros)
    """

    name: str
    arguments: tuple[Bound, ...]
    type: DataType
    function: ScalarFunction | None = None


@dataclass(frozen=True, slots=True)
class Aggregation:
    """An aggregate over a whole binding, or over the events before the current one (`running`).

    It is avg, sum, min, max or count, in RETURN also first or last; `column` is None for ``count(v)``.
    """

    function: str
    variable: int
    column: int | None
    type: DataType
    running: bool = False


@dataclass(frozen=True, slots=True)
class Binding:
    """A bare variable or ``v.attr`` of a quantified variable in RETURN: the list of its values (`column` None: of its events)."""

    variable: int
    column: int | None
    type: DataType


@dataclass(frozen=True, slots=True)
class Endpoint:
    """``start(A)`` or ``end(A)``: the time of a situation's first event, or of the first event behind it (NULL while there is none)."""

    function: str
    variable: int
    type: DataType
    column: ClassVar[None] = None


Bound = Constant | Field | Operation | Aggregation | Binding | Endpoint


@dataclass(frozen=True, slots=True)
class ComputedColumn:
    """A column computed once, on the host, by `function` of an earlier column and constants (exp, lower, year …)."""

    function: str
    column: int
    constants: tuple[Constant, ...]
    type: DataType

    @property
    def columns(self) -> tuple[int, ...]:
        """What it is computed from."""
        return (self.column,)


@dataclass(frozen=True, slots=True)
class ComputedExpression:
    """A column computed once, on the host: the value of `expression`, which reads `columns` of one event (its variable is 0).

    `text` is how the query first writes it.
    """

    expression: Operation
    columns: tuple[int, ...]
    text: str = field(compare=False)

    @property
    def type(self) -> DataType:
        return self.expression.type


Computed = ComputedColumn | ComputedExpression


class ConditionKind(enum.Enum):
    PROPERTY = "property"  # one variable, one event
    PAIR = "pair"  # relates the events of two or more variables, for all combinations
    BINDING = "binding"  # relates the events of one variable's binding to its first or last, or to an aggregate of it
    CONSECUTIVE = "consecutive"  # v[i] with v[i-1], v[..i-1] or prev(v.attr), for every i ≥ 2
    WITHIN = "within"  # relates every two events of one variable's binding ([attr])


@dataclass(frozen=True, slots=True)
class Condition:
    """One top-level conjunct of WHERE.

    `variables` are the numbers of those it reads, ascending. A WITHIN
    condition reads its one variable twice: EACH is the later event, PREVIOUS
    any earlier one. `closing` are the quantified variables that it reads
    through their last event or an aggregate of their whole binding: it is
    decided when they bind no more (SPEC section 2). `key` is the derived key
    column whose equality closure (thesis Def. 5.3) the condition belongs to:
    partitioning by that column makes it redundant. `text` is its canonical
    text, for explain and errors.
    """

    expression: Bound
    kind: ConditionKind
    variables: tuple[int, ...]
    text: str
    closing: tuple[int, ...] = ()
    key: int | None = None
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class EventVariable:
    """A variable of the pattern with its quantifier.

    `minimum` and `maximum` are those of a binding where the variable is
    present: 1 and 1 for a single one, for ``v?`` and for a negated one.
    `quantified` says whether it binds a list of events, `optional` whether it
    may be absent by its own quantifier.
    """

    name: str
    minimum: int
    maximum: int | None
    quantified: bool
    optional: bool = False
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Negation:
    """``NOT(v)`` in a branch; `after` and `before` are the masks of the branch's variables that precede and follow it."""

    variable: int
    after: int
    before: int


@dataclass(frozen=True, slots=True)
class Branch:
    """One disjunct of the pattern's normal form: a strict partial order on variables, and what must not happen between them.

    `variables` are the positive ones present, ascending. Masks are of query
    variables: ``before[k]`` is that of all that must precede ``variables[k]``
    (transitively closed). `conditions` are those that relate events, over
    present variables only, with the whole closure of each connecting equality
    (thesis Def. 5.3) in place of its parts: a PAIR for every two variables, a
    WITHIN for every quantified one. `agreed` are the columns on which every
    two events of a match are equal by these conditions.
    """

    variables: tuple[int, ...]
    before: tuple[int, ...]
    negations: tuple[Negation, ...] = ()
    conditions: tuple[Condition, ...] = ()
    agreed: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """last.T − first.T ≤ `length`, in ticks of the timestamp column (a float for a float column)."""

    length: int | float


@dataclass(frozen=True, slots=True)
class CountWindow:
    """Stream positions of the last and the first event differ by less than `events`."""

    events: int


@dataclass(frozen=True, slots=True)
class ReturnColumn:
    """One item of RETURN under its final name."""

    name: str
    expression: Bound


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundQuery:
    """What every query says of its events once it is bound to a schema.

    `variables` bind events, the negated ones last. `conditions` are the
    conjuncts of WHERE and the event types, or the conditions of situations;
    each ``[attr]`` is one condition for every two variables and for every
    quantified one. `timestamp`, `partition_by`, `order_by` and `derived_keys`
    are column numbers. `derived_keys` are the attributes by which streams can
    be split: not NULL, no floats, and agreed upon in every branch by all
    events of a match and by all that its negations ask for. `window` is None
    without WITHIN.
    """

    schema: Schema
    computed: tuple[Computed, ...]
    variables: tuple[EventVariable, ...]
    conditions: tuple[Condition, ...]
    returns: tuple[ReturnColumn, ...]
    window: TimeWindow | CountWindow | None
    timestamp: int
    partition_by: tuple[int, ...]
    order_by: tuple[int, ...]
    derived_keys: tuple[int, ...] = ()

    @property
    def positives(self) -> tuple[EventVariable, ...]:
        """The variables that matches bind events to."""
        return tuple(variable for variable in self.variables if not variable.negated)

    def column_name(self, column: int) -> str:
        """Return the name of an attribute or a computed column for messages."""
        width = len(self.schema.attributes)
        if column < width:
            return self.schema.attributes[column].name
        match self.computed[column - width]:
            case ComputedExpression(text=text):
                return text
            case ComputedColumn(function=function, column=source):
                return f"{function}({self.column_name(source)})"

    def input_columns(self, column: int) -> tuple[int, ...]:
        """Return the attributes that an attribute or a computed column is made of."""
        width = len(self.schema.attributes)
        if column < width:
            return (column,)
        return tuple(source for each in self.computed[column - width].columns for source in self.input_columns(each))

    def column_type(self, column: int) -> DataType:
        """Return the type of an attribute or a computed column."""
        width = len(self.schema.attributes)
        return self.schema.attributes[column].type if column < width else self.computed[column - width].type


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundPattern(BoundQuery):
    """An event pattern bound to a schema.

    `variables` are the positive ones in order of first appearance, then the
    negated ones. The conditions that relate events stand in the branches once
    more. `strategy` is one of :data:`gpu_cep.lang.ast.STRATEGIES`; `ties` is
    strict or position.
    """

    branches: tuple[Branch, ...]
    strategy: str
    ties: str
