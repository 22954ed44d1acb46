"""Drop the rows of a family that no member can bind, by one pass of phase 1 for all members.

A row is kept if it lies in a window that satisfies the necessary match conditions under the weakest
constants of all members (thesis section 5.2). A window that does not has no match of any member.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gpu_cep.engine.accounting.match_budget import Budget, Footprint
from gpu_cep.engine.accounting.profile import Profile
from gpu_cep.engine.events.batches import cut_batches
from gpu_cep.engine.events.ordered_events import OrderedEvents
from gpu_cep.engine.events.own_events import WHOLE
from gpu_cep.engine.events.reported import EVERY_MATCH
from gpu_cep.engine.lowering.pattern_tables import matcher_tables
from gpu_cep.engine.phase_one.run import EventRun
from gpu_cep.engine.rule_sets.families import Family
from gpu_cep.engine.rule_sets.ordered_rows import order_chosen_rows, times_at
from gpu_cep.engine.rule_sets.paired_rows import FamilyRows, paired_query, weakest_labels
from gpu_cep.engine.windows.candidates import branch_windows, match_windows, prune_windows
from gpu_cep.engine.windows.placed_windows import candidate_ends
from gpu_cep.plan.event_plan import BankLayout
from gpu_cep.plan.planner import plan
from gpu_cep_kernels.rules.tables import Ints


def may_drop_rows(family: Family) -> bool:
    """Return whether only rows in candidate windows matter: a negation that follows no variable looks back before these."""
    return all(negation.after for branch in family.plan.query.branches for negation in branch.negations)


def keep_near_candidates(given: FamilyRows, threads: int, profile: Profile) -> FamilyRows:
    """Return the rows that lie in a candidate window of some member; `profile` receives the counts and seconds of each stage."""
    family, labels = given.family, weakest_labels(given)
    whole = plan(paired_query(family, by_member=False), family.plan.settings)
    # windows are found by labels and times: no values are gathered for conditions
    planned = replace(whole, layout=BankLayout())
    times, missing = times_at(given.columns, planned.query.timestamp, given.rows)
    chosen = np.flatnonzero((labels != 0) & ~missing)
    columns, ordered = order_chosen_rows(planned, given.columns, given.rows[chosen], labels[chosen], times[chosen], threads, profile)
    budget = Budget(None, None, lambda: Footprint(0, 0), lambda: 0)
    run = EventRun(planned, columns, matcher_tables(whole, columns), EVERY_MATCH, budget, threads, profile)
    kept = np.zeros(len(chosen), np.bool_)
    kept[ordered.rows[_in_candidates(run, ordered)]] = True
    return given.take(chosen[kept])


def _in_candidates(run: EventRun, ordered: OrderedEvents) -> Ints:
    """Return the ordered events in candidate windows, ascending."""
    opened = np.zeros(len(ordered.rows) + 1, np.int64)
    for batch in cut_batches(run.plan, ordered, threads=run.threads):
        windows = match_windows(run.plan, ordered, batch, run.profile)
        for tables in run.tables:
            own = branch_windows(windows, ordered, batch, tables, WHOLE, run.profile)
            candidates = prune_windows(run.plan, own, tables, run.profile)
            begun, ended = np.bincount(candidates.starts), np.bincount(candidate_ends(own, candidates))
            opened[batch.low : batch.low + len(begun)] += begun
            opened[batch.low : batch.low + len(ended)] -= ended
    return np.flatnonzero(np.cumsum(opened[:-1]))
