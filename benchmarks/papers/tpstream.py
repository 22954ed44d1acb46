"""TPStream's figures 5 to 8 (section 6)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from itertools import permutations
from typing import Any

import pyarrow as pa

import gpu_cep
from benchmarks.baselines.interval_peer import ANY_DURATIONS, Listing1
from benchmarks.papers.figures import Experiment, Figure, Panel, Point, Run, Way, sum_of_counts
from benchmarks.workloads import drives
from benchmarks.workloads.situation_events import (
    DURATION_RATIOS,
    OCCURRENCE_RATIOS,
    STREAM_COUNTS,
    WINDOWS,
    SituationStream,
    plain_streams,
    situation_events,
    streams_of_durations,
    streams_of_occurrences,
)
from benchmarks.workloads.situation_queries import DISCONNECTED, OVERLAPPING, PLANS, SEQUENTIAL, SHAPES, query_of, shaped
from gpu_cep.engine.accounting.resources import Resources
from gpu_cep.engine.answers import answer
from gpu_cep.engine.intervals.situations import DerivedSituations
from gpu_cep.keywords import make_options
from gpu_cep.plan.interval_order import OrderChoice, assume_statistics
from gpu_cep.plan.interval_plan import IntervalPlan
from gpu_cep.plan.settings import Settings
from gpu_cep.queries.plans import make_plan

COUNTING = {"output": "count"}
REPORTS = (1_000_000, 2_000_000, 5_000_000, 10_000_000)  # of 100 M
DRAWN = 1_000_000  # of 300 M
ROWS_WINDOWS = WINDOWS[:6]
SHAPED, RUNS, SHAPED_WINDOW = 500_000, 10, 2_000  # of 50 M events and 100 runs
LATENCY, LATENCY_WINDOW = 300_000, 1_000
PLANNED, PLANNED_WINDOW = 300_000, 5_000
PHASE, ADAPTED_WINDOW = 1_000_000, 10_000  # of 100 M events


def _counting(*names: str) -> tuple[Way, ...]:
    return tuple(Way(name, COUNTING | {"algorithm": name}, count=sum_of_counts) for name in names)


def _returning(*names: str) -> tuple[Way, ...]:
    return tuple(Way(name, {"output": "matches", "algorithm": name}) for name in names)


@cache
def _all_reports() -> pa.Table:
    return drives.car_reports(max(REPORTS))


def reports(events: int) -> pa.Table:
    """Return the first reports of one drive."""
    return _all_reports().slice(0, events)


@cache
def drawn(streams: tuple[SituationStream, ...], events: int) -> pa.Table:
    return situation_events(events, streams)


ABC = tuple(SituationStream(name) for name in "ABC")


def _drivers() -> Panel:
    text = Listing1(drives.percentiles(_all_reports()), ANY_DURATIONS).text
    points = tuple(Point(events, (text,), reports, events) for events in REPORTS)
    return Panel("Listing 1", "reports", points, _counting("range_join", "end_join", "nested_loop"))


def _disconnected(title: str, windows: Sequence[int], ways: tuple[Way, ...], returned: str = "") -> Panel:
    stream = partial(drawn, ABC)
    points = tuple(Point(window, (query_of(DISCONNECTED, "ABC", window) + returned,), stream, DRAWN) for window in windows)
    return Panel(title, "window, s", points, ways)


def _shape(shape: str) -> Panel:
    def point(count: int) -> Point:
        names = [f"S{number}" for number in range(1, count + 1)]
        runs = range(1 if shape in ("equal", "meets") else RUNS)
        texts = tuple(query_of(shaped(shape, count, run), names, SHAPED_WINDOW) for run in runs)
        return Point(count, texts, partial(drawn, plain_streams(count)), SHAPED)

    return Panel(shape, "situations", tuple(map(point, STREAM_COUNTS)), _counting("range_join", "end_join"))


def gained(events: pa.Table, query: str, options: Mapping[str, Any]) -> Run:
    """Return matches both ways; the profile counts by how many seconds those that end were detected earlier."""
    returning = f"{query} RETURN start(A) AS a, start(B) AS b"

    def run(profile: gpu_cep.Profile | None = None) -> pa.Table:
        final, early = (gpu_cep.match(events, returning, detect=mode, threads=1) for mode in ("final", "early"))
        both = final.join(early.select(["a", "b", "detected_at"]), ["a", "b"], right_suffix=" early", join_type="inner")
        assert both.num_rows == final.num_rows, "what ends was detected early"
        if profile is not None:
            profile.add("gained", sum(both["detected_at"].to_pylist()) - sum(both["detected_at early"].to_pylist()))
        return final

    return run


def _gain(relation: str) -> Panel:
    text = query_of(f"A {relation} B", "AB", LATENCY_WINDOW)
    points = tuple(Point(f"{a}:{b}", (text,), partial(drawn, streams_of_durations(a, b)), LATENCY) for a, b in DURATION_RATIOS)
    return Panel(relation, "mean duration of A : of B", points, (Way("early", prepare=gained),))


class FixedOrder(OrderChoice):
    """Always the same order."""

    fixed: tuple[int, ...] = ()

    def order(self, buffers: Sequence[float]) -> tuple[int, ...]:
        return self.fixed


def _fixed(order: tuple[int, ...], plan: IntervalPlan, derived: DerivedSituations) -> OrderChoice:
    choice = FixedOrder(plan.query.constraints, assume_statistics(plan.query.constraints, [1.0] * len(order)))
    choice.fixed = order
    return choice


def in_order(order: tuple[int, ...]) -> Callable[[pa.Table, str, Mapping[str, Any]], Run]:
    """Prepares a run that joins names in one order."""

    def prepare(events: pa.Table, query: str, options: Mapping[str, Any]) -> Run:
        settings = Settings(output="count")
        plan = make_plan(query, events.schema, make_options(), settings)
        assert isinstance(plan, IntervalPlan)

        def run(**keywords: Any) -> pa.Table:
            return answer(plan, events, resources=Resources(1, **keywords), choose_order=partial(_fixed, order))

        return run

    return prepare


def _orders() -> tuple[Way, ...]:
    """Return a way for the order that is chosen, and one for each other."""
    fixed = (Way("".join("ABC"[v] for v in order), prepare=in_order(order), count=sum_of_counts) for order in permutations(range(3)))
    return (*(Way("chosen", COUNTING, count=sum_of_counts),), *fixed)


def _plans() -> Panel:
    points = tuple(Point(name, (query_of(text, "ABC", PLANNED_WINDOW),), partial(drawn, ABC), PLANNED) for name, text in PLANS.items())
    return Panel("plans", "query", points, _orders())


def _adaption() -> Panel:
    text = query_of(PLANS["Q3"], "ABC", ADAPTED_WINDOW)
    phases = {":".join(map(str, ratio)): (ratio,) for ratio in OCCURRENCE_RATIOS} | {"one after the other": OCCURRENCE_RATIOS}
    points = tuple(Point(name, (text,), partial(drawn, streams_of_occurrences(ratios)), PHASE) for name, ratios in phases.items())
    return Panel("Q3", "occurrences of A:B:C", points, _orders())


FIGURES = (
    Figure(
        "tpstream-5ab",
        "Aggressive drivers",
        Experiment("tpstream-drivers", lambda: (_drivers(),)),
        "seconds",
        "Time grows linearly with the reports; TPStream and ISEQ are alike, since all situations of the pattern overlap and a scan by "
        "end stops early.",
        "Linear, and alike, for the same reason, and because nearly all of the time goes into deriving situations, which is the same for "
        "all. A car has few situations, so that trying all of them costs little more.",
        growth=True,
    ),
    Figure(
        "tpstream-5c",
        "A before B overlaps C, by window",
        Experiment(
            "tpstream-disconnected",
            lambda: (
                _disconnected("counted", WINDOWS, _counting("range_join", "end_join")),
                _disconnected("returned", ROWS_WINDOWS, _returning("range_join", "end_join"), " RETURN start(A) AS a, end(C) AS c"),
            ),
        ),
        "seconds",
        "TPStream is faster than ISEQ by up to 14 ×, in the longest window; both take longer with the matches.",
        "The same: a scan by end tries all pairs of B and C in the window, a search by ranges only those that overlap. Where matches are "
        "returned, building them is most of the time, for either.",
    ),
    Figure(
        "tpstream-6",
        "Patterns of 4 to 10 situations",
        Experiment("tpstream-shapes", lambda: tuple(map(_shape, SHAPES))),
        "seconds",
        "The median grows linearly with the situations; random patterns with several `before` in a row take much longer.",
        f"Sums of {RUNS} random patterns of each size, so that those with many matches weigh most; equals and meets are one query each. "
        "The relations of the paper's runs are lost, and ours are others.",
    ),
    Figure(
        "tpstream-7a",
        "How much earlier matches are detected",
        Experiment("tpstream-latency", lambda: tuple(map(_gain, (*SEQUENTIAL, *OVERLAPPING)))),
        "seconds gained/match",
        "Before and meets gain the mean duration of B; the others what is left of B when A ends, at worst half of B's duration.",
        "The same. Wall-clock latency (figure 7 b and c) has no meaning for a table that is there as a whole.",
        logarithmic=False,
    ),
    Figure(
        "tpstream-8a",
        "Orders of evaluation",
        Experiment("tpstream-plans", lambda: (_plans(),)),
        "seconds",
        "The suggested plan is the best one for Q1 and Q2, and next to it for Q3.",
        "Orders that begin with names no constraint relates are among the six. Choosing costs a sample of each constraint's pairs.",
        ratios=True,
    ),
    Figure(
        "tpstream-8b",
        "When occurrences change",
        Experiment("tpstream-adaption", lambda: (_adaption(),)),
        "seconds",
        "Each fixed order loses in one of the phases; the adaptive one is always near the best.",
        "The order is chosen anew from part to part of the stream, by what the parts before measured.",
        ratios=True,
    ),
)
