"""Say of which plans a card finds or counts matches behind phase 1, and search their candidate windows there."""

from __future__ import annotations

from gpu_cep.engine.events.batches import Batch
from gpu_cep.engine.phase_one.device.card_memory import DeviceMemory
from gpu_cep.engine.phase_one.device.chain_walks import walks_chains
from gpu_cep.engine.phase_one.device.counted_matches import count_on_device, counts_by_states
from gpu_cep.engine.phase_one.device.device_run import DeviceRun
from gpu_cep.engine.phase_one.device.event_sources import EventSource
from gpu_cep.engine.phase_one.device.lifted_matches import reads_lifted
from gpu_cep.engine.phase_one.device.walked_matches import walk_on_device
from gpu_cep.engine.phase_one.device.windows import DevicePattern
from gpu_cep.engine.phase_one.run import PhaseOne
from gpu_cep.plan.event_plan import EventPlan

# The algorithms of a plan whose events are joined on the device.
JOINED = ("join_tree",)


def searches_windows(plan: EventPlan) -> bool:
    """Return whether a device can find matches of `plan` behind phase 1, which the CPU can do, too.

    Without conditions between bindings labels decide the matches, as a rule, and no window is searched.
    """
    walked = walks_chains(plan) and bool(plan.branches[0].conditions)
    return plan.contenders == JOINED or reads_lifted(plan) or walked or counts_by_states(plan)


def search_on_device(
    run: DeviceRun, query: DevicePattern, source: EventSource, batches: list[Batch], memory: DeviceMemory
) -> PhaseOne | None:  # fmt: skip
    """Return what is found, or counted, in the candidate windows of batches on the device; None if that is left to the CPU."""
    if not run.searches:
        return None
    if counts_by_states(query.plan):
        return count_on_device(run, query, source, batches, memory)
    return walk_on_device(run, query, source, batches, memory) if walks_chains(query.plan) else None
