"""Lay out on a card the events that negations rule out beside the matches of a batch."""

from __future__ import annotations

from functools import reduce
from operator import or_

import numpy as np

from gpu_cep.engine.events.batches import Batch
from gpu_cep.engine.lowering.lists import offsets
from gpu_cep.engine.lowering.scopes import chain_scopes
from gpu_cep.engine.phase_one.device.disjoint_matches import begins_stream
from gpu_cep.engine.phase_one.device.event_sources import EventSource
from gpu_cep.engine.phase_one.device.order_events import stream_begins
from gpu_cep.engine.phase_one.device.windows import DevicePattern, DeviceWindows
from gpu_cep.plan.event_plan import PlannedBranch
from gpu_cep_kernels.automaton.chain_negations import ChainNegations
from gpu_cep_kernels.device.interface import Array, Device
from gpu_cep_kernels.device.packing import to_device
from gpu_cep_kernels.device.primitives import label_flags


def holds_scopes(branch: PlannedBranch, source: EventSource, batches: list[Batch]) -> bool:
    """Return whether each batch holds all that the negations of its matches may rule out.

    A scope that begins before the match may reach back to the batch before.
    """
    return not _looking_back(branch) or all(begins_stream(source, batch) for batch in batches)


def events_before_matches(windows: DeviceWindows, branch: PlannedBranch) -> Array | None:
    """Return whether each event of a batch may be ruled out before a match begins; None if none may."""
    looking_back = _looking_back(branch)
    if not looking_back:
        return None
    return reduce(or_, (label_flags(windows.labels, variable) for variable in looking_back)) != 0


def _looking_back(branch: PlannedBranch) -> list[int]:
    """Return the negated variables whose scopes begin before the match."""
    return [negation.variable for negation in branch.negations if not negation.after]


def negations_on_device(
    query: DevicePattern, device: Device, source: EventSource, batch: Batch, windows: DeviceWindows, held: Array
) -> ChainNegations:  # fmt: skip
    """Return the negations of a chain over the events `held` of a batch, as kernels read them; events are numbered among these."""
    xp, branch = device.xp, query.tables.branch
    labels = xp.ascontiguousarray(xp.take(windows.labels, held, axis=1))
    places = [xp.flatnonzero(label_flags(labels, negation.variable)) for negation in branch.negations]
    begins = stream_begins(device, source.streams(batch.low, batch.high))
    nothing, (after, before) = np.empty(0, np.int64), chain_scopes(branch)
    table = ChainNegations(
        place_first=offsets([int(own.size) for own in places]),
        places=nothing,
        after=after,
        before=before,
        streams=np.array([0, int(held.size)]),
        times=nothing,
        clock=nothing,
        length=windows.limits.length,
    )
    on_device: ChainNegations = to_device(device, table)
    first, last = on_device.streams[:1], on_device.streams[1:]
    times, _ = source.part(batch.low, batch.high)
    return on_device._replace(
        places=xp.concatenate(places),
        streams=xp.concatenate([first, xp.searchsorted(held, begins), last]),
        times=times[held] if query.tied else times[:0],
        clock=windows.limits.clock[held],
    )
