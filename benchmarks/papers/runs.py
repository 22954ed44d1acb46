"""Measuring an experiment: every way of every point, in one process, turn by turn.

Times are CPU times: what else the machine does bears on them least.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

import gpu_cep
from benchmarks.baselines.measure import Disagreement
from benchmarks.papers.figures import Experiment, Panel, Point, Way
from gpu_cep.errors import UnsupportedError

OPTIONS = {"output": "indices", "threads": 1}


@dataclass(frozen=True, slots=True)
class Measurement:
    """One way at one point: the least CPU time of all its queries, the events they read, and what a run's profile counted.

    `bound` is the number of events that all matches bind, each counted for every match. `steps` are those that `max_steps`
    bounds, `peak` the bytes of NumPy's arrays at their most; None where that was not asked for.
    """

    experiment: str
    panel: str
    x: int | str
    way: str
    events: int
    matches: int
    bound: int
    seconds: float
    counts: dict[str, int] = field(default_factory=dict)
    steps: int | None = None
    peak: int | None = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """A way that does not run a panel's queries, and the error's reason."""

    experiment: str
    panel: str
    way: str
    reason: str


def measure(experiment: Experiment, rounds: int, patience: float) -> Iterator[Measurement | Refusal]:
    """Yield all measurements of an experiment.

    Each point's ways take turns, at least `rounds` times, and until `patience` seconds are spent.
    """
    for panel in experiment.panels:
        ways, refusals = _able(experiment, panel)
        yield from refusals
        for point in panel.points:
            yield from _measure_point(experiment, panel, point, ways, rounds, patience)


def _able(experiment: Experiment, panel: Panel) -> tuple[list[Way], list[Refusal]]:
    """Return the ways that run the panel's queries, tried on no events."""
    able, refusals = [], []
    point = panel.points[0]
    for way in panel.ways:
        try:
            for query in point.queries:
                prepared(way, point, point.stream(2).slice(0, 0), query)()
        except UnsupportedError as error:
            refusals.append(Refusal(experiment.name, panel.title, way.name, str(error).splitlines()[0]))
        else:
            able.append(way)
    return able, refusals


def prepared(way: Way, point: Point, events: pa.Table, query: str) -> Callable[..., pa.Table]:
    return way.prepare(events, query, OPTIONS | dict(point.options) | dict(way.options))


def _measure_point(
    experiment: Experiment, panel: Panel, point: Point, ways: list[Way], rounds: int, patience: float
) -> Iterator[Measurement]:
    events = point.stream(point.events)
    runs = {way.name: [prepared(way, point, events, query) for query in point.queries] for way in ways}
    matches, bound, counts = {}, {}, {}
    for way in ways:
        profile = gpu_cep.Profile()
        tables = [run(profile=profile) for run in runs[way.name]]
        matches[way.name] = [way.count(found, events, query) for found, query in zip(tables, point.queries, strict=True)]
        bound[way.name] = sum(map(_bound_events, tables))
        counts[way.name] = dict(profile.counts)
    if len({tuple(found) for found in matches.values()}) > 1:
        raise Disagreement(f"{experiment.name}, {panel.title}, {point.x}: {matches}")
    seconds = _best_seconds(runs, rounds, patience)
    for way in ways:
        yield Measurement(
            experiment.name,
            panel.title,
            point.x,
            way.name,
            point.events * len(point.queries),
            sum(matches[way.name]),
            bound[way.name],
            seconds[way.name],
            counts[way.name],
            counts[way.name].get("steps", 0) if "steps" in experiment.meters else None,
            max(_peak_bytes(run) for run in runs[way.name]) if "peak" in experiment.meters else None,
        )


def _bound_events(found: pa.Table) -> int:
    """Return the events in a table of row numbers; none in one of counts."""
    if "count" in found.column_names:
        return 0
    lists = [column for column in found.columns if pa.types.is_large_list(column.type) or pa.types.is_list(column.type)]
    listed = sum(int(pc.sum(pc.list_value_length(column)).as_py() or 0) for column in lists)
    return listed + int(found.num_rows) * (int(found.num_columns) - len(lists))


def _best_seconds(runs: Mapping[str, list[Callable[..., pa.Table]]], rounds: int, patience: float) -> dict[str, float]:
    """Return the least CPU time of all queries of each way; the ways take turns."""
    seconds = dict.fromkeys(runs, float("inf"))
    number, end = 0, time.perf_counter() + patience
    while number < rounds or time.perf_counter() < end:
        number += 1
        for name, queries in runs.items():
            start = time.process_time()
            for run in queries:
                run()
            seconds[name] = min(seconds[name], time.process_time() - start)
    return seconds


def _peak_bytes(run: Callable[..., pa.Table]) -> int:
    tracemalloc.start()
    try:
        run()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _per(amount: float | None, number: int) -> float | None:
    return None if amount is None or not number else amount / number


def _instances(each: Measurement) -> int | None:
    """Return the nodes of NFA^b's buffer, the rare events that a lazy automaton begins with, or the windows that another one walks."""
    found = [each.counts[name] for name in ("nodes", "pivots", "candidates") if name in each.counts]
    return found[0] if found else None


# What a figure shows of a measurement, and its unit; None where the way has no such thing.
MEASURES: dict[str, Callable[[Measurement], float | None]] = {
    "events/s": lambda each: each.events / each.seconds,
    "seconds": lambda each: each.seconds,
    "ns/bound event": lambda each: _per(1e9 * each.seconds, each.bound),
    "peak MiB": lambda each: _per(each.peak, 2**20),
    "instances": _instances,
    "instances/event": lambda each: _per(_instances(each), each.events),
    "instances/match": lambda each: _per(_instances(each), each.matches),
    "seconds gained/match": lambda each: _per(each.counts.get("gained"), each.matches),
    "steps/event": lambda each: _per(each.steps, each.events),
    "steps/match": lambda each: _per(each.steps, each.matches),
}
