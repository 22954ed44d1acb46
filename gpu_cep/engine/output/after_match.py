"""``after_match``: which matches are kept, given those that are there (SPEC section 3)."""

from __future__ import annotations

import numpy as np

from gpu_cep.engine.events.matches import Indices, Matches
from gpu_cep.engine.events.ordered_events import OrderedEvents
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.output.result_order import positions_in_streams
from gpu_cep.plan.event_plan import Plan
from gpu_cep_kernels.matches.flat_matches import select_disjoint


def selected(plan: Plan, columns: EventColumns, ordered: OrderedEvents, matches: Matches, streams: Indices) -> tuple[Matches, Indices]:
    """The matches to report of those given, in result order with the number of their `partition_by` stream, and the numbers of theirs."""
    if plan.settings.after_match == "all" or not len(matches):
        return matches, streams
    if plan.settings.after_match == "skip_to_next":
        # the first of each first event is the earliest to complete
        kept = np.flatnonzero(np.diff(matches.first, prepend=-1))
    else:
        kept = _past_last(plan, columns, ordered, matches, streams)
    return matches.reordered(kept), streams[kept]


def _past_last(plan: Plan, columns: EventColumns, ordered: OrderedEvents, matches: Matches, streams: Indices) -> Indices:
    """The matches taken in order of completion, each of which begins behind the last one taken (SASE+'s non-overlapping format)."""
    ends = np.concatenate([matches.first, matches.last])
    first, last = np.split(positions_in_streams(plan, columns, ordered, ends), 2)
    # equal keys keep the order of results, which is that of bindings
    completed = np.lexsort((first, last, streams))
    taken = np.empty(len(matches), np.bool_)
    select_disjoint(completed, streams, first, last, taken)
    return np.flatnonzero(taken)
