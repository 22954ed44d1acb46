"""Put together what the branches of a plan have brought back from a card, or decide that it is counted there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from gpu_cep.engine.events.batches import Batch
from gpu_cep.engine.events.matches import Indices, Matches
from gpu_cep.engine.events.merged_matches import MatchesOfSome, unite_matches
from gpu_cep.engine.events.own_events import WHOLE
from gpu_cep.engine.phase_one.device.device_run import DeviceRun
from gpu_cep.engine.phase_one.device.disjoint_matches import decides_together, keeps_disjoint
from gpu_cep.engine.phase_one.device.event_sources import EventSource
from gpu_cep.plan.event_plan import EventPlan

_NONE = np.empty(0, np.int64)


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


def counts_in_order(starts: Iterable[Indices], totals: Iterable[Indices]) -> tuple[Indices, Indices]:
    """Return the events at which matches are counted, ascending, and their numbers; both come in parts."""
    events = np.concatenate([_NONE, *starts])
    order = np.argsort(events, kind="stable")
    return events[order], np.concatenate([_NONE, *totals])[order]


def unite_branches(run: DeviceRun, matches: Sequence[Matches]) -> Matches:
    """Return the matches of all branches, each once; `matches` are those of each branch."""
    parts = [MatchesOfSome(own, tables.branch.positives) for own, tables in zip(matches, run.tables, strict=True)]
    return unite_matches(parts, len(run.plan.query.positives))
