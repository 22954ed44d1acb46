"""Choose the engine of a run, for which engines may be tried on its first events, and time runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol, TypeVar

from gpu_cep.engine.accounting.profile import UNREAD
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.input.input_events import Origin
from gpu_cep.engine.input.picked_rows import PickedRows
from gpu_cep.engine.input.read_tables import is_resident, to_host
from gpu_cep.engine.lowering.pattern_tables import matcher_tables
from gpu_cep.engine.phase_one.computed_columns import event_columns
from gpu_cep.engine.phase_one.engine_choice import EngineChoice, choose_engine
from gpu_cep.engine.phase_one.run import EventRun, IntervalRun
from gpu_cep.records import record
from gpu_cep_kernels.device.interface import Device

clock = time.perf_counter


class EngineResult(Protocol):
    """What a run has found, and the `device` that found it (None: the CPU)."""

    @property
    def device(self) -> Device | None:
        """Return the device."""


RunT = TypeVar("RunT", EventRun, IntervalRun)
Found = TypeVar("Found", bound=EngineResult)

# Finds what a run looks for, up to the result table, with the engine of a choice.
Find = Callable[[RunT, EngineChoice], Found]


def find_timed(run: RunT, find: Find[RunT, Found], tried: Find[RunT, Found]) -> Found:
    """Return what `find` finds with the engine that is chosen, and remember how long that took.

    Where measuring pays, `tried` runs on the first events with each engine before the choice.

    Raises
    ------
    EngineUnavailable
        The plan asks for the GPU, and it cannot be used.
    """
    columns = run.columns
    chosen = choose_engine(
        run.plan, len(columns), threads=run.threads, resident=is_resident(columns.table), measure=EngineTrial(run, tried).seconds
    )  # fmt: skip
    begin = clock()
    found = find(run, chosen)
    # unless the CPU took over from the device
    if chosen.rates is not None and found.device is chosen.device:
        chosen.rates.record(chosen.way, len(columns), clock() - begin)
    return found


@record()
class EngineTrial:
    """Tries engines on the first events of a run, and drops what they find."""

    run: EventRun | IntervalRun
    find: Callable[[Any, EngineChoice], EngineResult]

    def seconds(self, choice: EngineChoice, events: int) -> float | None:
        """Return the seconds that so many events take in the way of `choice`; None if its device could not answer.

        Raises
        ------
        CepError
            The events are at fault, or have too many matches.
        """
        with self.run.profile.stage("trial"):
            part = first_events(self.run, events)
            begin = clock()
            found = self.find(part, choice)
            seconds = clock() - begin
        return seconds if found.device is choice.device else None


def first_events(run: EventRun | IntervalRun, events: int) -> EventRun | IntervalRun:
    """Return a run over the first rows of another, which counts by itself."""
    columns = _first_rows(run, events)
    part = replace(run, columns=columns, budget=replace(run.budget), profile=UNREAD)
    if not isinstance(part, EventRun):
        return part
    return replace(part, tables=matcher_tables(part.plan, columns), reported=replace(part.reported, borders=None))


def _first_rows(run: EventRun | IntervalRun, events: int) -> EventColumns:
    """Return the columns of the first rows, converted anew."""
    columns = run.columns
    table, numbers = columns.table, columns.numbers
    rows = table.first_rows(events) if isinstance(table, PickedRows) else to_host(table).slice(0, events)
    return event_columns(run.plan, rows, Origin(columns.types, None if numbers is None else numbers[:events]), threads=run.threads)
