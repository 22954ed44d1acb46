"""Say of which plans a card finds or counts matches behind phase 1, and search their candidate windows there."""

from __future__ import annotations

from gpu_cep.engine.events.batches import Batch
from gpu_cep.engine.phase_one.device.card_memory import DeviceMemory
from gpu_cep.engine.phase_one.device.chain_walks import walks_patterns
from gpu_cep.engine.phase_one.device.condition_columns import resident_bank
from gpu_cep.engine.phase_one.device.counted_matches import count_on_device, counts_by_states
from gpu_cep.engine.phase_one.device.device_run import DeviceRun
from gpu_cep.engine.phase_one.device.event_sources import EventSource
from gpu_cep.engine.phase_one.device.lifted_matches import reads_lifted
from gpu_cep.engine.phase_one.device.negated_events import holds_scopes
from gpu_cep.engine.phase_one.device.walked_matches import match_on_device
from gpu_cep.engine.phase_one.device.window_searches import searches_patterns
from gpu_cep.engine.phase_one.device.windows import DevicePattern
from gpu_cep.engine.phase_one.run import JoinInputs, PhaseOne
from gpu_cep.plan.event_plan import EventPlan

# The algorithms of a plan whose events are joined on the device.
JOINED = ("join_tree",)
# Share of the memory that what conditions read of all events may take beside joins.
_BANK_SHARE = 4


def searches_windows(plan: EventPlan) -> bool:
    """Return whether a device can find matches of `plan` behind phase 1, which the CPU can do, too.

    Without conditions between bindings and negations labels decide the matches of a single branch, as a
    rule. No window is searched then if all are kept.
    """
    searched = matches_in_windows(plan) and not (len(plan.branches) == 1 and _labels_decide(plan) and plan.settings.keeps_all)
    return plan.contenders == JOINED or reads_lifted(plan) or searched or counts_by_states(plan)


def matches_in_windows(plan: EventPlan) -> bool:
    """Return whether a device walks or searches through the candidate windows of a plan."""
    return walks_patterns(plan) or searches_patterns(plan)


def _labels_decide(plan: EventPlan) -> bool:
    """Return whether labels decide the matches of the plan's first branch, as a rule."""
    branch = plan.branches[0]
    return plan.strategy == "skip_till_next_match" and not branch.conditions and not branch.negations


def search_on_device(
    run: DeviceRun, queries: tuple[DevicePattern, ...], source: EventSource, batches: list[Batch], memory: DeviceMemory
) -> PhaseOne | None:  # fmt: skip
    """Return what is found, or counted, in the candidate windows of batches on the device; None if that is left to the CPU.

    There is a query for each branch.
    """
    plan = queries[0].plan
    if counts_by_states(plan):
        return count_on_device(run, queries[0], source, batches, memory)
    if not matches_in_windows(plan) or not all(holds_scopes(query.tables.branch, source, batches) for query in queries):
        return None
    return match_on_device(run, queries, source, batches, memory)


def join_inputs(run: DeviceRun, source: EventSource, memory: DeviceMemory) -> JoinInputs | None:
    """Return what lies on the device and joins there read, if the run's events are joined there.

    What conditions read is gathered for all events once, where it lies there and there is room.
    """
    plan, times = run.plan, source.times
    assert isinstance(plan, EventPlan), "situations are joined elsewhere"
    if times is None or plan.contenders != JOINED:
        return None
    columns = len(plan.layout.ints) + len(plan.layout.floats) + 2
    fits = 8 * columns * source.total <= memory.bytes // _BANK_SHARE
    return JoinInputs(times, resident_bank(run.columns, plan.layout, source.rows(0, source.total), run.device) if fits else None)
