"""A length of time without a unit: what it counts, and that over dates and timestamps it needs `time_unit`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_cep as cep
from gpu_cep.errors import PatternError

TIMES = (*map(pa.timestamp, ("s", "ms", "us", "ns")), pa.timestamp("us", "Europe/Zurich"))
UNITS = {"s": 1, "ms": 1_000, "minutes": 1 / 60}
SEQUENCE = "PATTERN SEQ(A a, NOT(C n), B b) WITHIN {}"
SITUATIONS = "DEFINE A AS x AT LEAST {}, B AS (y) = TRUE BETWEEN {} AND {}, C AS y AT MOST {} PATTERN A before B; A overlaps B WITHIN {}"
OR_SAY = "or say by time_unit= (ns, us, ms, s, minutes …) what a number counts"


def events(kind: pa.DataType, seconds: list[int] | None = None) -> pa.Table:
    """Events at whole seconds; their types and truths change at different paces."""
    seconds = list(range(0, 60, 3)) if seconds is None else seconds
    numbers = range(len(seconds))
    days = pa.array(seconds, pa.int32()) if pa.types.is_date(kind) else None
    times = days.cast(kind) if days else pa.array(seconds, pa.timestamp("s")).cast(pa.timestamp("us")).cast(kind)
    return pa.table(
        {"ts": times, "type": ["ABCAB"[n % 5] for n in numbers], "x": [n % 3 < 2 for n in numbers], "y": [n % 7 < 3 for n in numbers]}
    )


def indices(table: pa.Table, query: Any, **options: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = cep.match(table, query, output="indices", **options).to_pylist()
    return found


@pytest.mark.parametrize("algorithm", ["auto", "brute_force"])
@pytest.mark.parametrize("unit", UNITS)
def test_time_unit_says_what_a_number_counts_whatever_the_columns_unit(unit: str, algorithm: str) -> None:
    def counted(seconds: int) -> str:
        return f"{seconds * UNITS[unit]:g}" if unit != "minutes" else str(seconds // 60)

    window, longest = counted(60), counted(120)
    for query in (SEQUENCE.format(window), SITUATIONS.format(counted(0), counted(0), longest, longest, window)):
        options = {"algorithm": algorithm} | ({"gap": counted(60)} if query.startswith("DEFINE") else {})
        found = [indices(events(kind, list(range(0, 900, 15))), query, time_unit=unit, **options) for kind in TIMES]
        assert found == [found[0]] * len(TIMES)
        assert found[0]


@given(
    st.lists(st.integers(0, 30), min_size=2, max_size=12), st.integers(0, 9), st.sampled_from((None, 1, 4)), st.sampled_from(("s", "ms"))
)
def test_a_number_is_a_number_of_the_time_unit(seconds: list[int], length: int, gap: int | None, unit: str) -> None:
    """So it has the matches of the same length with that unit, over a column of any unit."""
    number, scale = str(length * 1000 if unit == "ms" else length), 1000 if unit == "ms" else 1
    written = f"{number} {unit}"
    gaps = (None, None) if gap is None else (gap * scale, f"{gap * scale} {unit}")
    wanted = [
        indices(events(TIMES[0], seconds), SEQUENCE.format(written)),
        indices(events(TIMES[0], seconds), SITUATIONS.format(*[written] * 5), gap=gaps[1]),
    ]
    for kind in TIMES:
        table = events(kind, seconds)
        assert wanted == [
            indices(table, SEQUENCE.format(number), time_unit=unit),
            indices(table, SITUATIONS.format(*[number] * 5), time_unit=unit, gap=gaps[0]),
        ]


def test_dates_count_the_time_unit() -> None:
    table = events(pa.date32())
    assert indices(table, SEQUENCE.format(2), time_unit="weeks") == indices(table, SEQUENCE.format("14 days")) != []


@pytest.mark.parametrize("time_unit", ["s", "ns", "days"])
def test_a_time_unit_that_nothing_counts_in_does_no_harm(time_unit: str) -> None:
    table = events(pa.timestamp("ms"))
    for query in ("PATTERN SEQ(A a, B b)", "PATTERN SEQ(A a, B b) WITHIN 3 EVENTS", SEQUENCE.format("9 s")):
        assert indices(table, query, time_unit=time_unit) == indices(table, query) != []


def from_builder(table: pa.Table, **options: Any) -> None:
    a, b = cep.var("a", "A"), cep.var("b", "B")
    cep.match(table, cep.seq(a, b).within(60), **options)


WAYS: dict[str, Callable[..., object]] = {
    "match": lambda table, **options: cep.match(table, "PATTERN SEQ(A a, B b) WITHIN 60", **options),
    "explain": lambda table, **options: cep.explain(table, "PATTERN SEQ(A a, B b) WITHIN 60", **options),
    "plot": lambda table, **options: cep.plot(table, "PATTERN SEQ(A a, B b) WITHIN 60", **options),
    "tree": lambda table, **options: cep.match(table, cep.parse("PATTERN SEQ(A a, B b) WITHIN 60"), **options),
    "builder": from_builder,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("kind", "shown", "fix"),
    [
        (pa.timestamp("ns", "UTC"), "timestamp[ns, UTC]", "WITHIN 60 seconds"),
        (pa.date32(), "date", "WITHIN 60 days"),
    ],
    ids=str,
)
def test_every_way_to_ask_gives_the_same_error(way: str, kind: pa.DataType, shown: str, fix: str) -> None:
    with pytest.raises(PatternError) as caught:
        WAYS[way](events(kind))
    (diagnostic,) = caught.value.diagnostics
    assert (diagnostic.message, diagnostic.hint) == (f"ts is {shown}: the window 60 needs a unit", f"write {fix}, {OR_SAY}")
    WAYS[way](events(kind), time_unit="days" if pa.types.is_date(kind) else "s")


def test_the_same_query_over_files_of_other_units_is_an_error_for_each(tmp_path: Path) -> None:
    for kind in TIMES:
        pq.write_table(events(kind), tmp_path / "events.parquet")
        with pytest.raises(PatternError, match=r"ts is timestamp\[.*\]: the window 3600000 needs a unit"):
            cep.match(tmp_path / "events.parquet", SEQUENCE.format(3600000))


def test_all_lengths_are_told_of_at_once_and_beside_other_faults() -> None:
    query = "DEFINE A AS x AT LEAST 5, B AS y AT MOST 9, C AS (x) = TRUE BETWEEN 1 AND 2 minutes, D AS z PATTERN A before B WITHIN 60"
    with pytest.raises(PatternError) as caught:
        cep.match(events(pa.timestamp("us")), query, gap=30)
    told = [(each.message, each.hint) for each in caught.value.diagnostics]
    assert told.pop(3)[0] == "unknown attribute 'z'"
    assert told == [
        (f"ts is timestamp[us]: the {what} needs a unit", f"write {fix}, {OR_SAY}")
        for what, fix in (
            ("duration 5", "AT LEAST 5 seconds"),
            ("duration 9", "AT MOST 9 seconds"),
            ("duration 1", "1 second"),
            ("window 60", "WITHIN 60 seconds"),
            ("gap 30", "gap='30 seconds'"),
        )
    ]


def test_what_the_hints_say_is_understood() -> None:
    query = "DEFINE A AS x AT LEAST 5 seconds, B AS (y) = TRUE BETWEEN 1 second AND 9 seconds PATTERN A before B WITHIN 60 seconds"
    assert cep.explain(events(pa.timestamp("us")), query, gap="30 seconds")


def test_an_unknown_time_unit_is_told_of_once() -> None:
    with pytest.raises(PatternError) as caught:
        cep.match(events(pa.timestamp("us")), SITUATIONS.format(*range(5)), time_unit="secnds", gap=3)
    assert [each.message for each in caught.value.diagnostics] == ["unknown time_unit 'secnds'"]
