"""Find the preferred matches of a pattern over labels: each row is mapped by the first move that leads on."""

from __future__ import annotations

from typing import Any, NamedTuple

from gpu_cep_kernels.compile.jit import kernel, rule, sequential
from gpu_cep_kernels.row_patterns.tables import (
    ACCEPT,
    NOWHERE,
    UNENDED,
    UNMATCHED,
    PartitionPieces,
    Reach,
    RowAutomatonTable,
    SkipTo,
    first_source,
    leads_on,
    limit_of,
    next_state,
)
from gpu_cep_kernels.rules.tables import Flags, Ints, Places


@rule
def next_start(start: int, length: int, to: int, first: int, last: int) -> int:
    """Return where the search goes on behind a match with rows, of which `first` and `last` are those to skip to.

    The result is −1 if there are none, and `start` if the match would be found again.
    """
    target = start + length
    if to == SkipTo.NEXT_ROW:
        target = start + 1
    elif to == SkipTo.FIRST:
        target = first
    elif to == SkipTo.LAST:
        target = last
    return target


class Trail(NamedTuple):
    """Hold where matches lead that share rows, so that these are followed once; empty where windows make that depend on the start.

    - state[r], end[r]: the state of row r in the match that came there last, −1 for none, and the end to which it leads.
    - crossed[p, q]: the end of matches that leave piece p in state q, −1 if none did.
    """

    state: Places
    end: Places
    crossed: Places


class Chains(NamedTuple):
    """Hold from which rows the search went on, piece by piece.

    - faults[p]: the row of a match that has no row to skip to, or begins with it; the rest of the partition is then left.
    - looks[p]: for how many rows a state was sought.
    - left[p]: the row at which the search leaves the piece.
    - seen[r]: whether it came to row r; empty where no partition is cut.
    """

    faults: Ints
    looks: Ints
    left: Ints
    seen: Flags


@rule
def _find_match(
    start: int, p: int, pieces: PartitionPieces, automaton: RowAutomatonTable, reach: Reach, to: int, trail: Trail
) -> tuple[int, int, int]:  # fmt: skip
    """Return the length of the match that begins in row `start` of piece p, where the search goes on, and how many rows were looked at."""
    begin, end = pieces.begins[p], pieces.ends[p]
    known = pieces.offsets[p + 1] if trail.state.size > 0 else 0
    limit = limit_of(start, end, reach)
    state = next_state(first_source(start, begin, automaton), start, limit, automaton, reach)
    length, target, row = UNMATCHED, start + 1, start
    if state == ACCEPT:
        length = 0
    elif state >= 0:
        first, last, stop, leaving = -1, -1, -1, -1
        while state >= 0 and stop < 0:
            if row < known:
                stop = trail.end[row] if trail.state[row] == state else -1
            elif row == known and trail.state.size > 0:
                leaving = state
                stop = trail.crossed[p, state]
            if stop < 0:
                if automaton.target[state]:
                    first = row if first < 0 else first
                    last = row
                if row < known:
                    trail.state[row] = state
                row += 1
                state = next_state(state, row, limit, automaton, reach) if row < end else ACCEPT
        stop = row if stop < 0 else stop
        if trail.state.size > 0:
            for r in range(start, min(row, known)):
                trail.end[r] = stop
            if leaving >= 0:
                trail.crossed[p, leaving] = stop
        length = stop - start
        target = next_start(start, length, to, first, last)
    return length, target, row - start + 1


@kernel(writes=("lengths", "chains", "trail"))
def find_row_matches(
    low: int, high: int, pieces: PartitionPieces, automaton: RowAutomatonTable, reach: Reach, to: int, lengths: Any,
    chains: Chains, trail: Trail,
) -> None:  # fmt: skip
    """``lengths[r]``: how many rows the match has that begins in row r of a piece in [low, high); UNMATCHED where none begins.

    `to` says where the search goes on (SkipTo). In each piece it begins with the first row, also if a match from the piece before has it.
    """
    for p in range(low, high):
        start, end, looked = pieces.offsets[p], pieces.offsets[p + 1], 0
        while start < end:
            if chains.seen.size > 0:
                chains.seen[start] = True
            length, target, looks = _find_match(start, p, pieces, automaton, reach, to, trail)
            lengths[start] = length
            looked += looks
            if target <= start:
                chains.faults[p] = start
                target = pieces.ends[p]
            start = target
        chains.left[p] = start
        chains.looks[p] = looked


@kernel(writes=("crossed",))
def cross_row_matches(low: int, high: int, pieces: PartitionPieces, automaton: RowAutomatonTable, reach: Reach, crossed: Any) -> None:
    """``crossed[p, q]``: the end of a match in which state q maps the first row of piece p.

    Where that lies behind the piece it is -1 - q, if state q maps the row behind it. There are no windows. An index of
    [low, high) is a piece with a state.
    """
    states = automaton.ends.size
    for i in range(low, high):
        p, state = i // states, i % states
        row, limit = pieces.offsets[p], pieces.ends[p] - 1
        found = row
        if leads_on(state, row, limit, reach):
            while state >= 0 and row < pieces.offsets[p + 1]:
                row += 1
                state = next_state(state, row, limit, automaton, reach) if row <= limit else ACCEPT
            found = row if state < 0 else -1 - state
        crossed[p, i % states] = found


@rule
def _piece_of(row: int, pieces: PartitionPieces) -> int:
    """Return the piece that has a row."""
    low, high = 0, pieces.begins.size
    while high - low > 1:
        middle = (low + high) // 2
        if pieces.offsets[middle] <= row:
            low = middle
        else:
            high = middle
    return low


@kernel(writes=("lengths", "targets"))
def find_limited_matches(
    low: int, high: int, starts: Any, pieces: PartitionPieces, automaton: RowAutomatonTable, reach: Reach, to: int, most_steps: int,
    lengths: Any, targets: Any,
) -> None:  # fmt: skip
    """``lengths[r]``: how many rows the match has that begins in row r; UNMATCHED where none begins.

    It is UNENDED where a match has more than `most_steps` rows. ``targets[r]`` is the row at which the search goes on behind the
    match; r or less where it has no such row, or would be found again. An index of [low, high) is that of one of the rows
    `starts`; where these are empty, it is the row.
    """
    for i in range(low, high):
        start = starts[i] if starts.size > 0 else i
        p = _piece_of(start, pieces)
        limit, row, first, last = limit_of(start, pieces.ends[p], reach), start, -1, -1
        state = next_state(first_source(start, pieces.begins[p], automaton), start, limit, automaton, reach)
        length = UNMATCHED if state == NOWHERE else 0
        while state >= 0:
            if automaton.target[state]:
                first = row if first < 0 else first
                last = row
            row += 1
            length = row - start
            # at the last row that it may have, a match ends
            state = next_state(state, row, limit, automaton, reach) if row <= limit else ACCEPT
            if state >= 0 and length >= most_steps:
                state, length = ACCEPT, UNENDED
        lengths[start] = length
        targets[start] = next_start(start, length, to, first, last) if length > 0 else start + 1


@sequential(writes=("ends",))
def carry_row_matches(pieces: PartitionPieces, crossed: Any, ends: Any) -> None:
    """``ends[p, q]``: the end of a match in which state q maps the row behind piece p, as Trail has it; given `crossed`."""
    for p in range(pieces.begins.size - 1, 0, -1):
        if pieces.offsets[p] > pieces.begins[p]:
            for q in range(crossed.shape[1]):
                end = crossed[p, q]
                ends[p - 1, q] = end if end >= 0 else ends[p, -1 - end]


@sequential(writes=("lengths", "chains", "trail"))
def mend_row_matches(
    pieces: PartitionPieces, automaton: RowAutomatonTable, reach: Reach, to: int, lengths: Any, chains: Chains, trail: Trail
) -> None:  # fmt: skip
    """Mend what :func:`find_row_matches` found in pieces that begin inside of their partitions.

    The search goes on where it left the piece before, until it comes to a row to which it came then.
    """
    for p in range(pieces.begins.size):
        begin, end = pieces.offsets[p], pieces.offsets[p + 1]
        if begin > pieces.begins[p]:
            start = chains.left[p - 1]
            for r in range(begin, min(start, end)):
                lengths[r] = UNMATCHED
            fault = -1
            while start < end and not chains.seen[start]:
                length, target, looks = _find_match(start, p, pieces, automaton, reach, to, trail)
                chains.looks[p] += looks
                lengths[start] = length
                if target <= start:
                    fault = start
                    target = pieces.ends[p]
                for r in range(start + 1, min(target, end)):
                    lengths[r] = UNMATCHED
                start = target
            if start >= end:
                chains.left[p] = start
                chains.faults[p] = fault


@sequential(writes=("reached",))
def follow_targets(targets: Any, reached: Any) -> None:
    """Mark as `reached` what leads from the places that are: from place i the way goes to ``targets[i]``, behind it, or beyond all."""
    for i in range(targets.size):
        if reached[i] and targets[i] < targets.size:
            reached[targets[i]] = True


@kernel(writes=("trail", "first", "last"))
def find_shared_rows(
    low: int, high: int, offsets: Any, lengths: Any, automaton: RowAutomatonTable, reach: Reach, members: Any, trail: Any, first: Any,
    last: Any,
) -> None:  # fmt: skip
    """``first[r]``, ``last[r]``: the first and the last row from r on whose state is one of `members`, in the match that begins in row r.

    They are −1 if there is none. ``lengths[r]`` says whether a match with rows begins there. There are no windows, so rows that
    matches share are followed once; `trail` remembers the state of each row, and is given as −1.
    """
    for p in range(low, high):
        begin, end = offsets[p], offsets[p + 1]
        for start in range(begin, end):
            if lengths[start] > 0:
                row = start
                state = next_state(first_source(start, begin, automaton), row, end - 1, automaton, reach)
                while state >= 0 and trail[row] != state:
                    trail[row] = state
                    row += 1
                    state = next_state(state, row, end - 1, automaton, reach) if row < end else ACCEPT
                following, final = (first[row], last[row]) if state >= 0 else (-1, -1)
                for r in range(row - 1, start - 1, -1):
                    if members[trail[r]]:
                        following = r
                        final = r if final < 0 else final
                    first[r] = following
                    last[r] = final


@kernel(writes=("states",))
def map_rows(
    low: int, high: int, firsts: Any, begins: Any, places: Any, automaton: RowAutomatonTable, reach: Reach, limits: Any, states: Any
) -> None:  # fmt: skip
    """``states[places[m] + k]``: the state that maps row ``firsts[m] + k`` of match m, whose partition begins at row ``begins[m]``.

    ``limits[m]``: the last row that the match may have.
    """
    for m in range(low, high):
        row, place = firsts[m], places[m]
        state = first_source(row, begins[m], automaton)
        for k in range(places[m + 1] - place):
            state = next_state(state, row + k, limits[m], automaton, reach)
            states[place + k] = state


@kernel(writes=("rows",))
def find_mapped_rows(
    low: int, high: int, firsts: Any, places: Any, states: Any, members: Any, step: int, offset: int, rows: Any
) -> None:  # fmt: skip
    """``rows[m]``: the row of match m whose state is one of `members`, by `offset` such rows behind the first or before the last one.

    It is −1 if there is none. `step` is 1 to count from the first row on, and −1 from the last one back.
    """
    for m in range(low, high):
        begin, end = places[m], places[m + 1]
        place = begin if step > 0 else end - 1
        left, found = offset, -1
        while found < 0 and begin <= place < end:
            if members[states[place]]:
                if left == 0:
                    found = firsts[m] + place - begin
                left -= 1
            place += step
        rows[m] = found
