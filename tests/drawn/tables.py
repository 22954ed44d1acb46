"""Random event tables for hypothesis: few types, few values, many ties, NULLs and NaNs.

All tables share one schema, so that any query fits any table; only the type of
the timestamp varies, and with it the window's unit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import cache
from random import Random
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from tests.drawn.patterns import ALPHABETS

DAY_ZERO = date(2024, 1, 1)
SECOND_ZERO = datetime(2024, 1, 1)

# Longer than what the first and the last eight bytes of it tell.
LONG_TEXT = "xy" * 10

# The attributes beside the timestamp and the type; what stands twice is twice as likely.
ATTRIBUTES: Mapping[str, tuple[pa.DataType, tuple[Any, ...]]] = {
    "k": (pa.int64(), (1, 1, 1, 1, 2, None)),
    "s": (pa.string(), ("x", "x", "x", "x", "y", "xy", "", LONG_TEXT, None)),
    "x": (pa.int64(), (1, 1, 1, 2, 2, 2, 3, 0, -1, None)),
    "y": (pa.float64(), (1.0, 1.0, 1.0, 0.5, 0.5, 2.5, 2.5, 0.1, 0.0, -0.0, float("nan"), None)),
    "f": (pa.bool_(), (True, True, True, False, False, None)),
    "d": (pa.date32(), (DAY_ZERO, DAY_ZERO, DAY_ZERO + timedelta(1), DAY_ZERO + timedelta(3), None)),
    "t": (pa.timestamp("us"), (SECOND_ZERO, SECOND_ZERO + timedelta(seconds=1), SECOND_ZERO + timedelta(days=1), None)),
    "m": (pa.decimal128(6, 2), (*[Decimal("0.25")] * 3, Decimal("1.50"), Decimal("1.50"), Decimal("0.00"), Decimal("-2.00"), None)),
}


# Other types that hold the same values.
OTHER_TYPES: Mapping[str, pa.DataType] = {
    "type": pa.dictionary(pa.int32(), pa.string()),
    "k": pa.uint8(),
    "s": pa.large_string(),
    "x": pa.int16(),
    "y": pa.float32(),
    "t": pa.timestamp("ms"),
    "m": pa.decimal128(18, 4),
}


@dataclass(frozen=True, slots=True)
class Clock:
    """A type of timestamp: its moments 0, 1, 2 … what may follow WITHIN for `n` of them, and what a bare number counts."""

    type: pa.DataType
    moment: Callable[[int], Any]
    windows: tuple[str, ...]
    time_unit: str | None = None


CLOCKS = (
    Clock(pa.int64(), lambda n: n, ("{n}",)),
    Clock(pa.int64(), lambda n: n, ("{n} seconds",), time_unit="s"),
    Clock(pa.int32(), lambda n: n - 3, ("{n}",)),
    Clock(pa.int64(), lambda n: (-(2**63) + n, n, 2**63 - 1 - n)[n % 3], ("{n}", "9223372036854775807")),  # the ends of 64 bits
    Clock(pa.float64(), lambda n: n / 2 - 1, ("{n}", "{n}.5")),
    Clock(pa.date32(), lambda n: DAY_ZERO + timedelta(n), ("{n} days", "{n}"), time_unit="days"),
    Clock(pa.timestamp("us"), lambda n: SECOND_ZERO + timedelta(seconds=n), ("{n} seconds", "{n}500 ms", "{n}"), time_unit="s"),
    Clock(pa.timestamp("ms", "UTC"), lambda n: SECOND_ZERO + timedelta(hours=n), ("{n} hours",)),
)


# hypothesis looks into each new strategy before it draws from it, which takes longer than to draw
@cache
def _types(alphabet: tuple[str, ...], size: int) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(alphabet), min_size=size, max_size=size)


@cache
def _values(name: str, size: int) -> st.SearchStrategy[list[Any]]:
    return st.lists(st.sampled_from(ATTRIBUTES[name][1]), min_size=size, max_size=size)


@st.composite
def event_tables(
    draw: st.DrawFn, clock: Clock = CLOCKS[0], alphabet: tuple[str, ...] = ALPHABETS[0], max_size: int = 9, tied: bool = True
) -> pa.Table:
    """A table of the common schema, in no order of time; `tied` says whether timestamps may be equal."""
    size = min(draw(st.integers(0, max_size + 6)), max_size)
    moments = draw(st.lists(st.integers(0, max(9, max_size)), min_size=size, max_size=size, unique=not tied))
    columns = {"ts": pa.array([clock.moment(n) for n in moments], clock.type)}
    types = OTHER_TYPES if draw(st.booleans()) else {}
    columns["type"] = pa.array(draw(_types(alphabet, size)), types.get("type", pa.string()))
    for name, (type_, _) in ATTRIBUTES.items():
        columns[name] = pa.array(draw(_values(name, size)), types.get(name, type_))
    table = pa.table(columns)
    cut = draw(st.integers(0, size))
    return pa.concat_tables([table[:cut], table[cut:]])


def scattered_table(seed: int, clock: Clock, alphabet: tuple[str, ...], size: int, tied: bool) -> pa.Table:
    """A table of the common schema with evenly scattered values, where hypothesis would repeat and simplify them."""
    scatter = Random(seed)
    times = range(size + size // 4 + 1)
    moments = scatter.choices(times, k=size) if tied else scatter.sample(times, size)
    columns = {"ts": pa.array([clock.moment(n) for n in moments], clock.type)}
    for name, (type_, choices) in {"type": (pa.string(), alphabet), **ATTRIBUTES}.items():
        columns[name] = pa.array(scatter.choices(choices, k=size), type_)
    return pa.table(columns)
