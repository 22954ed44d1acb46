"""Drop the rows of a family that no member can bind, by one pass of phase 1 for all members.

A row is kept if it lies in a window that satisfies the necessary match conditions under the weakest
constants of all members (thesis section 5.2). A window that does not has no match of any member.
"""

from __future__ import annotations

import numpy as np

from gpu_cep.engine.accounting.match_budget import Budget, Footprint
from gpu_cep.engine.accounting.profile import Profile
from gpu_cep.engine.events.batches import cut_batches
from gpu_cep.engine.events.ordered_events import OrderedEvents
from gpu_cep.engine.events.own_events import WHOLE
from gpu_cep.engine.input.picked_rows import PickedRows
from gpu_cep.engine.lowering.pattern_tables import matcher_tables
from gpu_cep.engine.phase_one.computed_columns import event_columns
from gpu_cep.engine.phase_one.on_cpu import order_on_cpu
from gpu_cep.engine.phase_one.run import EventRun
from gpu_cep.engine.rule_sets.families import Family
from gpu_cep.engine.rule_sets.paired_rows import FamilyRows, Ints, paired_columns, paired_query, weakest_labels
from gpu_cep.engine.windows.candidates import branch_windows, match_windows, prune_windows
from gpu_cep.engine.windows.placed_windows import candidate_ends
from gpu_cep.plan.planner import plan


def may_drop_rows(family: Family) -> bool:
    """Return whether only rows in candidate windows matter: a negation that follows no variable looks back before these."""
    return all(negation.after for branch in family.plan.query.branches for negation in branch.negations)


def keep_near_candidates(given: FamilyRows, threads: int, profile: Profile) -> FamilyRows:
    """Return the rows that lie in a candidate window of some member; `profile` receives the counts and seconds of each stage."""
    family = given.family
    planned = plan(paired_query(family, by_member=False), family.plan.settings)
    labels = weakest_labels(given)
    picked = PickedRows(given.columns, given.rows, paired_columns(family, np.zeros(len(labels)), labels))
    columns = event_columns(planned, picked)
    budget = Budget(None, None, Footprint(0, 0), lambda: 0)
    run = EventRun(planned, columns, matcher_tables(planned, columns), WHOLE, budget, threads, profile)
    ordered = order_on_cpu(run).ordered
    return given.take(np.sort(ordered.rows[_in_candidates(run, ordered)]).astype(np.int64))


def _in_candidates(run: EventRun, ordered: OrderedEvents) -> Ints:
    """Return the ordered events in candidate windows, ascending."""
    opened = np.zeros(len(ordered.rows) + 1, np.int64)
    for batch in cut_batches(run.plan, ordered, threads=run.threads):
        windows = match_windows(run.plan, ordered, batch, run.profile)
        for tables in run.tables:
            own = branch_windows(windows, ordered, batch, tables, WHOLE, run.profile)
            candidates = prune_windows(run.plan, own, tables, run.profile)
            opened += np.bincount(candidates.starts + batch.low, minlength=len(opened))
            opened -= np.bincount(candidate_ends(own, candidates) + batch.low, minlength=len(opened))
    return np.flatnonzero(np.cumsum(opened[:-1]))
