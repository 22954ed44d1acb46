"""Say of which plans a card finds matches behind phase 1."""

from __future__ import annotations

from gpu_cep.engine.phase_one.device.chain_walks import walks_chains
from gpu_cep.engine.phase_one.device.lifted_matches import reads_lifted
from gpu_cep.plan.event_plan import EventPlan

# The algorithms of a plan whose events are joined on the device.
JOINED = ("join_tree",)


def searches_windows(plan: EventPlan) -> bool:
    """Return whether a device can find matches of `plan` behind phase 1, which the CPU can do, too.

    Without conditions between bindings labels decide the matches, as a rule, and no window is searched.
    """
    return plan.contenders == JOINED or reads_lifted(plan) or (walks_chains(plan) and bool(plan.branches[0].conditions))
