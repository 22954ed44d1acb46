"""Select the matches that ``after_match`` keeps (SPEC section 3)."""

from __future__ import annotations

import numpy as np

from gpu_cep.engine.events.matches import AnyMatches, FoundMatches, Indices
from gpu_cep.engine.events.ordered_events import OrderedEvents
from gpu_cep.engine.events.runs import Runs
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.output.result_order import positions_in_streams
from gpu_cep.plan.event_plan import Plan
from gpu_cep_kernels.labels_decide.runs import drop_containing, keep_matches, take_apart
from gpu_cep_kernels.matches.flat_matches import select_disjoint


def select_matches(
    plan: Plan, columns: EventColumns, ordered: OrderedEvents, matches: AnyMatches, streams: Indices
) -> tuple[AnyMatches, Indices]:  # fmt: skip
    """Return the matches that are reported, and the number of each one's `partition_by` stream.

    The given matches are in result order; ``streams[m]`` is the stream of match m.
    """
    if plan.settings.after_match == "all" or not len(matches):
        return matches, streams
    if plan.settings.after_match == "skip_to_next":
        # of the matches with one first event, the first one in result order completes earliest
        kept = np.flatnonzero(np.diff(matches.first, prepend=-1))
    else:
        kept = _disjoint_matches(plan, columns, ordered, matches, streams)
    # searches leave out what is dropped where they can
    return (matches, streams) if len(kept) == len(matches) else (matches.reorder(kept), streams[kept])


def take_runs_apart(runs: Runs) -> Runs:
    """Return the matches that ``skip_past_last`` keeps of those of one branch; they come by stream and first event."""
    first, last, numbers = runs.first, runs.last.copy(), np.arange(len(runs))
    drop_containing(last)
    kept = numbers[: keep_matches(numbers, last)]
    taken = np.empty(len(kept) + 1, np.int64)
    return runs.reorder(kept[taken[: take_apart(first[kept], last[: len(kept)], taken)]])


def _disjoint_matches(plan: Plan, columns: EventColumns, ordered: OrderedEvents, matches: FoundMatches, streams: Indices) -> Indices:
    """Return the numbers of the matches that do not overlap (SASE+'s non-overlapping format).

    Matches are taken in the order in which they complete. Each must begin
    behind the end of the one that was taken before it.
    """
    ends = np.concatenate([matches.first, matches.last])
    first, last = np.split(positions_in_streams(plan, columns, ordered, ends), 2)
    completed = _in_order_of_completion(streams, first, last)
    taken = np.empty(len(matches), np.bool_)
    select_disjoint(completed, streams, first, last, taken)
    return np.flatnonzero(taken)


def _in_order_of_completion(streams: Indices, first: Indices, last: Indices) -> Indices:
    """Return the numbers of matches by stream, last event, first event; equal ones keep their order, which is that of bindings.

    The matches come by stream and first event. Most often their last events are in order then, too.
    """
    if ((last[1:] >= last[:-1]) | (streams[1:] != streams[:-1])).all():
        return np.arange(len(streams))
    return np.lexsort((first, last, streams))
