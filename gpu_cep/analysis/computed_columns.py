"""Define the columns that the host computes once, behind those of the schema."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from gpu_cep.analysis.bound_expressions import Bound, Constant, Constants, Operation
from gpu_cep.analysis.types import BOOLEAN, INTEGER, DataType


@dataclass(frozen=True, slots=True)
class ComputedColumn:
    """A column that the host computes once: `function` (exp, lower, year …) of an earlier column and constants."""

    function: str
    column: int
    constants: tuple[Constant, ...]
    type: DataType

    @property
    def columns(self) -> tuple[int, ...]:
        """Return the columns that it is computed from."""
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
        """Return the type of the expression."""
        return self.expression.type


@dataclass(frozen=True, slots=True)
class ComputedMembership:
    """A column that the host computes once: whether an earlier column is one of many constants of its type, as IN says."""

    column: int
    constants: Constants
    type: ClassVar[DataType] = BOOLEAN

    @property
    def columns(self) -> tuple[int, ...]:
        """Return the columns that it is computed from."""
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
        """Return the columns that it is computed from; the order of events is not among them."""
        return tuple(dict.fromkeys((*self.read, *self.keys)))


Computed = ComputedColumn | ComputedExpression | ComputedMembership | ComputedCount
