"""Say what each NOT is about: its events, and its scope (:mod:`gpu_cep.engine.lowering.scopes`).

Kernels judge a NOT by this table (:mod:`gpu_cep_kernels.rules.negation`). When they do,
:mod:`gpu_cep.engine.matchers.negation_schedule` says.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from gpu_cep.engine.events.batches import window_clock
from gpu_cep.engine.events.label_words import Words
from gpu_cep.engine.events.matches import Indices, concatenate_arrays
from gpu_cep.engine.events.ordered_events import OrderedEvents
from gpu_cep.engine.input.buffers import new_values
from gpu_cep.engine.lowering.lists import offsets
from gpu_cep.engine.lowering.pattern_tables import MatcherTables
from gpu_cep.engine.lowering.scopes import scope_fields
from gpu_cep.engine.matchers.negation_keys import Windows, negation_keys
from gpu_cep.plan.event_plan import EventPlan
from gpu_cep_kernels.compile.launch import slices, spread
from gpu_cep_kernels.device.primitives import marked_events
from gpu_cep_kernels.phase_one.kept_rows import SPARE
from gpu_cep_kernels.phase_one.window_conditions import select_starts
from gpu_cep_kernels.rules.tables import NegationKeys, NegationTable


def negated_events(plan: EventPlan, ordered: OrderedEvents, threads: int = 1) -> dict[int, Indices]:
    """Return, by negated variable's number, the ordered events that satisfy its properties (ascending), found by `threads`."""
    negated = (v for v, variable in enumerate(plan.query.variables) if variable.negated)
    return {v: _labelled_events(ordered.labels, v, threads) for v in negated}


def _labelled_events(labels: Words, v: int, threads: int) -> Indices:
    """Return the events whose label has the bit of variable v, ascending."""

    def select(span: tuple[int, int]) -> Indices:
        low, high = span
        found = new_values(high - low + SPARE, np.int64)
        events = found[: select_starts(marked_events(labels[:, low:high], 1 << v), found)]
        events += low
        return events

    parts = spread(select, slices(labels.shape[1], threads), threads)
    return concatenate_arrays([np.empty(0, np.int64), *parts], threads) if len(parts) != 1 else parts[0]


def negation_table(plan: EventPlan, ordered: OrderedEvents, tables: MatcherTables, events: Mapping[int, Indices]) -> NegationTable:
    """Return the negations of a branch over all ordered events, as kernels read them.

    `events` are those of :func:`negated_events`.
    """
    branch, size = tables.branch, len(ordered.times)
    negations = branch.negations
    if not negations:
        return _no_negations(ordered.times.dtype)
    windows = Windows(*window_clock(plan, ordered, 0, size), ordered.offsets)
    listed = [events[branch.variables[negation.variable]] for negation in negations]
    places = listed[0] if len(listed) == 1 else np.concatenate(listed)
    return NegationTable(
        **scope_fields(branch),
        place_first=offsets([len(own) for own in listed]),
        places=places,
        keys=negation_keys(listed, places, tables, ordered.bank, windows),
        streams=windows.streams,
        times=ordered.times[: size if plan.query.ties == "strict" else 0],
        clock=windows.clock,
        length=windows.length,
    )


@cache
def _no_negations(times: np.dtype[Any]) -> NegationTable:
    """Return the table of a branch without negations, over events with times of a type."""
    variable, numbers, clock = np.empty(0, np.uint16), np.empty(0, np.int64), np.empty(0, times)
    first = np.zeros(1, np.int64)
    keys = NegationKeys(numbers, numbers, first, first, numbers)
    return NegationTable(variable, first, numbers, keys, first, numbers, first, numbers, first, clock, clock, times.type(0))
