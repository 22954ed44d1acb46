"""Drop the rows of a family that no member can bind, by one pass of phase 1 for all members.

A row is kept if it lies in a window that satisfies the necessary match conditions under the weakest
constants of all members (thesis section 5.2). A window that does not has no match of any member.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from gpu_cep.analysis.types import Kind
from gpu_cep.engine.accounting.match_budget import Budget, Footprint
from gpu_cep.engine.accounting.profile import Profile
from gpu_cep.engine.events.batches import cut_batches
from gpu_cep.engine.events.label_words import words_for
from gpu_cep.engine.events.ordered_events import OrderedEvents
from gpu_cep.engine.events.own_events import WHOLE
from gpu_cep.engine.events.stream_keys import SPARSE, StreamKeys, encode_keys
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.input.machine_values import Array
from gpu_cep.engine.input.picked_rows import PickedRows
from gpu_cep.engine.input.pieces import Pieces
from gpu_cep.engine.lowering.pattern_tables import matcher_tables
from gpu_cep.engine.phase_one.label_events import LabelledEvents
from gpu_cep.engine.phase_one.order_events import order_events
from gpu_cep.engine.phase_one.run import EventRun
from gpu_cep.engine.rule_sets.families import Family
from gpu_cep.engine.rule_sets.paired_rows import FamilyRows, Ints, Labels, paired_query, weakest_labels
from gpu_cep.engine.windows.candidates import branch_windows, match_windows, prune_windows
from gpu_cep.engine.windows.placed_windows import candidate_ends
from gpu_cep.plan.event_plan import BankLayout
from gpu_cep.plan.planner import plan
from gpu_cep_kernels.compile.launch import slices

# Keys are encoded for all rows, once, if a family has at least this share of them.
_SHARE = 16


def may_drop_rows(family: Family) -> bool:
    """Return whether only rows in candidate windows matter: a negation that follows no variable looks back before these."""
    return all(negation.after for branch in family.plan.query.branches for negation in branch.negations)


def keep_near_candidates(given: FamilyRows, threads: int, profile: Profile) -> FamilyRows:
    """Return the rows that lie in a candidate window of some member; `profile` receives the counts and seconds of each stage."""
    labels = weakest_labels(given)
    times, missing = _times(given)
    chosen = np.flatnonzero((labels != 0) & ~missing)
    kept = np.zeros(len(chosen), np.bool_)
    run, ordered = _order(given.take(chosen), labels[chosen], times[chosen], threads, profile)
    kept[ordered.rows[_in_candidates(run, ordered)]] = True
    return given.take(chosen[kept])


def _times(given: FamilyRows) -> tuple[Array, npt.NDArray[np.bool_]]:
    """Return the timestamps of the rows, and which of them are missing."""
    column = given.family.plan.query.timestamp
    times, nulls = given.columns.pieces(column).at(given.rows), given.columns.null_mask(column)
    times = times.astype(np.int64 if times.dtype.kind == "i" else np.float64, copy=False)
    return times, np.isnan(times) if nulls is None else nulls[given.rows] | np.isnan(times)


def _order(given: FamilyRows, labels: Labels, times: Array, threads: int, profile: Profile) -> tuple[EventRun, OrderedEvents]:
    """Return the rows as events in the order of their streams, without what conditions read, and a run over them."""
    family = given.family
    planned = replace(plan(paired_query(family, by_member=False), family.plan.settings), layout=BankLayout())
    columns = EventColumns(PickedRows(given.columns, given.rows), planned.query)
    budget = Budget(None, None, Footprint(0, 0), lambda: 0)
    run = EventRun(planned, columns, matcher_tables(planned, columns), WHOLE, budget, threads, profile)
    with profile.stage("keys"):
        keys = _stream_keys(given, columns, planned.stream_keys)
    with profile.stage("order"):
        (word,), parts = words_for(len(planned.query.variables)), slices(len(labels), threads) or [(0, 0)]
        numbers, words = np.arange(len(labels), dtype=np.int32), labels.astype(word.kind)[np.newaxis]
        labelled = LabelledEvents([numbers[low:high] for low, high in parts], [words[:, low:high] for low, high in parts])
        ordered = order_events(planned, columns, Pieces.of([times]), labelled, keys, threads)
    profile.add("filtered", len(labels))
    return run, ordered


def _stream_keys(given: FamilyRows, columns: EventColumns, keys: tuple[int, ...]) -> StreamKeys:
    """Return the stream of each row in `columns`, which has the given rows: where many families do, as all rows have it."""
    plain = all(columns.type(key).kind is not Kind.STRING or given.columns.has_dictionary(key) for key in keys)
    if plain and _SHARE * len(given.rows) >= len(given.columns):
        shared = encode_keys(given.columns, keys)
        if shared.pieces is None:
            return shared
        if shared.count <= SPARSE * len(given.rows):
            return StreamKeys(Pieces.of([shared.pieces.at(given.rows)]), shared.count, shared.ranks)
    return encode_keys(columns, keys)


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
