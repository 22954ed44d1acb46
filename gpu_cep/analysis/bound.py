"""The bound query: names resolved to numbers, types explicit, conditions split.

It is what :mod:`gpu_cep.analysis.bind` makes of an AST and a schema, and what
plan and engine read. Variables are numbered in order of first appearance in
the pattern, columns by their place in the schema; computed columns follow.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from gpu_cep.analysis.types import DataType, Schema
from gpu_cep.lang.ast import Span


class Place(enum.Enum):
    """Which event of its variable's binding a field is read from."""

    EACH = "each"  # every event of the binding
    PREVIOUS = "previous"  # the event bound just before the current one


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
    """

    name: str
    arguments: tuple[Bound, ...]
    type: DataType


@dataclass(frozen=True, slots=True)
class Aggregation:
    """An aggregate over a whole binding: avg sum min max count first last; `column` is None for ``count(v)``."""

    function: str
    variable: int
    column: int | None
    type: DataType


@dataclass(frozen=True, slots=True)
class Binding:
    """A bare variable or ``v.attr`` of a quantified variable in RETURN: the list of its values (`column` None: of its events)."""

    variable: int
    column: int | None
    type: DataType


Bound = Constant | Field | Operation | Aggregation | Binding


@dataclass(frozen=True, slots=True)
class ComputedColumn:
    """A column computed once, on the host, by `function` of an earlier column and constants (exp, lower, year …)."""

    function: str
    column: int
    constants: tuple[Constant, ...]
    type: DataType


class ConditionKind(enum.Enum):
    PROPERTY = "property"  # one variable, one event
    PAIR = "pair"  # relates the events of two or more variables, for all combinations
    CONSECUTIVE = "consecutive"  # v[i] with v[i-1] or prev(v.attr), for every i ≥ 2
    WITHIN = "within"  # relates every two events of one variable's binding ([attr])


@dataclass(frozen=True, slots=True)
class Condition:
    """One top-level conjunct of WHERE.

    `variables` are the numbers of those it reads, ascending. A WITHIN
    condition reads its one variable twice: EACH is the later event, PREVIOUS
    any earlier one. `key` is the derived key column whose equality closure
    (thesis Def. 5.3) the condition belongs to: partitioning by that column
    makes it redundant. `text` is its canonical text, for explain and errors.
    """

    expression: Bound
    kind: ConditionKind
    variables: tuple[int, ...]
    text: str
    key: int | None = None
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class EventVariable:
    """A variable of the pattern with its quantifier; a single one has minimum = maximum = 1 and `quantified` False."""

    name: str
    minimum: int
    maximum: int | None
    quantified: bool


@dataclass(frozen=True, slots=True)
class Branch:
    """One disjunct of the pattern's normal form: a strict partial order on variables.

    `before[v]` is the bit mask of all variables that must precede v
    (transitively closed).
    """

    variables: tuple[int, ...]
    before: tuple[int, ...]


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


@dataclass(frozen=True, slots=True)
class BoundQuery:
    """A query bound to a schema.

    `timestamp`, `partition_by`, `order_by` and `derived_keys` are column
    numbers. `derived_keys` are the attributes on which the equality
    conditions connect all variables (thesis Def. 5.3; empty for fewer than
    two variables): every two events of a match agree on them, and they are
    not NULL. `conditions` hold the whole equality closure of each (a PAIR for
    every two variables, a WITHIN for every quantified one), marked by `key`.
    `strategy` is skip_till_next_match or skip_till_any_match; `ties` is
    strict or position. `window` is None without WITHIN.
    """

    schema: Schema
    computed: tuple[ComputedColumn, ...]
    variables: tuple[EventVariable, ...]
    branches: tuple[Branch, ...]
    conditions: tuple[Condition, ...]
    returns: tuple[ReturnColumn, ...]
    window: TimeWindow | CountWindow | None
    strategy: str
    ties: str
    timestamp: int
    partition_by: tuple[int, ...]
    order_by: tuple[int, ...]
    derived_keys: tuple[int, ...]
