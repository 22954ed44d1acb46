"""Derive situations on a device, and choose where they are joined.

Labelled events are ordered and searched for borders there. Only the runs, which are few, come back.
"""

from __future__ import annotations

import numpy as np

from gpu_cep.engine.events.event_sequence import EventSequence, as_signed
from gpu_cep.engine.intervals.borders import EventPart, borders_of_part, concatenate_borders
from gpu_cep.engine.intervals.join import SituationWorkplace, cpu_workplace
from gpu_cep.engine.intervals.situations import DerivedSituations, SituationRuns, derive_from_runs, lasting_runs
from gpu_cep.engine.phase_one.device.card_memory import DeviceMemory
from gpu_cep.engine.phase_one.device.device_run import DeviceRun
from gpu_cep.engine.phase_one.device.event_sources import EventSource
from gpu_cep.engine.phase_one.device.label_and_order import label_and_order
from gpu_cep.plan.interval_plan import IntervalPlan
from gpu_cep_kernels.compile.launch import blocks
from gpu_cep_kernels.device.interface import HOST, Device
from gpu_cep_kernels.intervals.situations import SituationBorders

# The situations of a chunk, and the most candidates that one call tests: enough to keep a card busy.
_CHUNK, _CANDIDATES = 1 << 20, 1 << 22


def derive_on_device(plan: IntervalPlan, run: DeviceRun, memory: DeviceMemory) -> DerivedSituations:
    """Return all situations that a match may take, found on the device.

    Events or borders for which the device has no room are sent to the host.

    Raises
    ------
    EventError
        The events are at fault.
    """
    source = label_and_order(run, memory)
    with run.profile.stage("situations"):
        derived = derive_from_runs(plan, *_all_runs(plan, run.device, source, memory))
    run.profile.add("situations", len(derived.runs.stream))
    return derived


def device_workplace(run: DeviceRun, derived: DerivedSituations, memory: DeviceMemory) -> SituationWorkplace:
    """Return the device as the workplace if situations and join fit beside the resident events, else the CPU."""
    resident = 0 if derived.events.place is HOST else len(derived.events)
    candidates = memory.joined_candidates(resident, len(derived.runs.stream))
    return SituationWorkplace(run.device, _CHUNK, min(_CANDIDATES, candidates), 1) if candidates else cpu_workplace(run.threads)


def _all_runs(plan: IntervalPlan, device: Device, source: EventSource, memory: DeviceMemory) -> tuple[EventSequence, SituationRuns]:
    """Return the events and their runs.

    Borders are paired on the device if it has room for events and borders, else on the host.
    """
    room, on_host = memory.paired_borders(source.resident), not source.resident
    kept: list[SituationBorders] = []
    spilled: list[SituationBorders] = []
    for low, high in list(blocks(0, int(source.offsets[-1]), memory.sought_events(source.resident))) or [(0, 0)]:
        kept.append(_borders_of(plan, device, source, low, high))
        on_host = on_host or sum(len(borders.position) for borders in kept) > room
        if on_host:
            spilled += [SituationBorders(*(device.download(column) for column in borders)) for borders in kept]
            kept.clear()
    events = source.fetch() if on_host else source.sequence()
    borders = concatenate_borders(np, spilled) if on_host else concatenate_borders(device.xp, kept)
    return events, lasting_runs(plan, events, borders)


def _borders_of(plan: IntervalPlan, device: Device, source: EventSource, low: int, high: int) -> SituationBorders:
    """Return the borders at the events [low, high), then those behind streams that end there with open runs."""
    # whether a run goes on at event `low` depends on the event before it
    begin = max(0, low - 1)
    times, (labels,) = source.part(begin, high)
    return borders_of_part(plan, device, EventPart(source.offsets, as_signed(times), labels, begin, low))
