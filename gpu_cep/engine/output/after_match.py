"""Select the matches that ``after_match`` keeps (docs/language.md, after_match)."""

from __future__ import annotations

from typing import Generic, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gpu_cep.engine.events.batches import Batch
from gpu_cep.engine.events.matches import AnyMatches, Flags, FoundMatches, Indices
from gpu_cep.engine.events.ordered_events import OrderedEvents
from gpu_cep.engine.events.runs import ContiguousMatches
from gpu_cep.engine.events.settling import Borders, mark_disjoint, settle
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.input.machine_values import rankable
from gpu_cep.engine.output.matched_events import MatchedEvents
from gpu_cep.engine.output.result_order import positions_in_streams
from gpu_cep.engine.output.returns import item_values
from gpu_cep.plan.event_plan import EventPlan, Plan
from gpu_cep_kernels.labels_decide.runs import keep_matches
from gpu_cep_kernels.matches.disjoint import drop_containing, take_apart
from gpu_cep_kernels.matches.groups import group_begins
from gpu_cep_kernels.phase_one.ordering import streams_of


class ResultMatches(NamedTuple, Generic[AnyMatches]):
    """Matches in the order of results.

    ``streams[m]`` is the number of match m's `partition_by` stream. ``final[m]`` says whether it is kept whatever other slices
    find; `final` is None if that is not asked.
    """

    matches: AnyMatches
    streams: Indices
    final: Flags | None = None

    def take(self, kept: Indices) -> ResultMatches[AnyMatches]:
        """Return the matches of these numbers alone."""
        return ResultMatches(self.matches.reorder(kept), self.streams[kept])


def select_matches(
    plan: Plan, columns: EventColumns, ordered: OrderedEvents, found: ResultMatches[AnyMatches]
) -> ResultMatches[AnyMatches]:  # fmt: skip
    """Return the matches that `after_match`, or a limit for each start, keeps."""
    matches, streams, _ = found
    if plan.settings.keeps_all or not len(matches):
        return found
    if plan.settings.limit_per_start is not None:
        kept = first_of_starts(plan, columns, ordered, matches, plan.settings.limit_per_start)
    elif plan.settings.after_match == "skip_to_next":
        # of the matches with one first event, the first one in result order completes earliest
        kept = group_begins(matches.first)
    else:
        kept = _disjoint_matches(plan, columns, ordered, matches, streams)
    # searches leave out what is dropped where they can
    return found if len(kept) == len(matches) else found.take(kept)


def first_of_starts(plan: Plan, columns: EventColumns, ordered: OrderedEvents, matches: FoundMatches, limit: int) -> Indices:
    """Return the numbers of at most `limit` matches of each first event, ascending: the first by the plan's ranking.

    The given matches stand together by first event, and each event's in result order.
    """
    numbers, begins = np.arange(len(matches)), np.diff(matches.first, prepend=-1) != 0
    order = numbers
    if isinstance(plan, EventPlan) and plan.query.ranking is not None:
        events = MatchedEvents(columns, ordered.rows, matches)
        values = rankable(item_values("order_matches_by", plan.query.ranking.expression, plan.ranking, events, ()))
        ranked = pa.table({"start": np.cumsum(begins), "value": values, "number": numbers})
        direction = "descending" if plan.query.ranking.descending else "ascending"
        order = pc.sort_indices(ranked, sort_keys=[("start", "ascending"), ("value", direction), ("number", "ascending")]).to_numpy()
    # matches of one first event stand together in either order
    before = np.maximum.accumulate(np.where(begins, numbers, 0))
    return np.sort(order[numbers - before < limit])


def take_runs_apart(runs: ContiguousMatches, threads: int = 1) -> ContiguousMatches:
    """Return the matches that ``skip_past_last`` keeps of those of one branch, gathered by `threads`.

    They come by stream and first event.
    """
    if (runs.first[1:] > runs.last[:-1]).all():
        # streams that were searched whole leave nothing to drop
        return runs
    first, last, numbers = runs.first, runs.last.copy(), np.arange(len(runs))
    drop_containing(last)
    kept = numbers[: keep_matches(numbers, last)]
    taken = np.empty(len(kept) + 1, np.int64)
    return runs.reorder(kept[taken[: take_apart(first[kept], last[: len(kept)], taken)]], threads)


def _disjoint_matches(plan: Plan, columns: EventColumns, ordered: OrderedEvents, matches: FoundMatches, streams: Indices) -> Indices:
    """Return the numbers of the matches that do not overlap (SASE+'s non-overlapping format).

    Matches are taken in the order in which they complete. Each must begin
    behind the end of the one that was taken before it.
    """
    return np.flatnonzero(mark_disjoint(streams, *_ends(plan, columns, ordered, matches)))


def settle_batch(ordered: OrderedEvents, runs: ContiguousMatches, batch: Batch, borders: Borders) -> ContiguousMatches:
    """Return the matches of a batch without those that ``skip_past_last`` drops whatever there is beside the batch.

    The streams of ordered events are those of `partition_by`.
    """
    if ordered.offsets[ordered.offsets.searchsorted(batch.low)] >= batch.own:
        # matches of earlier batches may overlap all of these
        return runs
    streams = np.zeros(len(runs), np.int64)
    streams_of(runs.first, ordered.offsets, streams)
    late = borders.apart.among(ordered, runs.first) & (ordered.offsets[streams] >= batch.low)
    # a match of a later batch that ends within one of these ends within all behind it
    early = borders.own.among(ordered, runs.last)
    return runs.reorder(settle(streams, runs.first, runs.last, late, early).kept)


def settle_matches(
    plan: Plan, columns: EventColumns, ordered: OrderedEvents, found: ResultMatches[AnyMatches], borders: Borders
) -> ResultMatches[AnyMatches]:  # fmt: skip
    """Return the matches of a slice that ``skip_past_last`` may keep, and which are kept whatever other slices find.

    No two of the given matches have the same first event.
    """
    matches, streams, _ = found
    late, early = borders.apart.among(ordered, matches.first), borders.own.among(ordered, matches.last)
    kept, final = settle(streams, *_ends(plan, columns, ordered, matches), late, early)
    return found.take(kept)._replace(final=final)


def _ends(plan: Plan, columns: EventColumns, ordered: OrderedEvents, matches: FoundMatches) -> tuple[Indices, Indices]:
    """Return the positions in their streams of the first and of the last events of matches."""
    if not plan.derived:
        # the events of a stream stand together, in its order
        return matches.first, matches.last
    first, last = np.split(positions_in_streams(plan, columns, ordered, np.concatenate([matches.first, matches.last])), 2)
    return first, last
