"""Put together what the branches of a plan have brought back from a card, or decide that it is counted there."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpu_cep.engine.events.batches import Batch
from gpu_cep.engine.events.matches import Matches
from gpu_cep.engine.events.merged_matches import BranchMatches, unite_matches
from gpu_cep.engine.events.own_events import WHOLE
from gpu_cep.engine.events.start_counts import StartCounts
from gpu_cep.engine.phase_one.device.device_run import DeviceRun
from gpu_cep.engine.phase_one.device.disjoint_matches import decides_together, keeps_disjoint
from gpu_cep.engine.phase_one.device.event_sources import EventSource
from gpu_cep.engine.phase_one.run import PhaseOne
from gpu_cep.plan.event_plan import EventPlan


def may_count(run: DeviceRun, source: EventSource, batches: list[Batch]) -> bool:
    """Return whether the device may count the matches that are kept; else the host takes them from those that come back, each once."""
    plan, settings = run.plan, run.plan.settings
    assert isinstance(plan, EventPlan), "situations have no branches"
    if settings.output != "count":
        return False
    if settings.keeps_all:
        return plan.finds_once
    if plan.ends or run.reported.own != WHOLE or run.reported.ends != WHOLE:
        return False
    # of the matches of a start one is kept at most
    apart = keeps_disjoint(plan) and all(decides_together(plan, source, batch) for batch in batches)
    return settings.after_match == "skip_to_next" or apart


def counted_phase_one(run: DeviceRun, source: EventSource, counts: StartCounts) -> PhaseOne:
    """Return the events at which matches are counted, which ascend, and the numbers of these."""
    with run.profile.stage("candidates back"):
        events, places = np.unique(counts.starts, return_inverse=True)
        copied = [source.copy(run.device.upload(events))] if len(events) else []
        return PhaseOne(source.ordered(copied, None), counted=StartCounts(places, counts.totals))


def unite_branches(run: DeviceRun, matches: Sequence[Matches]) -> Matches:
    """Return the matches of all branches, each once; `matches` are those of each branch."""
    parts = [BranchMatches(own, tables.branch.positives) for own, tables in zip(matches, run.tables, strict=True)]
    return unite_matches(parts, len(run.plan.query.positives))
