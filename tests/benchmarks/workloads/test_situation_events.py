"""Drives and drawn situations are what they are said to be, and the C++ loop finds the matches that the definitions give."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import groupby, product
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

import gpu_cep
from benchmarks.baselines.interval_peer import ANY_DURATIONS, PRINTED_DURATIONS, Listing1, aggressive_drivers
from benchmarks.workloads import drives, situation_events
from benchmarks.workloads.situation_queries import DISCONNECTED, OVERLAPPING, PLANS, SEQUENTIAL, SHAPES, query_of, shaped
from gpu_cep.lang.ast_intervals import IntervalQuery


def processor_seconds(make: Callable[[], object]) -> float:
    begun = time.process_time()
    make()
    return time.process_time() - begun


# Drives


def test_drives_are_the_same_each_time() -> None:
    reports = drives.car_reports(10_000, cars=70)
    assert reports.equals(drives.car_reports(10_000, cars=70))
    assert not reports["speed"].equals(drives.car_reports(10_000, cars=70, seed=1)["speed"])
    assert reports.schema.names == ["ts", "car_id", "position", "speed", "accel"]
    assert reports.schema.types == [pa.int64(), pa.int32(), *[pa.float64()] * 3]


@pytest.mark.parametrize("events", [1, 69, 70, 71, 10_000])
def test_every_car_reports_each_second(events: int) -> None:
    reports = drives.car_reports(events, cars=70)
    assert np.array_equal(reports["ts"].to_numpy(), np.arange(events) // 70)
    cars = reports["car_id"].to_numpy()
    assert np.array_equal(cars[70:], cars[:-70])
    assert len(np.unique(cars)) == min(events, 70)
    assert cars.max() < 70


def test_motion_is_coherent() -> None:
    cars = 50
    reports = drives.car_reports(cars * 2_000, cars=cars, aggressive=0.3)
    position, mph, accel = (reports[name].to_numpy().reshape(-1, cars) for name in ("position", "speed", "accel"))
    speed = mph * 1609.344 / 3600
    assert np.allclose(np.diff(speed, axis=0), accel[:-1], atol=1e-9)
    assert np.allclose(np.diff(position, axis=0), (speed[1:] + speed[:-1]) / 2, atol=1e-6)
    assert speed.min() == 0
    assert speed.max() < 55
    assert np.abs(accel).max() < 13


def test_a_car_stands_accelerates_cruises_and_brakes() -> None:
    reports = drives.car_reports(50_000, cars=50)
    speed, accel = reports["speed"].to_numpy(), reports["accel"].to_numpy()
    shares = [np.mean((speed == 0) & (accel == 0)), np.mean(accel > 0.7), np.mean(accel < -0.7), np.mean((speed > 20) & (abs(accel) < 0.3))]
    assert min(shares) > 0.05


def test_aggressive_phases_pass_the_printed_thresholds() -> None:
    peaceful, rough = (drives.car_reports(100_000, cars=100, aggressive=share)["accel"].to_numpy() for share in (0, 0.3))
    assert peaceful.min() > drives.PRINTED.braking
    assert peaceful.max() < drives.PRINTED.acceleration
    assert np.mean(rough > drives.PRINTED.acceleration) > 0.01
    assert np.mean(rough < drives.PRINTED.braking) > 0.003


def test_percentiles_are_of_the_values_of_each_sign() -> None:
    values = np.arange(1.0, 102.0)
    reports = pa.table({"speed": np.tile(values, 2), "accel": np.concatenate([values, -values])})
    assert drives.percentiles(reports) == drives.Thresholds(acceleration=91, speed=100, braking=-91)


def test_a_million_reports_take_little_time() -> None:
    assert processor_seconds(lambda: drives.car_reports(1_000_000)) < 2


# Drawn situations


def runs_of(column: np.ndarray) -> list[tuple[int, int]]:
    """Where a column holds, half-open."""
    edges = np.flatnonzero(np.diff(column.astype(np.int8), prepend=0, append=0))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def test_situations_are_the_runs_of_the_columns() -> None:
    streams = [*situation_events.plain_streams(4), *situation_events.streams_of_occurrences()]
    events = situation_events.situation_events(20_000, streams)
    assert events.equals(situation_events.situation_events(20_000, streams))
    assert np.array_equal(events["ts"].to_numpy(), np.arange(20_000))
    for place, stream in enumerate(streams):
        starts, ends = situation_events.draw_situations(20_000, stream, place)
        assert runs_of(events[stream.name].to_numpy()) == list(zip(starts.tolist(), ends.tolist(), strict=True))


@pytest.mark.parametrize("count", [4, 10])
def test_lengths_are_uniform_in_their_bounds(count: int) -> None:
    streams = situation_events.plain_streams(count)
    assert [stream.name for stream in streams] == [f"S{number}" for number in range(1, count + 1)]
    drawn = [situation_events.draw_situations(100_000, stream, place) for place, stream in enumerate(streams)]
    durations = np.concatenate([(ends - starts)[:-1] for starts, ends in drawn])
    gaps = np.concatenate([starts[1:] - ends[:-1] for starts, ends in drawn])
    for lengths, low, high in ((durations, 10, 100), (gaps, 10, 50)):
        assert (lengths.min(), lengths.max()) == (low, high)
        assert lengths.mean() == pytest.approx((low + high) / 2, rel=0.03)
        assert lengths.std() == pytest.approx((high - low) / 12**0.5, rel=0.05)


def test_columns_are_independent_and_later_ones_change_nothing() -> None:
    events = situation_events.situation_events(200_000, situation_events.plain_streams(3))
    assert events.select(["ts", "S1"]).equals(situation_events.situation_events(200_000, situation_events.plain_streams(1)))
    assert np.abs(np.corrcoef([events[f"S{number}"].to_numpy() for number in (1, 2, 3)]) - np.eye(3)).max() < 0.05


def test_ratios_of_durations() -> None:
    for a, b in situation_events.DURATION_RATIOS:
        streams = situation_events.streams_of_durations(a, b)
        drawn = [situation_events.draw_situations(500_000, stream, place) for place, stream in enumerate(streams)]
        means = [np.mean(ends - starts) for starts, ends in drawn]
        assert means[0] == pytest.approx(55, rel=0.03)
        assert means[0] / means[1] == pytest.approx(a / b, rel=0.05)


def test_ratios_of_occurrences_change_after_thirds() -> None:
    third = 1_000_000
    streams = situation_events.streams_of_occurrences()
    assert [stream.name for stream in streams] == ["A", "B", "C"]
    starts = [situation_events.draw_situations(3 * third, stream, place)[0] for place, stream in enumerate(streams)]
    counts = np.array([np.bincount(own // third, minlength=3) for own in starts]).T
    for found, ratio in zip(counts, situation_events.OCCURRENCE_RATIOS, strict=True):
        assert found / found.max() == pytest.approx(np.array(ratio) / max(ratio), rel=0.15)
        assert found.max() == pytest.approx(third / 85, rel=0.03)


def test_a_million_events_of_ten_columns_take_little_time() -> None:
    streams = situation_events.plain_streams(10)
    assert processor_seconds(lambda: situation_events.situation_events(1_000_000, streams)) < 1


# Queries


def test_patterns_have_the_shapes_of_figure_6() -> None:
    assert shaped("equal", 4) == "S1 equals S2 AND S2 equals S3 AND S3 equals S4"
    assert shaped("chain", 6) == shaped("chain", 6) != shaped("chain", 6, run=1)
    related = {shape: [tuple(each.split()[::2]) for each in shaped(shape, 6).split(" AND ")] for shape in SHAPES}
    chain = [(f"S{left}", f"S{left + 1}") for left in range(1, 6)]
    assert related["equal"] == related["meets"] == related["chain"] == chain
    assert related["star"] == [("S1", f"S{right}") for right in range(2, 7)]
    assert related["combined"] == [*chain[:2], *(("S3", f"S{right}") for right in (4, 5, 6))]


def test_queries_parse() -> None:
    patterns = [DISCONNECTED, *PLANS.values()]
    texts = [query_of(pattern, "ABC", window) for pattern in patterns for window in situation_events.WINDOWS]
    texts += [query_of(f"A {relation} B", "AB", 1_000) for relation in (*SEQUENTIAL, *OVERLAPPING)]
    for shape, count in product(SHAPES, situation_events.STREAM_COUNTS):
        names = [stream.name for stream in situation_events.plain_streams(count)]
        texts.append(query_of(shaped(shape, count), names, 2_000))
    assert all(isinstance(gpu_cep.parse(text), IntervalQuery) for text in texts)


# The C++ loop


class Span(NamedTuple):
    """A situation by its definition, with the speeds of its events."""

    ts: int
    te: int
    speeds: list[float]


# Table 1 of the paper as printed.
TABLE_1: dict[str, Callable[[Span, Span], bool]] = {
    "before": lambda a, b: a.ts < a.te < b.ts < b.te,
    "starts": lambda a, b: a.ts == b.ts < a.te < b.te,
    "meets": lambda a, b: a.ts < a.te == b.ts < b.te,
    "overlaps": lambda a, b: a.ts < b.ts < a.te < b.te,
    "during": lambda a, b: b.ts < a.ts < a.te < b.te,
    "finishes": lambda a, b: a.ts < b.ts < a.te == b.te,
}


def related(a: Span, b: Span, *relations: str) -> bool:
    return any(TABLE_1[relation](a, b) for relation in relations)


def spans(reports: list[dict[str, Any]], holds: Callable[[dict[str, Any]], bool], bounds: tuple[int, int]) -> list[Span]:
    groups = [(holding, list(group)) for holding, group in groupby(reports, holds)]
    closed = [
        Span(group[0]["ts"], following[0]["ts"], [report["speed"] for report in group])
        for (holding, group), (_, following) in zip(groups, groups[1:], strict=False)
        if holding
    ]
    return [span for span in closed if span.te > span.ts and bounds[0] <= span.te - span.ts <= bounds[1]]


def matches_by_definition(reports: pa.Table, query: Any) -> Iterator[tuple[int, int, int, float]]:
    rows = reports.to_pylist()
    limits = query.thresholds
    for car in sorted({row["car_id"] for row in rows}):
        own = [row for row in rows if row["car_id"] == car]
        accelerating = spans(own, lambda row: row["accel"] > limits.acceleration, query.durations[0])
        speeding = spans(own, lambda row: row["speed"] > limits.speed, query.durations[1])
        braking = spans(own, lambda row: row["accel"] < limits.braking, query.durations[2])
        entered = [(a, b) for a, b in product(accelerating, speeding) if related(a, b, "meets", "overlaps", "starts", "during")]
        for (a, b), c in product(entered, braking):
            left = related(c, b, "during") or related(b, c, "finishes", "overlaps", "meets")
            start, end = min(a.ts, b.ts, c.ts), max(a.te, b.te, c.te)
            if left and related(a, c, "before") and end - start <= query.window:
                yield start, end, car, sum(b.speeds) / len(b.speeds)


def noisy_reports(seed: int) -> pa.Table:
    """Few values, so that every relation occurs; gaps and ties in time."""
    rng = np.random.default_rng(seed)
    size = 3_000
    held = np.repeat(rng.choice([-10.0, 0.0, 9.0], size), rng.integers(1, 4, size))[:size]
    speeds = np.repeat(rng.choice([60.0, 71.5, 80.25], size, p=[0.2, 0.4, 0.4]), 4)[:size]
    cars = rng.permutation(np.repeat(np.arange(3), size // 3)).astype(np.int32)
    order = np.argsort(np.argsort(cars, kind="stable"), kind="stable")
    ts = np.cumsum(rng.integers(0, 2, size))
    return pa.table({"ts": ts, "car_id": cars, "speed": speeds[order], "accel": held[order]})


def check(reports: pa.Table, cars: int, query: Any) -> int:
    expected = sorted(matches_by_definition(reports, query))
    count, rows = aggressive_drivers(reports, cars, query, rows=True)
    assert aggressive_drivers(reports, cars, query, rows=False) == (count, None)
    assert sorted(zip(*(column.to_pylist() for column in rows.columns), strict=True)) == expected
    assert count == len(expected)
    return count


@pytest.mark.parametrize("durations", [PRINTED_DURATIONS, ANY_DURATIONS], ids=["printed", "any"])
@pytest.mark.parametrize("window", [40, 300])
@pytest.mark.parametrize("seed", range(3))
def test_the_loop_finds_the_matches_of_noise(durations: Any, window: int, seed: int) -> None:
    assert check(noisy_reports(seed), 3, Listing1(durations=durations, window=window)) > 0


def test_the_loop_finds_the_matches_of_drives() -> None:
    reports = drives.car_reports(6_000, cars=20, aggressive=0.6)
    plain = Listing1(durations=ANY_DURATIONS)
    low = Listing1(drives.percentiles(reports), durations=ANY_DURATIONS)
    assert check(reports, 20, plain) > check(reports, 20, Listing1()) > 0
    assert check(reports, 20, low) > 0


def test_some_cars_drive_aggressively() -> None:
    count, _ = aggressive_drivers(drives.car_reports(1_000_000), drives.CARS, Listing1(), rows=False)
    assert 10 <= count <= 100


def test_reports_out_of_order_are_refused() -> None:
    reports = drives.car_reports(100, cars=10)
    with pytest.raises(ValueError, match="time order"):
        aggressive_drivers(reports.take(pa.array(range(99, -1, -1))), 10, Listing1(), rows=False)


def test_the_text_has_the_bounds() -> None:
    assert "CS.accel > 8 AT LEAST 5, B AS CS.speed > 70 BETWEEN 4 AND 30, C AS CS.accel < -9 AT LEAST 3 PATTERN" in Listing1().text
    assert "CS.accel > 8, B AS CS.speed > 70, C AS" in Listing1(durations=ANY_DURATIONS).text
    assert isinstance(gpu_cep.parse(Listing1().text), IntervalQuery)
