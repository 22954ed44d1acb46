"""Split streams by the keys that conditions imply (a rule of the planner).

Precondition: the query has derived keys, on which all events of a match agree.
Rewrite: they follow `partition_by` among the stream keys, and must not be NULL.
"""

from __future__ import annotations

from dataclasses import replace

from gpu_cep.analysis.bound import BoundPattern, CountWindow
from gpu_cep.plan.event_plan import EventPlan
from gpu_cep.plan.settings import Settings


def split_streams(plan: EventPlan) -> EventPlan:
    """Return the plan with the derived keys among the stream keys, if they split the streams.

    Examples
    --------
    >>> before = draft("PARTITION BY s PATTERN SEQ(a, b) WHERE [k]")
    >>> after = split_streams(before)
    >>> [before.query.column_name(key) for key in before.stream_keys], before.derived
    (['s'], ())
    >>> [after.query.column_name(key) for key in after.stream_keys], after.derived
    (['s', 'k'], (2,))
    """
    query = plan.query
    derived = query.derived_keys if _derived_keys_split(query, plan.settings) else ()
    return replace(plan, derived=derived, stream_keys=query.partition_by + derived)


def _derived_keys_split(query: BoundPattern, settings: Settings) -> bool:
    """Return whether derived keys may split the streams.

    They may not where positions in the undivided stream count. Under partition_contiguity they may if
    the partitions of all branches consist of exactly these keys.
    """
    if isinstance(query.window, CountWindow) or query.strategy == "strict_contiguity":
        return False
    if query.strategy == "partition_contiguity":
        keys = set(query.derived_keys).union(query.partition_by)
        return all(set(branch.agreed) <= keys and set(query.derived_keys) <= set(branch.agreed) for branch in query.branches)
    return "partition" in settings.prune
