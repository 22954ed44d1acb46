"""Drop, for many families at once, the rows that lie in no window with as many rows as a match has events.

All events of a match, and those that its negations ask for, lie in one window. A row with too few
others near it is of no use to any member of any family. One ordering tells that for all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import frexp
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gpu_cep.analysis.bound import TimeWindow
from gpu_cep.engine.accounting.profile import Profile
from gpu_cep.engine.events.batches import window_length
from gpu_cep.engine.events.ordered_events import OrderedEvents
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.rule_sets.families import Family
from gpu_cep.engine.rule_sets.ordered_rows import order_chosen_rows, times_at
from gpu_cep.engine.rule_sets.row_lists import Rows
from gpu_cep.plan.event_plan import BankLayout, EventPlan
from gpu_cep_kernels.compile.launch import over_slices
from gpu_cep_kernels.phase_one.windows import WindowLimits, mark_crowded

# Windows are of one scale if the exponents of their lengths, divided by this, agree: none is eight times as long as another.
_EXPONENTS = 3


class Neighbourhood(NamedTuple):
    """What families have in common whose rows are ordered at once: their streams and timestamps."""

    stream_keys: tuple[int, ...]
    timestamp: int


def neighbourhood(family: Family) -> Neighbourhood | None:
    """Return the neighbourhood of a family's events; None if each may be a match by itself, or no time bounds a match."""
    plan = family.plan
    if not isinstance(plan.query.window, TimeWindow) or _fewest_events(plan) < 2:
        return None
    return Neighbourhood(plan.stream_keys, plan.query.timestamp)


def _fewest_events(plan: EventPlan) -> int:
    """Return the least number of events of a match."""
    return min(sum(plan.query.variables[v].minimum for v in branch.positives) for branch in plan.branches)


def mark_crowded_rows(
    families: Sequence[Family], columns: EventColumns, rows: Rows, threads: int, profile: Profile
) -> Iterator[tuple[list[int], npt.NDArray[np.bool_]]]:  # fmt: skip
    """Yield numbers of families whose windows are of one scale, and which rows of all are of use to some of these.

    The families have one neighbourhood. `rows` are those that some of their members may bind, ascending. `profile`
    receives the counts and seconds of each stage.
    """
    plan = families[0].plan
    # of events that tie, any order will do
    planned = replace(plan, layout=BankLayout(), query=replace(plan.query, order_by=()))
    times, missing = times_at(columns, planned.query.timestamp, rows)
    rows, times = rows[~missing], times[~missing]
    _, ordered = order_chosen_rows(planned, columns, rows, np.ones(len(rows), np.uint64), times, threads, profile)
    lengths = [window_length(family.plan, ordered.times.dtype) for family in families]
    of_scale: dict[int, list[int]] = {}
    for number, length in enumerate(lengths):
        of_scale.setdefault(frexp(length)[1] // _EXPONENTS, []).append(number)
    for numbers in of_scale.values():
        with profile.stage("windows"):
            fewest = min(_fewest_events(families[number].plan) for number in numbers)
            crowded = _crowded(ordered, max(lengths[number] for number in numbers), fewest, threads)
        marks = np.zeros(len(columns), np.bool_)
        marks[rows[ordered.rows[crowded]]] = True
        yield numbers, marks


def _crowded(ordered: OrderedEvents, length: np.generic, fewest: int, threads: int) -> npt.NDArray[np.bool_]:
    """Return which events lie in a window of a length that holds at least `fewest` events."""
    stream_end = np.repeat(ordered.offsets[1:].astype(np.int32), np.diff(ordered.offsets))
    limits, crowded = WindowLimits(ordered.times, stream_end, length), np.empty(len(ordered.rows), np.bool_)
    over_slices(mark_crowded, len(crowded), threads, fewest, limits, crowded)
    return crowded
