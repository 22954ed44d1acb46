"""Find the matches of a row pattern: read them off labels, or search where conditions read the match."""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

from gpu_cep.engine.accounting.profile import UNREAD, Profile
from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.phase_one.order_events import stream_slices
from gpu_cep.engine.row_patterns.device_matches import FoundRows, LeftRows, find_on_device
from gpu_cep.engine.row_patterns.found import Lengths, RowMatches, SearchProgress, followed_states, row_matches_at, row_matches_of
from gpu_cep.engine.row_patterns.labels import label_rows
from gpu_cep.engine.row_patterns.neighbour_columns import NeighbourColumns
from gpu_cep.engine.row_patterns.pieces import cut_partitions, is_cut
from gpu_cep.engine.row_patterns.reach import find_reach
from gpu_cep.engine.row_patterns.run import RowRun
from gpu_cep.engine.row_patterns.searching import search_matches
from gpu_cep.engine.row_patterns.skipping import skip_to, target_fault
from gpu_cep.plan.event_plan import BankLayout
from gpu_cep.plan.row_patterns.on_card import left_to_cpu
from gpu_cep.plan.row_patterns.row_plan import MatchConditions
from gpu_cep_kernels.compile.launch import spread
from gpu_cep_kernels.row_patterns.matches import Chains, Trail, find_row_matches, find_shared_rows, mend_row_matches
from gpu_cep_kernels.row_patterns.tables import UNMATCHED, PartitionPieces, Reach, SkipTo


def match_partitions(run: RowRun, max_steps: int | None, profile: Profile = UNREAD) -> RowMatches:
    """Return the matches of all partitions; `profile` receives the seconds of each stage.

    Raises
    ------
    EventError
        A condition cannot be computed, or AFTER MATCH SKIP leads nowhere.
    MatchLimitExceeded
        A search made more than `max_steps`.
    """
    plan, ordered, pieces = run.plan, run.ordered, cut_partitions(run.ordered.offsets, run.threads)
    left = LeftRows(None)
    if plan.labels.settings.engine == "gpu" and len(ordered) and not left_to_cpu(plan):
        found = find_on_device(NeighbourColumns(run, pieces), profile)
        if isinstance(found, FoundRows):
            return _matches_on_card(run, found)
        left = found
        profile.add("left", len(ordered))
    with profile.stage("labels"):
        labels = label_rows(run, pieces) if left.labels is None else left.labels
    with profile.stage("reach"):
        reach = find_reach(run, pieces, labels)
    with profile.stage("matching"):
        if plan.search is not None:
            return search_matches(run, plan.search, reach, max_steps)
        return _read_off(run, pieces, reach)


def find_certain_matches(run: RowRun, begun: SearchProgress, opened: npt.NDArray[np.bool_] | None, max_steps: int | None) -> RowMatches:
    """Return the matches that no row which is not known yet can change; where they are not certain, `begun` says then.

    `opened`: whether such rows may come in the window that begins with each row; None: there are none. The pattern has a window.
    Raises as :func:`match_partitions`.
    """
    pieces = cut_partitions(run.ordered.offsets, 1)
    reach = find_reach(run, pieces, label_rows(run, pieces), opened)
    conditions = MatchConditions((), BankLayout(), (), ()) if run.plan.search is None else run.plan.search
    return search_matches(run, conditions, reach, max_steps, begun)


def _matches_on_card(run: RowRun, found: FoundRows) -> RowMatches:
    """Return the matches that a card found; the states of their rows are found when they are asked for."""
    find_reach = cache(found.find_reach)

    def rows_of(members: npt.NDArray[np.bool_]) -> tuple[Indices, Indices]:
        lengths = np.full(len(run.ordered), UNMATCHED, np.int32)
        lengths[found.firsts] = found.lengths
        return _shared_rows(run, lengths, find_reach(), members)

    shared = skip_to(run.plan) == SkipTo.NEXT_ROW and run.plan.bound.window is None
    states = followed_states(run.automaton, find_reach, run.threads)
    return row_matches_at(run.ordered, found.firsts, found.lengths, states, rows_of if shared else None)


def _read_off(run: RowRun, pieces: PartitionPieces, reach: Reach) -> RowMatches:
    """Return the matches, where no condition reads them; the states of their rows are found when they are asked for."""
    ordered, automaton, threads, to = run.ordered, run.automaton, run.threads, skip_to(run.plan)
    lengths = np.empty(len(ordered), np.int32)
    cut = is_cut(pieces)
    chains = _chains(pieces, len(ordered) if cut else 0)
    # where windows end depends on where a match begins
    shared = len(ordered) if to == SkipTo.NEXT_ROW and not reach.limits.size else 0
    crossings = (len(pieces.begins), len(automaton.ends)) if shared and cut else (0, 0)
    trail = Trail(np.empty(shared, np.int32), np.empty(shared, np.int32), np.full(crossings, -1, np.int32))

    def find(span: tuple[int, int]) -> None:
        rows = slice(*pieces.offsets[[*span]])
        lengths[rows] = UNMATCHED
        trail.state[rows] = -1
        find_row_matches(*span, pieces, automaton, reach, to, lengths, chains, trail)

    spread(find, stream_slices(pieces.offsets, threads), threads)
    if cut:
        mend_row_matches(pieces, automaton, reach, to, lengths, chains, trail)

    def rows_of(members: npt.NDArray[np.bool_]) -> tuple[Indices, Indices]:
        return _shared_rows(run, lengths, reach, members)

    matches = row_matches_of(ordered, lengths, followed_states(automaton, lambda: reach, threads), rows_of if shared else None)
    failed = np.flatnonzero(chains.faults >= 0)
    if failed.size:
        raise target_fault(run, matches, int(chains.faults[failed[0]]))
    return matches


def _chains(pieces: PartitionPieces, rows: int) -> Chains:
    """Return empty records of the search in each piece, and of the `rows` that it has met."""
    count = len(pieces.begins)
    return Chains(np.full(count, -1, np.int64), np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros(rows, np.bool_))


def _shared_rows(run: RowRun, lengths: Lengths, reach: Reach, members: npt.NDArray[np.bool_]) -> tuple[Indices, Indices]:
    """Return the first and the last row with one of some states, in the match that begins at each row."""
    ordered = run.ordered
    trail = np.full(len(ordered), -1, np.int32)
    first, last = np.full(len(ordered), -1, np.int64), np.full(len(ordered), -1, np.int64)

    def find(span: tuple[int, int]) -> None:
        find_shared_rows(*span, ordered.offsets, lengths, run.automaton, reach, members, trail, first, last)

    spread(find, stream_slices(ordered.offsets, run.threads), run.threads)
    return first, last
