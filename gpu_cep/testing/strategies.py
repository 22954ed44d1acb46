"""Random event tables and queries for hypothesis: few types, few values, many ties, NULLs and NaNs.

All tables share one schema, so that any query fits any table; only the type of
the timestamp varies, and with it the window's unit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

Refer = Callable[[str], str]  # attribute -> reference to it

DAY_ZERO = date(2024, 1, 1)
SECOND_ZERO = datetime(2024, 1, 1)

ALPHABETS = (("A", "B"), ("A",), ("A",), ("A", "B", "C"))
# The attributes beside the timestamp and the type; what stands twice is twice as likely.
ATTRIBUTES: Mapping[str, tuple[pa.DataType, tuple[Any, ...]]] = {
    "k": (pa.int64(), (1, 1, 1, 1, 2, None)),
    "s": (pa.string(), ("x", "x", "x", "x", "y", "xy", "", None)),
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
    """A type of timestamp: its moments 0, 1, 2 … and what may follow WITHIN for `n` of them."""

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
    Clock(pa.date32(), lambda n: DAY_ZERO + timedelta(n), ("{n} days", "{n}")),
    Clock(pa.timestamp("us"), lambda n: SECOND_ZERO + timedelta(seconds=n), ("{n} seconds", "{n}500 ms")),
    Clock(pa.timestamp("ms", "UTC"), lambda n: SECOND_ZERO + timedelta(hours=n), ("{n} hours",)),
)


@dataclass(frozen=True, slots=True)
class Case:
    """A query over a table, and the keywords to ask it with."""

    text: str
    events: pa.Table
    options: Mapping[str, Any] = field(default_factory=dict)


@st.composite
def event_tables(
    draw: st.DrawFn, clock: Clock = CLOCKS[0], alphabet: tuple[str, ...] = ALPHABETS[0], max_size: int = 9, tied: bool = True
) -> pa.Table:
    """A table of the common schema, in no order of time; `tied` says whether timestamps may be equal."""
    size = min(draw(st.integers(0, max_size + 6)), max_size)
    moments = draw(st.lists(st.integers(0, max(9, max_size)), min_size=size, max_size=size, unique=not tied))
    columns = {"ts": pa.array([clock.moment(n) for n in moments], clock.type)}
    types = OTHER_TYPES if draw(st.booleans()) else {}
    for name, (type_, choices) in {"type": (pa.string(), alphabet), **ATTRIBUTES}.items():
        values = draw(st.lists(st.sampled_from(choices), min_size=size, max_size=size))
        columns[name] = pa.array(values, types.get(name, type_))
    table = pa.table(columns)
    cut = draw(st.integers(0, size))
    return pa.concat_tables([table[:cut], table[cut:]])


# Queries ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Variable:
    name: str
    event_type: str | None
    quantifier: str

    @property
    def text(self) -> str:
        return f"{self.event_type or ''} {self.name}{self.quantifier}".strip()


QUANTIFIERS = (*[""] * 6, *["+"] * 4, "{2}", "{1,2}", "{2,}", "{2,3}", "{1,}")
SIZES = (2, 1, 2, 2, 3, 3, 4, 5)


@st.composite
def variables(
    draw: st.DrawFn, alphabet: tuple[str, ...] = ALPHABETS[0], max_variables: int = 5, quantifiers: tuple[str, ...] = QUANTIFIERS
) -> list[Variable]:
    """One to `max_variables` variables, most of them typed."""
    size = min(draw(st.sampled_from(SIZES)), max_variables)
    types = st.sampled_from((*alphabet, *alphabet, None))
    return [Variable(name, draw(types), draw(st.sampled_from(quantifiers))) for name in "abcde"[:size]]


@st.composite
def patterns(draw: st.DrawFn, declared: list[Variable]) -> str:
    """SEQ and AND of the variables, nested anyhow."""
    if len(declared) == 1:
        return declared[0].text
    cuts = sorted(draw(st.sets(st.integers(1, len(declared) - 1), min_size=1)))
    parts = [declared[start:end] for start, end in zip([0, *cuts], [*cuts, len(declared)], strict=True)]
    elements = [draw(patterns(part)) for part in parts]
    return f"{draw(st.sampled_from(('SEQ', 'AND')))}({', '.join(elements)})"


@st.composite
def queries(
    draw: st.DrawFn,
    windows: tuple[str, ...] = ("{n}",),
    alphabet: tuple[str, ...] = ALPHABETS[0],
    max_variables: int = 5,
    quantifiers: tuple[str, ...] = QUANTIFIERS,
) -> str:
    """The text of a query over the common schema, without PARTITION BY and strategy."""
    declared = draw(variables(alphabet, max_variables, quantifiers))
    clauses = [f"PATTERN {draw(patterns(declared))}"]
    conjuncts = draw(conditions(declared))
    if conjuncts:
        clauses.append("WHERE " + "\n  AND ".join(conjuncts))
    window = draw(st.sampled_from((None, *windows, *windows, "{n} EVENTS")))
    if window is not None:
        clauses.append("WITHIN " + window.format(n=draw(st.sampled_from((5, 1, 3, 4, 6, 8)))))
    return "\n".join(clauses)


@st.composite
def cases(
    draw: st.DrawFn,
    max_size: int = 9,
    max_variables: int = 5,
    tied: bool = True,
    strategies: tuple[str, ...] = ("skip_till_next_match", "skip_till_any_match"),
    quantifiers: tuple[str, ...] = QUANTIFIERS,
) -> Case:
    """A query, a table and keywords that go together."""
    clock, alphabet = draw(st.sampled_from(CLOCKS)), draw(st.sampled_from(ALPHABETS))
    options = {
        "strategy": draw(st.sampled_from(strategies)),
        "ties": draw(st.sampled_from(("strict", "position"))),
        "partition_by": draw(st.sampled_from((None, None, None, None, ("k",), ("k",), ("s",), ("k", "y")))),
        "order_by": draw(st.sampled_from((None, None, ("x",), ("s", "y")))),
        "time_unit": clock.time_unit,
    }
    given = {name: list(value) if isinstance(value, tuple) else value for name, value in options.items() if value is not None}
    text = draw(queries(clock.windows, alphabet, max_variables, quantifiers))
    return Case(text, draw(event_tables(clock, alphabet, max_size, tied)), given)


# Conditions ------------------------------------------------------------------

COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
TERMS: Mapping[str, tuple[str, ...]] = {
    "number": (
        *("{x}", "{y}") * 4,
        *("{x} + 1", "{x} - {y}", "{x} * 2", "{x} / {y}", "{x} % 2", "{y} % 2", "{y} * 0.5", "-{x}", "abs({x} - 2)", "sign({y})"),
        *("floor({y})", "ceil({y})", "round({y})", "sqrt({x})", "coalesce({x}, 1)", "coalesce({y}, {x})", "nullif({x}, 0)"),
        *("least({x}, 2)", "greatest({x}, 1)", "least({y}, 1)", "greatest({y}, {x})", "length({s})"),
        *("{y} * {y} - {y} * {y}", "{y} * 0.1 + {x}"),  # other bits if a product were fused with the sum
    ),
    "decimal": ("{m}", "{m}", "{m} + 0.25", "{m} - 1", "-{m}", "{m} + {x}"),
    "string": ("{s}", "{s}", "{s}", "lower({s})", "upper({s})"),
    "date": ("{d}", "{d}", "coalesce({d}, DATE '2024-01-02')"),
    "timestamp": ("{t}", "{t}", "{t} + 1 seconds", "{t} - INTERVAL '1' DAY"),
}
CONSTANTS: Mapping[str, tuple[str, ...]] = {
    "number": ("0", "1", "2", "-1", "0.5", "25e-1", "NULL"),
    "decimal": ("0", "1.5", "0.25", "-2.0"),
    "string": ("'x'", "'y'", "''", "'X'"),
    "date": ("DATE '2024-01-01'", "DATE '2024-01-02'"),
    "timestamp": ("TIMESTAMP '2024-01-01 00:00:01'", "DATE '2024-01-02'"),
}
TESTS = (
    *("{f}", "NOT {f}", "{f} = FALSE", "{x} IS NULL", "{y} IS NOT NULL", "{s} IS NOT NULL"),
    *("{x} BETWEEN 0 AND 2", "{y} NOT BETWEEN 0 AND 1", "{x} IN (0, 2)", "{x} NOT IN (1, 3)", "{y} IN (0.5, 1)", "{s} IN ('x', 'xy')"),
    *("{s} LIKE 'x%'", "{s} LIKE '_'", "{s} NOT LIKE '%y'", "NOT ({y} < 1)", "{x} = 1 OR {y} > 0.5", "{f} OR {x} > 0"),
)
DIFFERENCES = ("abs({d} - {other_d}) <= 1 days", "{t} - {other_t} < 2 seconds", "{d} - {other_d} = 0 days", "{t} - {other_t} >= 0 seconds")


@st.composite
def conditions(draw: st.DrawFn, declared: list[Variable]) -> list[str]:
    """Up to three conjuncts over `declared`, and now and then a chain of equalities through all of them."""
    kinds = [properties, properties, equivalences]
    if any(variable.quantifier for variable in declared):
        kinds += [steps, steps]
    if len(declared) > 1:
        kinds += [relations, relations, relations]
    found = [draw(draw(st.sampled_from(kinds))(declared)) for _ in range(draw(st.sampled_from((1, 0, 0, 1, 1, 1, 2, 3))))]
    if draw(st.integers(0, 3)) == 0:
        attribute = draw(st.sampled_from(("k", "k", "k", "s", "y")))
        found += [f"{one.name}.{attribute} = {other.name}.{attribute}" for one, other in pairwise(declared)]
    return draw(st.permutations(found))


@st.composite
def properties(draw: st.DrawFn, declared: list[Variable]) -> str:
    """A condition on single events of one variable."""
    refer = _each(draw, draw(st.sampled_from(declared)))
    if draw(st.booleans()):
        return f"({_filled(draw(st.sampled_from(TESTS)), refer)})"
    return draw(comparisons(refer))


@st.composite
def relations(draw: st.DrawFn, declared: list[Variable]) -> str:
    """A condition on the events of two or three variables, of one also on the previous event."""
    chosen = draw(st.permutations(declared))
    one, other = _each(draw, chosen[0]), _any(draw, chosen[1])
    if len(chosen) > 2 and draw(st.integers(0, 3)) == 0:
        return f"{one('x')} + {other('x')} {draw(st.sampled_from(COMPARISONS))} {_each(draw, chosen[2])('x')}"
    if draw(st.integers(0, 5)) == 0:
        return draw(st.sampled_from(DIFFERENCES)).format(d=one("d"), t=one("t"), other_d=other("d"), other_t=other("t"))
    if draw(st.integers(0, 5)) == 0:
        return f"({draw(comparisons(one))} OR {draw(comparisons(other))})"
    return draw(comparisons(one, other))


@st.composite
def steps(draw: st.DrawFn, declared: list[Variable]) -> str:
    """A condition on consecutive events of one binding."""
    variable = draw(st.sampled_from([variable for variable in declared if variable.quantifier]))
    return draw(comparisons(_previous(draw, variable), _each(draw, variable)))


@st.composite
def equivalences(draw: st.DrawFn, declared: list[Variable]) -> str:
    return f"[{draw(st.sampled_from(('k', 'k', 'k', 's', 'f', 'x')))}]"


@st.composite
def comparisons(draw: st.DrawFn, refer: Refer, other: Refer | None = None) -> str:
    """A comparison of a term with a constant, or with a term of another event."""
    kind = draw(st.sampled_from(("number", "number", *TERMS)))
    right = draw(st.sampled_from(CONSTANTS[kind])) if other is None else _filled(draw(st.sampled_from(TERMS[kind])), other)
    return f"{_filled(draw(st.sampled_from(TERMS[kind])), refer)} {draw(st.sampled_from(COMPARISONS))} {right}"


def _filled(template: str, refer: Refer) -> str:
    return template.format(**{name: refer(name) for name in ATTRIBUTES})


def _each(draw: st.DrawFn, variable: Variable) -> Refer:
    indexed = variable.quantifier and draw(st.booleans())
    return lambda attribute: f"{variable.name}[i].{attribute}" if indexed else f"{variable.name}.{attribute}"


def _previous(draw: st.DrawFn, variable: Variable) -> Refer:
    indexed = draw(st.booleans())
    return lambda attribute: f"{variable.name}[i-1].{attribute}" if indexed else f"prev({variable.name}.{attribute})"


def _any(draw: st.DrawFn, variable: Variable) -> Refer:
    """Mostly every event of the binding, now and then every event that another follows."""
    if variable.quantifier and draw(st.integers(0, 4)) == 0:
        return _previous(draw, variable)
    return _each(draw, variable)
