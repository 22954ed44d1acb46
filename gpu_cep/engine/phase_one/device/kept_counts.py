"""Count on a card the matches that `after_match` keeps, of all branches together, or where a start has several.

Of those that begin at one event the one that ends first is kept, if any is. So nothing comes back but where matches are counted.
"""

from __future__ import annotations

from gpu_cep.engine.events.window_names import name_windows
from gpu_cep.engine.phase_one.device.batch_walks import BatchWalk, Branches, Tables, account, hold, open_windows, windows_at_once
from gpu_cep.engine.phase_one.device.disjoint_matches import (
    add_matches,
    disjoint_matches,
    keeps_disjoint,
    no_matches,
    shortest_matches,
)
from gpu_cep.engine.phase_one.device.windows import DevicePattern
from gpu_cep_kernels.compile.launch import blocks
from gpu_cep_kernels.device.interface import Array


def kept_starts(walk: BatchWalk, branches: Branches) -> Array | None:
    """Return the events of a batch at which kept matches start, ascending; None if a window is left to the CPU."""
    device = walk.run.device
    earliest = no_matches(device, walk.batch.high - walk.batch.low)
    if not all(_add_branch(walk, query, tables, earliest) for query, tables in branches):
        return None
    with walk.profile.stage("matching"):
        first, last = shortest_matches(device, earliest)
        return first[disjoint_matches(device, first, last, alone=True)] if keeps_disjoint(branches[0][0].plan) else first


def _add_branch(walk: BatchWalk, query: DevicePattern, tables: Tables, earliest: Array) -> bool:
    """Add the matches of a branch to the earliest ones of each event; return whether no window is left to the CPU."""
    run, held = walk.run, hold(walk, query)
    if held is None:
        return True
    at_once = windows_at_once(walk, query, tables, held)
    if not at_once:
        return False
    with walk.profile.stage("matching"), name_windows(run.plan, run.columns, walk.source.row):
        walks = open_windows(walk, query, tables, held)
        for low, high in blocks(0, int(held.starts.size), at_once):
            counted = walks.count(low, high)
            if counted.left.size:
                return False
            account(walk, counted, counting=True)
            first, last = counted.ends()
            add_matches(run.device, held.events[first], held.events[last].astype(earliest.dtype), earliest)
    return True
