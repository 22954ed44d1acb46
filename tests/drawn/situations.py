"""Random queries over situations and random event tables for hypothesis: runs of all lengths, ties, NULLs, every kind of time.

All tables share one schema, so that any query fits any table; only the type of
the timestamp varies, and with it the unit of durations and windows. Truths lie
in the columns ``a`` to ``f``, which change now and then. Constraints are drawn
around some intervals that satisfy them, so that none clash.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from random import Random
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from gpu_cep.lang.ast_intervals import RELATIONS
from gpu_cep.oracle.relations import Interval, holds, interval
from tests.drawn.queries import Case
from tests.drawn.tables import CLOCKS, DAY_ZERO, Clock

LANES = "abcdef"
NAMES = "ABCDEF"
DETECT = ("final", "early")
ALLEN = ("paper", "paper", "1983")

SITUATION_CLOCKS = (
    *CLOCKS,
    Clock(pa.float64(), lambda n: -math.inf if n < 2 else math.inf if n > 20 else n / 4, ("{n}", "{n}.25")),
    Clock(pa.float32(), lambda n: n / 8 - 1, ("{n}", "0.375")),
    Clock(pa.int64(), lambda n: n - 2**63, ("{n}",)),
    Clock(pa.date64(), lambda n: DAY_ZERO + timedelta(n), ("{n} days", "{n}"), time_unit="days"),
    Clock(pa.timestamp("ns"), lambda n: n * 10**9, ("{n} seconds", "{n}000000000"), time_unit="ns"),
)

# The attributes beside the timestamp and the truths; what stands twice is twice as likely.
ATTRIBUTES: dict[str, tuple[pa.DataType, tuple[Any, ...]]] = {
    "k": (pa.int64(), (1, 1, 1, 1, 2, None)),
    "s": (pa.string(), ("x", "x", "x", "y", "", None)),
    "v": (pa.int64(), (1, 2, 2, 3, -1, None)),
    "y": (pa.float64(), (1.0, 1.0, 0.5, 0.0, -0.0, math.nan, None)),
}
OTHER_TYPES = {"k": pa.uint8(), "s": pa.dictionary(pa.int32(), pa.string()), "v": pa.int16(), "y": pa.float32()}
# `n` has a value for each two events.
PARTITIONS: tuple[tuple[str, ...] | None, ...] = (*[None] * 5, ("k",), ("s",), ("y",), ("k", "y"), ("n",))

_CONDITIONS = (
    *["{own}"] * 4, "NOT {other}", "{own} OR v > 2", "{own} AND {other}", "{own} AND y > 0.5", "s = 'x'", "v IS NULL OR {own}",
    "CASE WHEN s < 'y' THEN {own} WHEN v > 2 THEN y > 0.5 END",
)  # fmt: skip
_DURATIONS = (*[""] * 8, "AT LEAST {low}", "AT MOST {high}", "AT LEAST {low} AT MOST {high}", "BETWEEN {low} AND {high}")
_RETURNS = (
    "start({one}) AS r0", "end({one}) AS r1", "duration({one}) AS r2", "count({one}) AS r3", "sum({one}.v) AS r4", "avg({one}.y) AS r5",
    "first({one}.k) AS r6", "last({one}.s) AS r7", "max({one}.v) + min({other}.v) AS r8", "{one}.v AS r9", "max({other}.y) AS r10",
    "end({one}) - start({one}) AS r11", "median({one}.y) AS r12", "count(DISTINCT {other}.v) AS r13",
    "CASE WHEN count({one}) > 1 THEN median({one}.v) WHEN duration({other}) IS NULL THEN 0 END AS r14",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Size:
    """How much is drawn: of how many events a table has at most, and of how many names a query."""

    events: int = 16
    names: int = 4


_USUAL = Size()


@st.composite
def situation_cases(
    draw: st.DrawFn,
    size: Size = _USUAL,
    detect: tuple[str, ...] = DETECT,
    returns: tuple[bool, ...] = (False, True),
    tied: bool = True,
    sorted_only: bool = False,
    partitions: tuple[tuple[str, ...] | None, ...] = PARTITIONS,
) -> Case:
    """A query over situations, a table and keywords that go together.

    Parameters
    ----------
    size
        How much is drawn.
    detect
        The modes of detection to choose from.
    returns
        Whether there may be RETURN, and none.
    tied, sorted_only
        Whether timestamps may be equal, and whether rows stand in the order of time.
    partitions
        The stream keys to choose from.
    """
    clock, allen = draw(st.sampled_from(SITUATION_CLOCKS)), draw(st.sampled_from(ALLEN))
    text = draw(situation_queries(size.names, clock.windows, allen, draw(st.sampled_from(returns))))
    mode = draw(st.sampled_from(detect))
    gaps = [window.format(n=n) for window in clock.windows for n in (0, 1, 2)[mode == "early" :]]
    if mode == "early" and clock.moment(0) == -math.inf:
        # which is refused
        gaps = []
    options = {
        "detect": mode,
        "allen": allen,
        "gap": draw(st.sampled_from((*[None] * 4, *gaps))),
        "partition_by": draw(st.sampled_from(partitions)),
        "order_by": draw(st.sampled_from((None, None, None, ["v"], ["s", "y"]))),
        "time_unit": clock.time_unit,
    }
    given = {name: list(value) if isinstance(value, tuple) else value for name, value in options.items() if value is not None}
    return Case(text, draw(situation_tables(clock, size.events, tied, sorted_only)), given)


@st.composite
def situation_tables(
    draw: st.DrawFn, clock: Clock = SITUATION_CLOCKS[0], max_size: int = 12, tied: bool = True, sorted_only: bool = False
) -> pa.Table:
    """A table of the common schema, with its rows in the order of time, nearly so, or in any."""
    scatter = Random(draw(st.integers(0, 2**32 - 1)))
    size = draw(st.one_of(st.just(max_size), st.just(max_size), st.integers(0, max_size)))
    steps = scatter.choices((0, 1, 1, 1, 3) if tied else (1, 1, 1, 3), k=size)
    moments = sorted(clock.moment(sum(steps[:number])) for number in range(size))
    columns = {"ts": pa.array(moments, clock.type)}
    changes = draw(st.sampled_from((0.4, 0.25, 0.6)))
    columns |= {lane: pa.array(_lane(scatter, size, changes), pa.bool_()) for lane in LANES}
    types = OTHER_TYPES if draw(st.booleans()) else {}
    columns |= {name: pa.array(scatter.choices(choices, k=size), types.get(name, type_)) for name, (type_, choices) in ATTRIBUTES.items()}
    columns["n"] = pa.array([number // 2 for number in range(size)], pa.int64())
    rows = list(range(size)) if sorted_only else _disordered(scatter, size, draw(st.sampled_from(("no", "no", "swapped", "shuffled"))))
    table = pa.table(columns).take(pa.array(rows, pa.int64()))
    cut = draw(st.integers(0, size))
    return pa.concat_tables([table[:cut], table[cut:]])


def _lane(scatter: Random, size: int, changes: float) -> list[bool | None]:
    """Truths in runs, which end with a probability of `changes` at each event; some are NULL."""
    truths: list[bool | None] = []
    truth = scatter.random() < 0.5
    for _ in range(size):
        truth ^= scatter.random() < changes
        truths.append(None if scatter.random() < 0.05 else truth)
    return truths


def _disordered(scatter: Random, size: int, how: str) -> list[int]:
    """Row numbers in order, with two of them exchanged, or in any order."""
    rows = list(range(size))
    if how == "shuffled":
        scatter.shuffle(rows)
    elif how == "swapped" and size > 1:
        one, other = scatter.sample(rows, 2)
        rows[one], rows[other] = rows[other], rows[one]
    return rows


@st.composite
def situation_queries(
    draw: st.DrawFn, max_names: int = 4, windows: Sequence[str] = ("{n}",), allen: str = "paper", returns: bool = False
) -> str:
    """The text of a query over situations of the common schema, without PARTITION BY; its `finishes` are as `allen` has them."""
    names = NAMES[: draw(st.sampled_from((*range(2, max_names + 1), 2, 3)))]
    scatter = Random(draw(st.integers(0, 2**32 - 1)))
    defined = ", ".join(_definition(scatter, name, windows) for name in names)
    clauses = [f"DEFINE {defined}", "PATTERN " + " AND ".join(_constraints(scatter, names, allen))]
    if draw(st.sampled_from((False, False, True))):
        clauses.append("WITHIN " + scatter.choice(windows).format(n=scatter.choice((5, 9, 15))))
    if returns:
        chosen = scatter.sample(_RETURNS, scatter.randint(1, 5))
        one, other = scatter.choices(names, k=2)
        clauses.append("RETURN " + ", ".join(item.format(one=one, other=other) for item in chosen))
    return "\n".join(clauses)


def _definition(scatter: Random, name: str, windows: Sequence[str]) -> str:
    condition = scatter.choice(_CONDITIONS).format(own=name.lower(), other=scatter.choice(LANES))
    low, high = scatter.choice(((1, 3), (1, 9), (2, 9), (2, 5), (0, 5)))
    window = scatter.choice([window for window in windows if "{n}" in window])
    duration = scatter.choice(_DURATIONS).format(low=window.format(n=low), high=window.format(n=high))
    # behind a bare operand BETWEEN is the operator
    return f"{name} AS ({condition}) = TRUE {duration}" if duration.startswith("BETWEEN") else f"{name} AS {condition} {duration}"


def _constraints(scatter: Random, names: str, allen: str) -> list[str]:
    """Constraints on some pairs of names, each with a relation that holds between two of some intervals."""
    hidden = {name: _interval(scatter) for name in names}
    pairs = {tuple(scatter.sample(names, 2)) for _ in range(scatter.randint(1, len(names)))}
    return [_constraint(scatter, hidden, left, right, allen) for left, right in sorted(pairs)]


def _interval(scatter: Random) -> Interval:
    start, end = sorted(scatter.sample(range(6), 2))
    return interval(start, end)


def _constraint(scatter: Random, hidden: dict[str, Interval], left: str, right: str, allen: str) -> str:
    true = next(relation for relation in RELATIONS if holds([relation], hidden[left], hidden[right]))
    others = scatter.sample([relation for relation in RELATIONS if relation != true], scatter.choice((0, 2, 5, 8, 10, 11, 12)))
    renamed = {"finishes": "finished-by", "finished-by": "finishes"} if allen == "1983" else {}
    alternatives = [f"{left} {renamed.get(relation, relation)} {right}" for relation in (true, *others)]
    scatter.shuffle(alternatives)
    return "; ".join(alternatives)
