"""Define the bound query: names are numbers, types are explicit, conditions are split.

:mod:`gpu_cep.analysis.bind` makes it of an AST and a schema; plan and engine read it. Variables are
numbered in order of first appearance in the pattern, columns by their place in the schema. Computed
columns follow those of the schema.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from gpu_cep.analysis.types import BOOLEAN, INTEGER, DataType, Schema
from gpu_cep.lang.ast import Span


class Place(enum.Enum):
    """Which event of a binding a field is read from."""

    EACH = "each"  # every event of the binding
    PREVIOUS = "previous"  # the event bound just before the current one
    FIRST = "first"  # the first event of the binding
    FIRST_BEFORE = "first before"  # the first event of the binding, read with each event but the first
    LAST = "last"  # the last event of the binding


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant in its machine representation.

    `value`: an int, a float, a bool, a str (kind STRING) or None (NULL).
    A DATE, TIMESTAMP or DURATION is an int of ticks, a DECIMAL its unscaled int.
    `type`: its data type.
    """

    value: int | float | bool | str | None
    type: DataType


@dataclass(frozen=True, slots=True)
class Constants:
    """Distinct constants of one type, in their machine representation, among which IN looks; NULL may be one of them."""

    values: tuple[int | float | bool | str | None, ...]
    type: DataType


@dataclass(frozen=True, slots=True)
class Field:
    """The attribute ``v.attr``, read at the event `place` of v's binding.

    `variable`, `column`: the numbers of v and attr. `type`: the attribute's data type.
    """

    variable: int
    column: int
    type: DataType
    place: Place = Place.EACH


@dataclass(frozen=True, slots=True)
class ScalarFunction:
    """A function that the caller brings, in plain Python; it is compiled where it runs.

    `minimum`, `maximum`: the numbers of arguments that it takes.
    `digest`: identifies its code, and the code of functions that it calls.
    Functions of one name and digest are the same, in any process.
    """

    name: str
    digest: str
    minimum: int
    maximum: int
    body: Callable[..., Any] = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Operation:
    """The operation `name` on `arguments`, with a result of type `type`.

    The names, with operands of one machine type unless said otherwise:

    * ``add sub mul neg abs sign least greatest coalesce nullif`` — both int64 or both FLOAT; overflow of int64 is an EventError
    * ``mod`` — sign of the dividend, x % 0 is NULL; ``div`` — FLOAT only, x / 0 is NULL
    * ``floor ceil round sqrt`` — FLOAT only
    * ``eq ne lt le gt ge`` — operands of equal type (two STRING operands included)
    * ``in`` — first argument against Constants of its type (a NULL among them as in SQL); ``like`` — STRING against a STRING constant
    * ``is_null`` — any operand, never NULL itself
    * ``and or not`` — BOOLEAN, three-valued
    * ``case`` — n BOOLEAN operands, then n + 1 values of `type`: the value of the first operand that is TRUE, else the
      last one. No other value is computed. The values are STRING in an item of RETURN only, as a whole
    * ``cast`` — to `type`: INTEGER→FLOAT, INTEGER→DECIMAL, DECIMAL→FLOAT, DECIMAL→wider scale, DATE→TIMESTAMP,
      TIMESTAMP→finer unit, DURATION→finer unit, DURATION→FLOAT (its ticks)
    * ``call`` — `function` of INTEGER, FLOAT and BOOLEAN operands; an exception that it raises is an EventError
    * ``dot`` — the inner product of two centred lists (each less its mean), in the order of positions (NULL counts as zeros)
    """

    name: str
    arguments: tuple[Bound, ...]
    type: DataType
    function: ScalarFunction | None = None


@dataclass(frozen=True, slots=True)
class Aggregation:
    """An aggregate over the events of a binding.

    `function`: avg, sum, min, max or count; in RETURN also first, last, median or count_distinct.
    `variable`, `column`: what is aggregated; `column` is None for ``count(v)``.
    `type`: the type of the result.
    `running`: whether it counts only the events before the current one.
    """

    function: str
    variable: int
    column: int | None
    type: DataType
    running: bool = False


@dataclass(frozen=True, slots=True)
class Binding:
    """A list in RETURN: ``v`` (the events bound) or ``v.attr`` (their values) of a quantified variable.

    `column` is None for the events themselves.
    """

    variable: int
    column: int | None
    type: DataType


@dataclass(frozen=True, slots=True)
class Endpoint:
    """``start(A)`` or ``end(A)`` of a situation, in RETURN.

    A situation starts with its first event, and ends with the first event behind it. The end is NULL
    while there is none.
    """

    function: str
    variable: int
    type: DataType
    column: ClassVar[None] = None


Bound = Constant | Constants | Field | Operation | Aggregation | Binding | Endpoint


def split_case(case: Operation) -> tuple[tuple[Bound, ...], tuple[Bound, ...]]:
    """Return the conditions and the values of the operation ``case``; the last value is that of ELSE."""
    count = len(case.arguments) // 2
    return case.arguments[:count], case.arguments[count:]


@dataclass(frozen=True, slots=True)
class ComputedColumn:
    """A column that the host computes once: `function` (exp, lower, year …) of an earlier column and constants."""

    function: str
    column: int
    constants: tuple[Constant, ...]
    type: DataType

    @property
    def columns(self) -> tuple[int, ...]:
        """The columns that it is computed from."""
        return (self.column,)


@dataclass(frozen=True, slots=True)
class ComputedExpression:
    """A column that the host computes once: an expression over one event.

    `expression`: the expression; its variable is 0.
    `columns`: the columns that it reads.
    `text`: how the query writes it where it first appears.
    """

    expression: Operation
    columns: tuple[int, ...]
    text: str = field(compare=False)

    @property
    def type(self) -> DataType:
        return self.expression.type


@dataclass(frozen=True, slots=True)
class ComputedMembership:
    """A column that the host computes once: whether an earlier column is one of many constants of its type, as IN says."""

    column: int
    constants: Constants
    type: ClassVar[DataType] = BOOLEAN

    @property
    def columns(self) -> tuple[int, ...]:
        """The columns that it is computed from."""
        return (self.column,)


@dataclass(frozen=True, slots=True)
class ComputedCount:
    """A column that the host computes once: how many events of a stream satisfy a condition, up to each event.

    `condition`: the condition on one event; its variable is 0.
    `read`: the columns that it reads.
    `keys`: the columns on which all events of a stream agree.
    `text`: how the query writes the condition.
    """

    condition: Bound
    read: tuple[int, ...]
    keys: tuple[int, ...]
    text: str = field(compare=False)
    type: ClassVar[DataType] = INTEGER

    @property
    def columns(self) -> tuple[int, ...]:
        """The columns that it is computed from; the order of events is not among them."""
        return tuple(dict.fromkeys((*self.read, *self.keys)))


Computed = ComputedColumn | ComputedExpression | ComputedMembership | ComputedCount


class ConditionKind(enum.Enum):
    """Which events a condition relates."""

    PROPERTY = "property"  # one variable, one event
    PAIR = "pair"  # relates the events of two or more variables, for all combinations
    BINDING = "binding"  # relates the events of one variable's binding to its first or last, or to an aggregate of it
    CONSECUTIVE = "consecutive"  # v[i] with v[i-1], v[..i-1] or prev(v.attr), for every i ≥ 2
    WITHIN = "within"  # relates every two events of one variable's binding ([attr])


@dataclass(frozen=True, slots=True)
class Condition:
    """One top-level conjunct of WHERE.

    `expression`: the condition. A WITHIN condition reads two events of its one variable: EACH is the
    later one, PREVIOUS any earlier one.
    `kind`: which events it relates.
    `variables`: the numbers of the variables that it reads, ascending.
    `text`: its canonical text, for explain and errors.
    `closing`: the quantified variables of which it reads the last event or an aggregate of all events.
    It is decided when they bind no more (SPEC section 2).
    `key`: the derived key column to whose equality closure it belongs (thesis Def. 5.3), or None.
    Partitioning by that column makes the condition redundant.
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

    `minimum`, `maximum`: the numbers of events of a binding, if the variable is present. Both are 1 for
    a single variable, for ``v?`` and for a negated one; a maximum of None is no bound.
    `quantified`: whether it binds a list of events.
    `optional`: whether its own quantifier allows it to be absent.
    `negated`: whether it stands in NOT.
    """

    name: str
    minimum: int
    maximum: int | None
    quantified: bool
    optional: bool = False
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Negation:
    """``NOT(v)`` in a branch.

    `after`, `before`: the masks of the variables that precede it and that follow it.
    """

    variable: int
    after: int
    before: int


@dataclass(frozen=True, slots=True)
class Branch:
    """One disjunct of the pattern's normal form: a strict partial order on variables.

    Masks have a bit for each variable of the query.
    `variables`: the positive variables present, ascending.
    `before`: ``before[k]`` is the mask of all that must precede ``variables[k]`` (transitively closed).
    `negations`: what must not happen between them.
    `conditions`: those that relate events of variables present.
    Equalities that connect all variables stand here as their whole closure (thesis Def. 5.3): a PAIR
    for every two variables, a WITHIN for every quantified one.
    `agreed`: the columns on which every two events of a match are equal by these conditions.
    """

    variables: tuple[int, ...]
    before: tuple[int, ...]
    negations: tuple[Negation, ...] = ()
    conditions: tuple[Condition, ...] = ()
    agreed: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """A window of time: the last event is at most `length` ticks after the first (a float for float columns)."""

    length: int | float


@dataclass(frozen=True, slots=True)
class CountWindow:
    """A window of events: the stream positions of first and last event differ by less than `events`."""

    events: int


@dataclass(frozen=True, slots=True)
class ReturnColumn:
    """One item of RETURN with its final name."""

    name: str
    expression: Bound


@dataclass(frozen=True, slots=True)
class Ranking:
    """By what the matches of one first event are kept: an expression of the match, and its direction.

    `text`: the expression as written, for explain.
    """

    expression: Bound
    descending: bool
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundQuery:
    """What queries of all kinds say, bound to a schema.

    `schema`, `computed`: the columns of the events, and those computed from them.
    `variables`: what binds events, the negated ones last.
    `conditions`: the conjuncts of WHERE and the event types, or the conditions of situations.
    Each ``[attr]`` is one condition for every two variables, and one for every quantified variable.
    `returns`: the items of RETURN.
    `window`: None without WITHIN.
    `timestamp`, `partition_by`, `order_by`: column numbers.
    `derived_keys`: the columns by which streams can be split. They are not NULL and no floats. In every
    branch all events of a match, and all that its negations ask for, agree on them.
    `drops_untimed`: whether events whose timestamp is NULL or NaN are left out; else they are an error.
    `equivalences`: the columns of all ``[attr]``, which is no condition if there is one event to relate.
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
    drops_untimed: bool = False
    equivalences: tuple[int, ...] = ()

    @property
    def positives(self) -> tuple[EventVariable, ...]:
        """The variables that are not negated."""
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
            case ComputedCount(text=text):
                return f"number of {text}"
            case ComputedMembership(column=source, constants=constants):
                return f"{self.column_name(source)} IN ({len(constants.values):,} constants)"

    def input_columns(self, column: int) -> tuple[int, ...]:
        """Return the columns of the schema from which a column is computed; itself if it is one of them."""
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

    `variables`: the positive ones in order of first appearance, then the negated ones.
    `branches`: the normal form. Conditions that relate events stand in the branches as well.
    `strategy`: one of :data:`gpu_cep.lang.ast.STRATEGIES`.
    `ties`: ``strict`` or ``position``.
    `ranking`: by what the matches of one first event are kept (None: in the order of results).
    """

    branches: tuple[Branch, ...]
    strategy: str
    ties: str
    ranking: Ranking | None = None
