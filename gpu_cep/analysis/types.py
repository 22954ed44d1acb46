"""Define the data types in which conditions are checked and computed.

Kernels see machine values. FLOAT is float64, everything else is int64.
BOOLEAN is 0 or 1, DECIMAL its unscaled value, STRING a dictionary code, DATE days.
TIMESTAMP and DURATION are ticks of their unit.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

TICKS_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


class Kind(enum.Enum):
    """The kind of a data type."""

    NULL = "null"
    BOOLEAN = "boolean"
    INTEGER = "integer"
    FLOAT = "float"
    DECIMAL = "decimal"
    STRING = "string"
    DATE = "date"
    TIMESTAMP = "timestamp"
    DURATION = "duration"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class DataType:
    """A kind with its parameters.

    `precision`, `scale`: of DECIMAL.
    `unit`: of TIMESTAMP and DURATION; s, ms, us or ns.
    `zone`: of TIMESTAMP; None without a zone.
    `name`: how messages call the type (for OTHER the Arrow name).
    `length`: of lists of a fixed number of numbers (OTHER); else 0.
    """

    kind: Kind
    precision: int = 0
    scale: int = 0
    unit: str = ""
    zone: str | None = None
    name: str = ""
    length: int = 0

    def __str__(self) -> str:
        if self.kind is Kind.DECIMAL:
            return f"decimal({self.precision}, {self.scale})"
        if self.kind is Kind.TIMESTAMP:
            return f"timestamp[{self.unit}{', ' + self.zone if self.zone else ''}]"
        if self.kind is Kind.DURATION:
            return f"duration[{self.unit}]"
        return self.name or self.kind.value


NULL = DataType(Kind.NULL)
BOOLEAN = DataType(Kind.BOOLEAN)
INTEGER = DataType(Kind.INTEGER)
FLOAT = DataType(Kind.FLOAT)
STRING = DataType(Kind.STRING)
DATE = DataType(Kind.DATE)


def decimal(precision: int, scale: int) -> DataType:
    """Return the type of decimals with so many digits, `scale` of them behind the point."""
    return DataType(Kind.DECIMAL, precision=precision, scale=scale)


def timestamp(unit: str, zone: str | None = None) -> DataType:
    """Return the type of points in time in a unit; those without a `zone` are local times."""
    return DataType(Kind.TIMESTAMP, unit=unit, zone=zone)


def duration(unit: str) -> DataType:
    """Return the type of lengths of time in a unit."""
    return DataType(Kind.DURATION, unit=unit)


@dataclass(frozen=True, slots=True)
class Attribute:
    """A column of the events: its name and type."""

    name: str
    type: DataType


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns of the events, in order."""

    attributes: tuple[Attribute, ...]
    names: tuple[str, ...] = field(init=False, repr=False, compare=False)
    _positions: Mapping[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(attribute.name for attribute in self.attributes))
        object.__setattr__(self, "_positions", dict(zip(self.names, range(len(self.names)), strict=True)))

    def index(self, name: str) -> int:
        """Return the position of column `name`; KeyError if there is none."""
        return self._positions[name]
