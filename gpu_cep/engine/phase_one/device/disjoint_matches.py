"""Take on a card the matches of a batch that must not overlap, before they come back."""

from __future__ import annotations

import numpy as np

from gpu_cep.engine.events.batches import Batch
from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.phase_one.device.event_sources import EventSource
from gpu_cep.engine.phase_one.device.tiles import firsts_behind
from gpu_cep.plan.event_plan import EventPlan
from gpu_cep_kernels.device.interface import Array, Device
from gpu_cep_kernels.matches.disjoint import (
    drop_containing_in_blocks,
    enter_blocks,
    find_first_completions,
    follow_matches,
    leave_blocks,
)

# A block has 2 ** BITS blocks of the size before: so many hops a thread makes at most.
BITS = 6
_NO_MATCH = np.iinfo(np.int32).max


def keeps_disjoint(plan: EventPlan) -> bool:
    """Return whether matches that overlap others may be left out where they are found."""
    return plan.settings.after_match == "skip_past_last" and "overlap" in plan.pruning


def begins_stream(source: EventSource, batch: Batch) -> bool:
    """Return whether the first event of a batch is that of a stream; else matches of the batch before may overlap with its own."""
    return batch.low == 0 or bool(source.offsets[source.offsets.searchsorted(batch.low)] == batch.low)


def decides_alone(plan: EventPlan, source: EventSource, batch: Batch) -> bool:
    """Return whether the matches of a branch that start in a batch decide which of them are taken.

    So they do if the plan has no other branch, and the batch begins with a stream.
    """
    return len(plan.branches) == 1 and decides_together(plan, source, batch)


def decides_together(plan: EventPlan, source: EventSource, batch: Batch) -> bool:
    """Return whether the matches of all branches that start in a batch decide which of them are taken."""
    # with derived keys, matches of several streams here are in one of `partition_by`
    return not plan.derived and begins_stream(source, batch)


def no_matches(device: Device, size: int) -> Array:
    """Return for each of `size` events the last event (int32) of the shortest match that begins there: there is none yet."""
    return device.xp.full(size, _NO_MATCH, np.int32)


def add_matches(device: Device, first: Array, last: Array, earliest: Array) -> None:
    """Add a branch's matches to what :func:`no_matches` returned.

    They are given by their first (int64) and last events (int32). One at most begins at each event.
    """
    xp = device.xp
    earliest[first] = xp.minimum(earliest[first], last)


def shortest_matches(device: Device, earliest: Array) -> tuple[Array, Array]:
    """Return the first and last event of the shortest added match of each event at which one begins; first events ascend."""
    first = device.xp.flatnonzero(earliest < _NO_MATCH)
    return first, earliest[first]


def disjoint_matches(device: Device, first: Array, last: Array, *, alone: bool) -> Array:
    """Return the numbers of the matches that may be taken, ascending; if these matches `alone` decide it, of those that are taken.

    They come by stream and first event, at most one for each event: ``first[m]`` (int64) and ``last[m]`` (int32, which is
    overwritten).
    """
    if not first.size:
        return device.xp.empty(0, np.int64)
    _drop_containing(device, last)
    kept = device.xp.flatnonzero(last >= 0)
    return kept[taken_apart(device, first[kept], last[kept])] if alone else kept


def taken_apart(device: Device, first: Array, last: Array) -> Indices:
    """Return the numbers that :func:`gpu_cep_kernels.matches.disjoint.take_apart` writes, of one match at least.

    ``first[m]`` (int64) ascend; ``last[m]`` (int32) need not.
    """
    xp, size = device.xp, int(first.size)
    hops = xp.empty(size, np.int32)
    device.launch(follow_matches, size, first, last, hops)
    exits = [hops]
    while size > 1 << BITS * len(exits):
        further = xp.empty(size, np.int32)
        device.launch(leave_blocks, size, BITS * len(exits), exits[-1], further)
        exits.append(further)
    entered = xp.zeros(1, np.int32)
    while exits:
        bits = BITS * (len(exits) - 1)
        entries = xp.empty(_blocks(size, bits), np.int32)
        device.launch(enter_blocks, int(entered.size), bits + BITS, bits, entered, exits.pop(), entries)
        entered = entries
    taken: Indices = xp.flatnonzero(entered >= 0)
    return taken


def _drop_containing(device: Device, last: Array) -> None:
    """Do what :func:`gpu_cep_kernels.matches.disjoint.drop_containing` does."""
    blocks = _blocks(int(last.size), BITS)
    earliest = device.xp.empty(blocks, np.int32)
    device.launch(find_first_completions, blocks, BITS, last, earliest)
    device.launch(drop_containing_in_blocks, blocks, BITS, device.upload(firsts_behind(device.download(earliest))), last)


def _blocks(size: int, bits: int) -> int:
    """Return how many blocks of 2 ** bits matches there are."""
    return -(-size >> bits)
