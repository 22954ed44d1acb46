"""How the time of a stream moves: with events, a watermark or the clock; what comes late, and the ticks of times."""

from __future__ import annotations

import math
import re
from collections import Counter
from datetime import UTC, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

import gpu_cep as cep
from tests.api.streams.test_stream import EVENTS, PAIRS, TRADES


def test_time_moves_without_events():
    live = cep.stream("PATTERN SEQ(A a, B b+) WITHIN 5", EVENTS)
    assert live.push(TRADES.slice(0, 2)).num_rows == 0
    assert live.advance(5).num_rows == 0
    assert live.advance(6).num_rows == 1
    # it does not move back
    assert live.advance(2).num_rows == 0
    assert live.clock.watermark == 6


def test_an_idle_stream_goes_by_the_clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("gpu_cep.streams.monotonic", lambda: now[0])
    live = cep.stream("PATTERN SEQ(A a, B b+) WITHIN 5", EVENTS, lateness=1, idle="30 seconds", time_unit="s")
    # no event has come: there is no time yet
    assert live.advance().num_rows == 0
    live.push(TRADES.slice(0, 2))
    now[0] += 29
    assert live.advance().num_rows == 0
    assert live.clock.watermark == 1
    now[0] += 2
    assert live.advance().num_rows == 1
    assert live.clock.watermark == 2 - 1 + 31
    # what was only slow is late, and the clock of the stream begins anew with it
    live.push(TRADES.slice(2, 1))
    assert live.clock.late == 1
    now[0] += 29
    assert live.advance().num_rows == 0
    loaded = cep.stream.load(live.save())
    now[0] += 100
    assert (loaded.advance().num_rows, loaded.clock.watermark) == (0, 2 - 1 + 100)


def test_an_idle_stream_of_dates_counts_whole_days(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("gpu_cep.streams.monotonic", lambda: now[0])
    schema = pa.schema({"ts": pa.date32(), "type": pa.string()})
    live = cep.stream("PATTERN SEQ(A a, B b+) WITHIN 2 days", schema, idle="1 day")
    live.push(pa.table({"ts": pa.array([10, 11], pa.int32()).cast(pa.date32()), "type": ["A", "B"]}))
    now[0] = 86_400 * 1.5
    assert (live.advance().num_rows, live.clock.watermark) == (1, 12)


@pytest.mark.parametrize("after_match", ["all", "skip_to_next", "skip_past_last"])
@pytest.mark.parametrize("pattern", ["SEQ(A a, B b)", "SEQ(A a, B b+)", "OR(A a, B b{0,2})"])
def test_nothing_comes_behind_infinity_and_nothing_comes_out_twice(pattern, after_match):
    times = [-math.inf, -math.inf, 1.0, 2.0, math.inf, math.inf]
    events = pa.table({"ts": times, "type": list("ABABAB"), "k": [1] * 6})
    text = f"PATTERN {pattern} WHERE [k] WITHIN 5"
    options = {"ties": "position", "after_match": after_match, "output": "indices"}
    live, rules = cep.stream(text, events.schema, **options), cep.stream_all({"one": text}, events.schema, split=True, **options)
    found = [live.push(events.slice(row, 2)) for row in (0, 2, 4)]
    assert min(found[0].num_rows, found[2].num_rows) > 0
    assert live.kept_events == 0
    assert [rules.push(events.slice(row, 2))["one"] for row in (0, 2, 4)] == found
    assert live.finish().num_rows == rules.finish()["one"].num_rows == live.kept_events == 0
    assert Counter(map(repr, pa.concat_tables(found).to_pylist())) == Counter(map(repr, cep.match(events, text, **options).to_pylist()))


def test_times_are_given_as_values_of_the_column():
    schema = pa.schema({"ts": pa.timestamp("ms"), "type": pa.string()})
    live = cep.stream("PATTERN SEQ(A a, B b+) WITHIN 5 seconds", schema, lateness="1 second")
    first = pa.table({"ts": [1_000, 2_000], "type": ["A", "B"]}).cast(schema)
    strict = cep.stream("PATTERN SEQ(A a, B b) WITHIN 5 seconds", schema, late="error")
    strict.push(first)
    with pytest.raises(cep.EventError, match=r"the watermark is at 1970-01-01 00:00:02; give"):
        strict.push(first)
    live.push(first)
    assert live.advance(datetime(1970, 1, 1, 0, 0, 6)).num_rows == 1
    with pytest.raises(cep.EventError, match="advance\\(\\) needs a time, or a stream that was made with idle="):
        live.advance()
    told = r"time: 'noon' is no value of .* timestamp\[ms\]; expected a datetime, or text such as '2026-01-31 08:00:00'$"
    with pytest.raises(cep.EventError, match=told):
        live.advance("noon")


def test_late_events_are_dropped_and_counted():
    live = cep.stream(PAIRS, EVENTS, lateness=2)
    live.push(TRADES.slice(2, 2))
    assert live.push(TRADES.slice(0, 3)).num_rows == 0
    assert (live.clock.watermark, live.clock.pushed, live.clock.late) == (2, 5, 2)


def test_late_events_are_an_error_if_that_is_asked_for():
    live = cep.stream(PAIRS, EVENTS, late="error")
    live.push(TRADES.slice(3, 1))
    told = r"2 events are late, the first of them event 2: the watermark is at 4 ticks; give a longer lateness="
    with pytest.raises(cep.EventError, match=told):
        live.push(TRADES.take([4, 1, 2]))
    # nothing of it was taken
    assert live.clock.pushed == 1


@pytest.mark.parametrize(
    ("kind", "tick", "told"),
    [
        (pa.timestamp("us", "Europe/Berlin"), 1_500_000, "1970-01-01 01:00:01.500000+01:00;"),
        # a zone that is unknown here, and a year that Python cannot hold
        (pa.timestamp("us", "Foo/Bar"), 1_500_000, "1970-01-01 00:00:01.500000Z;"),
        (pa.timestamp("s"), 10**12, "33658-09-27 01:46:40;"),
    ],
)
def test_late_events_show_the_watermark_as_a_time(kind, tick, told):
    events = TRADES.slice(0, 1).set_column(EVENTS.names.index("ts"), "ts", pa.array([tick], kind))
    live = cep.stream("PATTERN SEQ(A a, B b) WITHIN 1 s", events.schema, late="error")
    live.push(events)
    with pytest.raises(cep.EventError, match=re.escape(f"the watermark is at {told}")):
        live.push(events)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (pa.timestamp("us"), "a datetime, or text such as '2026-01-31 08:00:00'"),
        (pa.timestamp("s", "Europe/Berlin"), "a datetime with a zone, or text such as '2026-01-31 08:00:00Z'"),
        (pa.date32(), "a date, or text such as '2026-01-31'"),
        (pa.date64(), "a date, or text such as '2026-01-31'"),
    ],
)
@pytest.mark.parametrize("time", [5, 5.0, np.int64(5), Decimal(5), pa.scalar(5), True])
def test_a_number_is_no_time_of_the_calendar(kind, expected, time):
    """It could count days, seconds or ticks of any unit, so a call says which time it means."""
    events = EVENTS.set(0, pa.field("ts", kind))
    live = cep.stream("PATTERN SEQ(A a, B b) WITHIN 5 days", events)
    with pytest.raises(cep.EventError, match=rf"time: .* of type {re.escape(str(kind))}; expected {re.escape(expected)}$"):
        live.advance(time)
    assert live.clock.watermark is None
    with pytest.raises(cep.EventError, match=f"complete_until: .* expected {re.escape(expected)}$"):
        cep.match(events.empty_table(), "PATTERN SEQ(A a, B b) WITHIN 5 days", complete_until=time)


HALF = datetime(2020, 1, 1, 0, 0, 0, 500_000)


@pytest.mark.parametrize(
    ("kind", "time"),
    [
        *((pa.int64(), time) for time in (-7.5, np.float32(-7.5), Decimal("-7.5"), float("nan"), float("inf"))),
        *((pa.timestamp("s", zone), time) for zone in (None, "Europe/Berlin") for time in (HALF, 1.5)),
        # a zone on one side alone, which Arrow takes for UTC
        *((pa.timestamp("us", "Europe/Berlin"), time) for time in (HALF, HALF.date(), "2020-01-01 00:00:00")),
        *((pa.timestamp("us"), time) for time in (HALF.replace(tzinfo=UTC), "2020-01-01 00:00:00Z")),
        *((kind, time) for kind in (pa.date32(), pa.date64()) for time in (HALF, 1.5)),
        (pa.float64(), float("nan")),
        (pa.timestamp("s"), pa.scalar(HALF, pa.timestamp("us"))),
        (pa.timestamp("s"), str(HALF)),
        (pa.timestamp("us"), pa.scalar(1_001, pa.timestamp("ns"))),
        (pa.timestamp("us"), Decimal("1.5")),
        (pa.date32(), np.float32(1.5)),
    ],
)
def test_no_part_of_a_time_is_cut_off_and_no_zone(kind, time):
    live = cep.stream("PATTERN SEQ(A a, B b) WITHIN 5 days" if pa.types.is_temporal(kind) else PAIRS, EVENTS.set(0, pa.field("ts", kind)))
    with pytest.raises(cep.EventError, match=f"time: .* is no value of the column 'ts' of type {re.escape(str(kind))}"):
        live.advance(time)
    assert live.clock.watermark is None


@pytest.mark.parametrize(
    ("kind", "time", "ticks"),
    [
        *((pa.int64(), time, -7) for time in (-7, -7.0, np.float32(-7), Decimal(-7), "-7")),
        (pa.float64(), -7.5, -7.5),
        (pa.timestamp("ms"), HALF, 1_577_836_800_500),
        (pa.timestamp("ms", "Europe/Berlin"), HALF.replace(tzinfo=UTC), 1_577_836_800_500),
        (pa.timestamp("ns"), pa.scalar(1_001, pa.timestamp("ns")), 1_001),
        (pa.timestamp("s"), datetime(9000, 1, 1), 221_845_392_000),
        (pa.date32(), HALF.date(), 18_262),
    ],
)
def test_times_are_counted_in_ticks(kind, time, ticks):
    live = cep.stream("PATTERN SEQ(A a, B b) WITHIN 5 days" if pa.types.is_temporal(kind) else PAIRS, EVENTS.set(0, pa.field("ts", kind)))
    live.advance(time)
    assert live.clock.watermark == ticks
