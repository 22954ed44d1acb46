"""Choose the engine of a run, for which engines may be tried on its first events, and time runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from gpu_cep.engine.accounting.profile import UNREAD
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.input.input_events import Origin
from gpu_cep.engine.input.picked_rows import PickedRows
from gpu_cep.engine.input.read_tables import is_resident, to_host
from gpu_cep.engine.lowering.pattern_tables import matcher_tables
from gpu_cep.engine.phase_one.computed_columns import event_columns
from gpu_cep.engine.phase_one.engine_choice import Choice, choose_engine
from gpu_cep.engine.phase_one.run import EventRun, PhaseOne
from gpu_cep.records import record

clock = time.perf_counter

Found = TypeVar("Found")

# Finds what a run looks for, up to the result table, with the engine of a choice; returns its phase 1, too.
Find = Callable[[EventRun, Choice], tuple[PhaseOne, Found]]


def find_timed(run: EventRun, find: Find[Found], tried: Find[Found]) -> tuple[PhaseOne, Found]:
    """Return what `find` finds with the engine that is chosen for the run, and remember what it took.

    Where that is worth its time, engines are `tried` on the first events before.

    Raises
    ------
    EngineUnavailable
        The plan asks for the GPU, and it cannot be used.
    """
    columns = run.columns
    chosen = choose_engine(
        run.plan, len(columns), threads=run.threads, resident=is_resident(columns.table), measure=Trial(run, tried).seconds
    )  # fmt: skip
    begin = clock()
    first, found = find(run, chosen)
    # unless the CPU took over from the device
    if chosen.rates is not None and first.device is chosen.device:
        chosen.rates.record(chosen.way, len(columns), clock() - begin)
    return first, found


@record()
class Trial:
    """Tries engines on the first events of a run; what they find is let go."""

    run: EventRun
    find: Find[Any]

    def seconds(self, choice: Choice, events: int) -> float | None:
        """Return the seconds that so many events take in the way of `choice`; None if its device could not answer.

        Raises
        ------
        CepError
            The events are at fault, or have too many matches.
        """
        with self.run.profile.stage("trial"):
            part = first_events(self.run, events)
            begin = clock()
            first, _ = self.find(part, choice)
            seconds = clock() - begin
        return seconds if first.device is choice.device else None


def first_events(run: EventRun, events: int) -> EventRun:
    """Return a run over the first rows of another, which counts by itself."""
    columns = _first_rows(run, events)
    tables, budget = matcher_tables(run.plan, columns), replace(run.budget)
    return replace(run, columns=columns, tables=tables, budget=budget, profile=UNREAD, borders=None)


def _first_rows(run: EventRun, events: int) -> EventColumns:
    """Return the columns of the first rows, converted anew."""
    columns = run.columns
    table, numbers = columns.table, columns.numbers
    rows = table.first_rows(events) if isinstance(table, PickedRows) else to_host(table).slice(0, events)
    return event_columns(run.plan, rows, Origin(columns.types, None if numbers is None else numbers[:events]))
