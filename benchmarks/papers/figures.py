"""What a paper's figure is here: points on an axis, ways to their matches, and what is shown of each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import pyarrow as pa

import gpu_cep
from gpu_cep.plan.settings import EVENT_ALGORITHMS

# Runs a query once more, with what else `gpu_cep.match` is to be given.
Run = Callable[..., pa.Table]


def by_match(events: pa.Table, query: str, options: Mapping[str, Any]) -> Run:
    """Return one call of `gpu_cep.match`; the text is parsed ahead."""
    return partial(gpu_cep.match, events, gpu_cep.parse(query), **options)


def number_of_rows(found: pa.Table, events: pa.Table, query: str) -> int:
    return int(found.num_rows)


def sum_of_counts(found: pa.Table, events: pa.Table, query: str) -> int:
    return sum(found["count"].to_pylist())


@dataclass(frozen=True, slots=True)
class Way:
    """One way to the matches: how it is prepared and run, with which keywords of `gpu_cep.match`, and how its result is counted."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    prepare: Callable[[pa.Table, str, Mapping[str, Any]], Run] = by_match
    count: Callable[[pa.Table, pa.Table, str], int] = number_of_rows


@dataclass(frozen=True, slots=True)
class Point:
    """A place on the axis: its queries, all over the first `events` events of `stream`; `options` are those of every way."""

    x: int | str
    queries: tuple[str, ...]
    stream: Callable[[int], pa.Table]
    events: int
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Panel:
    """One plot of a figure. All ways find the same matches; the first is what the others are compared with."""

    title: str
    axis: str
    points: tuple[Point, ...]
    ways: tuple[Way, ...]


@dataclass(frozen=True)
class Experiment:
    """Panels that are measured once, for one figure or several; `draw` returns them.

    `meters` names what is measured beside the time: ``steps``, ``peak``.
    """

    name: str
    draw: Callable[[], tuple[Panel, ...]]
    meters: tuple[str, ...] = ()

    @cached_property
    def panels(self) -> tuple[Panel, ...]:
        """Return the panels, drawn when they are asked for first: some queries are drawn with their events, which takes seconds."""
        return self.draw()


@dataclass(frozen=True, slots=True)
class Figure:
    """What of an experiment is shown: a measure of :data:`paper_runs.MEASURES`.

    `paper` is what the paper's figure shows, `ours` where ours differs, and
    why; neither may depend on one run's numbers. `growth` adds how the first way's
    measure changes from the first point on; `ratios` plots the ratios instead of the measure; `panels` are those that are shown, where
    not all are.
    """

    name: str
    title: str
    experiment: Experiment
    measure: str
    paper: str
    ours: str
    growth: bool = False
    ratios: bool = False
    logarithmic: bool = True
    panels: tuple[str, ...] = ()

    @property
    def shown(self) -> tuple[Panel, ...]:
        return tuple(panel for panel in self.experiment.panels if not self.panels or panel.title in self.panels)


def algorithms(first: str = "ses_automaton", without: Collection[str] = ()) -> tuple[Way, ...]:
    """Return every algorithm that a query can be answered with, but for the definition itself, which is for small input."""
    names = [name for name in EVENT_ALGORITHMS if name not in ("auto", "brute_force", *without)]
    return tuple(Way(name, {"algorithm": name}) for name in sorted(names, key=lambda name: name != first))
