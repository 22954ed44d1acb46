"""Define bound expressions: names are numbers, types are explicit, constants are in their machine representation."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from gpu_cep.analysis.types import DataType


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


@dataclass(frozen=True, slots=True, weakref_slot=True)
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
