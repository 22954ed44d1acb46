"""Derive situations on a device, and choose where they are joined.

Labelled events are ordered and searched for borders there. Only the runs, which are few, come back.
"""

from __future__ import annotations

import numpy as np

from gpu_cep.engine.events.event_sequence import EventSequence, as_signed
from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.intervals.borders import closing_borders, concatenate_borders, gap_limit
from gpu_cep.engine.intervals.join import Workplace, cpu_workplace
from gpu_cep.engine.intervals.situations import Derived, Runs, derive_from_runs, lasting_runs
from gpu_cep.engine.phase_one.device.card_memory import DeviceMemory
from gpu_cep.engine.phase_one.device.device_run import DeviceRun
from gpu_cep.engine.phase_one.device.event_sources import EventSource
from gpu_cep.engine.phase_one.device.on_device import label_and_order
from gpu_cep.plan.interval_plan import IntervalPlan
from gpu_cep_kernels.compile.launch import blocks
from gpu_cep_kernels.device.interface import HOST, Array, Device
from gpu_cep_kernels.intervals.situations import Borders, cross_borders, mark_borders

# The situations of a chunk, and the most candidates that one call tests: enough to keep a card busy.
_CHUNK, _CANDIDATES = 1 << 20, 1 << 22


def derive_on_device(plan: IntervalPlan, run: DeviceRun, memory: DeviceMemory) -> Derived:
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


def device_workplace(run: DeviceRun, derived: Derived, memory: DeviceMemory) -> Workplace:
    """Return the device as the workplace if situations and join fit beside the resident events, else the CPU."""
    resident = 0 if derived.events.place is HOST else len(derived.events)
    candidates = memory.joined_candidates(resident, len(derived.runs.stream))
    return Workplace(run.device, _CHUNK, min(_CANDIDATES, candidates), 1) if candidates else cpu_workplace(run.threads)


def _all_runs(plan: IntervalPlan, device: Device, source: EventSource, memory: DeviceMemory) -> tuple[EventSequence, Runs]:
    """Return the events and their runs.

    Borders are paired on the device if it has room for events and borders, else on the host.
    """
    room, on_host = memory.paired_borders(source.resident), not source.resident
    kept: list[Borders] = []
    spilled: list[Borders] = []
    for low, high in list(blocks(0, int(source.offsets[-1]), memory.sought_events(source.resident))) or [(0, 0)]:
        kept.append(_borders_of(plan, device, source, low, high))
        on_host = on_host or sum(len(borders.position) for borders in kept) > room
        if on_host:
            spilled += [Borders(*(device.download(column) for column in borders)) for borders in kept]
            kept.clear()
    events = source.fetch() if on_host else source.sequence()
    borders = concatenate_borders(np, spilled) if on_host else concatenate_borders(device.xp, kept)
    return events, lasting_runs(plan, events, borders)


def _borders_of(plan: IntervalPlan, device: Device, source: EventSource, low: int, high: int) -> Borders:
    """Return the borders at the events [low, high), then those behind streams that end there with open runs."""
    # whether a run goes on at event `low` depends on the event before it
    begin = max(0, low - 1)
    times, (labels,) = source.part(begin, high)
    times = as_signed(times)
    inside = _borders_inside(plan, device, source.offsets, times, labels, begin, low)
    return concatenate_borders(device.xp, [inside, _open_ends(device, source.offsets, times, labels, begin, low)])


def _borders_inside(
    plan: IntervalPlan, device: Device, offsets: Indices, times: Array, labels: Array, begin: int, low: int
) -> Borders:  # fmt: skip
    """Return the borders at the events from `low` on.

    `times` and `labels` are those of the events from `begin` on, which include the event before `low`.
    """
    xp, size = device.xp, len(times)
    first, last = np.searchsorted(offsets, [begin, begin + size])
    streams_begin, begins = device.upload(offsets[first:last] - begin), xp.zeros(size, np.bool_)
    begins[streams_begin] = True
    # the event before the first is not given; any border here lies before `low` and is dropped below
    begins[:1] = True
    neighbours = labels, begins, gap_limit(plan, times)
    marks = xp.empty(size, np.bool_)
    device.launch(mark_borders, size, *neighbours, marks)
    marks[: low - begin] = False
    crossed = xp.flatnonzero(marks)
    opened, closed = (xp.empty(len(crossed), np.uint16) for _ in range(2))
    device.launch(cross_borders, len(crossed), crossed, *neighbours, opened, closed)
    positions = (crossed + begin).astype(np.int32)
    streams = (xp.searchsorted(streams_begin, crossed, side="right") + (int(first) - 1)).astype(np.int32)
    return Borders(positions, times[crossed], streams, positions - np.int32(1), opened, closed)


def _open_ends(device: Device, offsets: Indices, times: Array, labels: Array, begin: int, low: int) -> Borders:
    """Return the borders behind streams that end from `low` on with open runs.

    `times` and `labels` are those of the events from `begin` on.
    """
    ends, high = offsets[1:], begin + len(times)
    ending = np.flatnonzero((offsets[:-1] < ends) & (low < ends) & (ends <= high))
    streams, last = device.upload(ending.astype(np.int32)), device.upload((ends[ending] - 1).astype(np.int32))
    closed = labels[last - np.int32(begin)].astype(np.uint16)
    is_open = device.xp.flatnonzero(closed)
    return closing_borders(device.xp, streams[is_open], last[is_open], closed[is_open], times.dtype)
