"""Leave out pruning steps that could drop nothing, or that no algorithm uses (a rule of the planner).

Precondition: algorithms are chosen and streams are split.
Rewrite: `pruning` becomes the steps that will run, in the same order.
"""

from __future__ import annotations

from dataclasses import replace

from gpu_cep.analysis.bound import CountWindow, TimeWindow
from gpu_cep.plan.algorithms import algorithm_named, may_cut
from gpu_cep.plan.event_plan import EventPlan

# Strategies under which events that no variable can bind still matter, so that none may be dropped.
_CONTIGUOUS = ("strict_contiguity", "partition_contiguity")


def drop_useless_steps(plan: EventPlan) -> EventPlan:
    """Return the plan without the pruning steps that would be of no use.

    Examples
    --------
    Without WITHIN no event is out of reach, so `reach` is dropped. No derived key splits the streams
    (`partition`), all matches are asked for (`overlap`), and the strategy lets events be passed over
    (`lift`). The chained condition implies the summary.

    >>> before = draft("PATTERN SEQ(a, b) WHERE a.x < b.x", algorithm="ses_automaton")
    >>> before.pruning
    ('filter', 'reach', 'partition', 'lift', 'summary', 'chain', 'overlap')
    >>> drop_useless_steps(before).pruning
    ('filter', 'chain')
    """
    query, settings = plan.query, plan.settings
    useless = set(settings.prune).difference(*(algorithm_named(name).pruning for name in plan.contenders))
    if not plan.derived:
        useless.add("partition")
    if isinstance(query.window, CountWindow) or query.strategy in _CONTIGUOUS:
        useless.add("filter")
    if not isinstance(query.window, TimeWindow):
        useless.add("reach")
    if all(branch.lifted is None for branch in plan.branches):
        useless.add("lift")
    if not may_cut(settings):
        useless.add("overlap")
    if "chain" in settings.prune and all(variable.minimum == 1 for variable in query.positives):
        # then the chained condition implies what the summary tests: each variable has an event in the window
        useless.add("summary")
    return replace(plan, pruning=tuple(step for step in settings.prune if step not in useless))
