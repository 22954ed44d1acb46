"""WITHIN in ticks of the timestamp column."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_cep.analysis.bound import CountWindow, TimeWindow
from gpu_cep.analysis.faults import Faults
from gpu_cep.analysis.types import DATE, FLOAT, INTEGER, TICKS_PER_SECOND, Attribute, DataType, timestamp
from gpu_cep.analysis.windows import bind_length, bind_window, length_of
from gpu_cep.lang.ast import UNITS, Window
from gpu_cep.lang.literals import UNIT_SPELLINGS
from tests.analysis.queries import bound, errors

AMOUNTS = st.one_of(st.integers(0, 10**12), st.decimals(0, 10**6, places=4))


@pytest.mark.parametrize(
    ("within", "options", "expected"),
    [
        ("15 days", {}, TimeWindow(15 * 86_400 * 10**6)),
        ("1.5 ms", {}, TimeWindow(1500)),
        ("1500 ns", {}, TimeWindow(1)),
        ("20", {"time_unit": "s"}, TimeWindow(20 * 10**6)),
        ("20", {"timestamp": "zoned", "time_unit": "minute"}, TimeWindow(20 * 60 * 10**6)),
        ("1500", {"time_unit": "ns"}, TimeWindow(1)),
        ("20 ms", {"time_unit": "s"}, TimeWindow(20_000)),
        ("0 s", {}, TimeWindow(0)),
        ("36 hours", {"timestamp": "day"}, TimeWindow(1)),
        ("3", {"timestamp": "day", "time_unit": "days"}, TimeWindow(3)),
        ("36", {"timestamp": "day", "time_unit": "hours"}, TimeWindow(1)),
        ("20", {"timestamp": "n"}, TimeWindow(20)),
        ("2.5", {"timestamp": "n"}, TimeWindow(2)),
        ("2.5", {"timestamp": "x"}, TimeWindow(2.5)),
        ("20", {"timestamp": "n", "time_unit": "s"}, TimeWindow(20)),
        ("2.5", {"timestamp": "x", "time_unit": "ms"}, TimeWindow(2.5)),
        ("3 minutes", {"timestamp": "n", "time_unit": "s"}, TimeWindow(180)),
        ("3 minutes", {"timestamp": "n", "time_unit": "minute"}, TimeWindow(3)),
        ("90 s", {"timestamp": "x", "time_unit": "minutes"}, TimeWindow(1.5)),
        ("1000000000000 weeks", {}, TimeWindow(2**64 - 1)),
        ("5 EVENTS", {}, CountWindow(5)),
        ("5 EVENTS", {"timestamp": "n"}, CountWindow(5)),
        ("5 EVENTS", {"time_unit": "s"}, CountWindow(5)),
    ],
)
def test_windows(within: str, options: dict[str, str], expected: TimeWindow | CountWindow) -> None:
    window = bound(f"PATTERN SEQ(a, b) WITHIN {within}", **options).window
    assert window == expected
    assert repr(window) == repr(expected), "an int where the column is whole, a float where it is not"


@pytest.mark.parametrize("spelling", UNIT_SPELLINGS)
@pytest.mark.parametrize("written", ["1.5{}", "1.5 {}", " 1.5  {} "])
def test_keywords_take_the_units_that_queries_take(spelling: str, written: str) -> None:
    length = Window(Decimal("1.5"), UNIT_SPELLINGS[spelling])
    assert [length_of(written.format(unit)) for unit in (spelling, spelling.upper())] == [length, length]


@pytest.mark.parametrize("given", ["5 foo", "5 events", "5 second s", "five", "5_s", "٥ s", "", True, None, math.nan])
def test_what_is_no_length(given: Any) -> None:
    assert length_of(given) is None


def test_no_window() -> None:
    assert bound("PATTERN SEQ(a, b)").window is None
    assert bound("PATTERN SEQ(a, b)", time_unit="s").window is None


@given(AMOUNTS, st.sampled_from(sorted(UNITS)), st.sampled_from(sorted(TICKS_PER_SECOND)))
def test_a_time_window_is_exact_arithmetic_rounded_down(amount: int | Decimal, unit: str, tick: str) -> None:
    window = bind_window(Window(amount, unit), Attribute("ts", timestamp(tick)), None, Faults())
    exact = Fraction(amount) * UNITS[unit] * TICKS_PER_SECOND[tick] / 10**9
    assert isinstance(window, TimeWindow)
    assert window.length == min(math.floor(exact), 2**64 - 1)


@given(AMOUNTS, st.sampled_from(sorted(UNITS)), st.sampled_from(sorted(UNITS)), st.sampled_from((INTEGER, FLOAT)))
def test_a_number_column_counts_in_its_time_unit(amount: int | Decimal, unit: str, tick: str, type: DataType) -> None:
    window = bind_window(Window(amount, unit), Attribute("ts", type), tick, Faults())
    exact = Fraction(amount) * UNITS[unit] / UNITS[tick]
    assert window == TimeWindow(float(exact) if type == FLOAT else min(math.floor(exact), 2**64 - 1))


@given(AMOUNTS, st.sampled_from(sorted(UNITS)), st.sampled_from((DATE, *map(timestamp, sorted(TICKS_PER_SECOND)))), st.booleans())
def test_a_bare_number_over_times_is_a_number_of_the_time_unit(amount: int | Decimal, unit: str, type: DataType, least: bool) -> None:
    bind = partial(bind_length, "duration", timestamp=Attribute("ts", type), faults=Faults(), least=least)
    assert bind(Window(amount, None), time_unit=unit) == bind(Window(amount, unit), time_unit=None)


@given(AMOUNTS, st.sampled_from((None, *sorted(UNITS))))
def test_a_bare_number_over_numbers_is_a_number_of_ticks(amount: int | Decimal, time_unit: str | None) -> None:
    window = bind_window(Window(amount, None), Attribute("n", INTEGER), time_unit, Faults())
    assert window == TimeWindow(math.floor(amount))


def test_a_float_window_has_no_largest_value() -> None:
    assert bind_window(Window(10**400, None), Attribute("x", FLOAT), None, Faults()) == TimeWindow(math.inf)


def test_a_date_column_counts_days() -> None:
    assert bind_window(Window(Decimal("2.9"), "days"), Attribute("day", DATE), None, Faults()) == TimeWindow(2)


UNITLESS = "or say by time_unit= (ns, us, ms, s, minutes …) what a number counts"
NEEDS_TICKS = "say the length of one tick by time_unit= (ns, us, ms, s, minutes …), or write the window without a unit"


@pytest.mark.parametrize(
    ("within", "options", "expected"),
    [
        ("15 days", {"timestamp": "n"}, f"n is integer: 15 days needs the length of its ticks; {NEEDS_TICKS}"),
        ("1 minutes", {"timestamp": "n"}, f"n is integer: 1 minute needs the length of its ticks; {NEEDS_TICKS}"),
        ("1 ms", {"timestamp": "n"}, f"n is integer: 1 ms needs the length of its ticks; {NEEDS_TICKS}"),
        ("15 days", {"timestamp": "x"}, f"x is float: 15 days needs the length of its ticks; {NEEDS_TICKS}"),
        ("15 days", {"timestamp": "n", "time_unit": "secnds"}, "unknown time_unit 'secnds'; did you mean 'seconds'?"),
        ("15 days", {"time_unit": "secnds"}, "unknown time_unit 'secnds'; did you mean 'seconds'?"),
        ("15", {"time_unit": "secnds"}, "unknown time_unit 'secnds'; did you mean 'seconds'?"),
        ("5 EVENTS", {"time_unit": "secnds"}, "unknown time_unit 'secnds'; did you mean 'seconds'?"),
        ("15", {}, f"ts is timestamp[us]: the window 15 needs a unit; write WITHIN 15 seconds, {UNITLESS}"),
        ("1", {}, f"ts is timestamp[us]: the window 1 needs a unit; write WITHIN 1 second, {UNITLESS}"),
        ("0", {}, f"ts is timestamp[us]: the window 0 needs a unit; write WITHIN 0 seconds, {UNITLESS}"),
        ("2.5", {"timestamp": "at"}, f"at is timestamp[ms]: the window 2.5 needs a unit; write WITHIN 2.5 seconds, {UNITLESS}"),
        ("15", {"timestamp": "zoned"}, f"zoned is timestamp[us, UTC]: the window 15 needs a unit; write WITHIN 15 seconds, {UNITLESS}"),
        ("15", {"timestamp": "day"}, f"day is date: the window 15 needs a unit; write WITHIN 15 days, {UNITLESS}"),
        ("0 EVENTS", {}, "a window of 0 events is not a whole number of events from 1 up"),
    ],
)
def test_errors(within: str, options: dict[str, str], expected: str) -> None:
    assert errors(f"PATTERN SEQ(a, b) WITHIN {within}", **options) == [expected]


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        (Window(-1, "days"), "the window -1 days is negative"),
        (Window(-1, "events"), "the window -1 events is negative"),
        (Window(Decimal("1.5"), "events"), "a window of 1.5 events is not a whole number of events from 1 up"),
    ],
)
def test_windows_that_only_a_builder_can_make(window: Window, expected: str) -> None:
    faults = Faults()
    assert bind_window(window, Attribute("ts", timestamp("us")), None, faults) is None
    assert [fault.message for fault in faults.errors] == [expected]
