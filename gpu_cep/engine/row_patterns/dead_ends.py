"""Make the memory of dead ends of a search, as large as they ask for and memory allows."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate, combinations, product

import numpy as np
import numpy.typing as npt

from gpu_cep.plan.row_patterns.automaton import ACCEPT, RowAutomaton
from gpu_cep.plan.row_patterns.places import RowPlace
from gpu_cep.plan.row_patterns.row_plan import MatchConditions
from gpu_cep_kernels.row_patterns.conditions import MatchConditionTable
from gpu_cep_kernels.row_patterns.memo import Memo, MemoColumn
from gpu_cep_kernels.rules.tables import Flags

# Dead ends that are kept at first, and the bytes that they may take in the end.
_DEAD_ENDS = 1 << 17
_MOST_BYTES = 1 << 28
# In patterns with more states, pairs of them are not followed.
_MOST_PAIRED = 128
# How much larger the memory becomes when it has forgotten a quarter of its size.
_GROWTH = 8


def make_memo(automaton: RowAutomaton, conditions: MatchConditions, table: MatchConditionTable, windows: bool) -> Memo:
    """Return an empty memory of dead ends for a search, in which windows may limit the matches."""
    behind = conditions_behind(automaton, table).astype(np.int64)
    places = np.array([_reads(table, c) for c in range(len(conditions.conditions))], np.int64)
    places = places.reshape(len(conditions.conditions), len(conditions.places))
    totals = np.array([_totals_of(each.program.code, len(conditions.totals)) for each in conditions.conditions], np.int64)
    totals = totals.reshape(len(conditions.conditions), len(conditions.totals))
    place_first = np.array([0, *accumulate(map(_width, conditions.places))], np.int64)
    reads_place, reads_total = behind @ places > 0, behind @ totals > 0
    from_first = np.array([place.from_first for place in conditions.places], np.bool_)
    bound = np.array([windows or bool(p.any() or t.any()) for p, t in zip(reads_place & from_first, reads_total, strict=True)], np.bool_)
    # a state to which one way leads meets what it reads again only in a match that begins with another row
    useful = np.array([bool(each.any()) for each in behind], np.bool_) & (~bound | met_on_several_ways(automaton))
    width = MemoColumn.READ + int(place_first[-1]) + 3 * len(conditions.totals)
    slots = min(_DEAD_ENDS, _most_slots(width)) if useful.any() else 1
    return Memo(
        keys=np.zeros((slots, width), np.int64),
        asked=np.zeros(width, np.int64),
        lost=np.zeros(1, np.int64),
        place_first=place_first,
        useful=useful,
        bound=bound,
        reads_place=reads_place,
        reads_total=reads_total,
    )


def grown(memo: Memo) -> Memo:
    """Return a larger memory, which is empty, if this one has forgotten many dead ends and may grow; else the same."""
    slots, width = memo.keys.shape
    wanted = min(_GROWTH * slots, _most_slots(width))
    if wanted <= slots or memo.lost[0] <= slots // 4:
        return memo
    return memo._replace(keys=np.zeros((wanted, width), np.int64), lost=np.zeros(1, np.int64))


def _most_slots(width: int) -> int:
    """Return the largest power of two of so wide keys that memory may hold."""
    return 1 << max(0, (_MOST_BYTES // (8 * width)).bit_length() - 1)


def _width(place: RowPlace) -> int:
    """Return how many numbers say what a place can still read, as the kernel lists them."""
    ahead = 1 if place.from_first else place.offset + 1
    rows = ahead if place.from_first or place.members is not None else 0
    counts = place.from_first or place.members is None
    variables = ahead + max(0, -place.distance) if place.inside else 0
    return rows + counts + variables


def _reads(table: MatchConditionTable, c: int) -> npt.NDArray[np.bool_]:
    read = np.zeros(len(table.place_set), np.bool_)
    read[table.place[table.place_first[c] : table.place_first[c + 1]]] = True
    return read


def _totals_of(code: tuple[tuple[str, int, int, int], ...], totals: int) -> list[bool]:
    read = {total for name, _, total, _ in code if name in ("load_count", "load_aggregate_int", "load_aggregate_float")}
    return [total in read for total in range(totals)]


def conditions_behind(automaton: RowAutomaton, table: MatchConditionTable) -> Flags:
    """Return whether condition c is judged at a state that may come behind state q: [q, c]."""
    moves, states = automaton.moves, len(automaton.moves)
    behind = np.zeros((states, len(table.result)), np.bool_)
    conditions = table.condition[np.array(automaton.variable, np.int64)]
    changed = True
    while changed:
        before = behind.sum()
        for q in reversed(range(states)):
            for move in _states(moves[q]):
                behind[q] |= behind[move]
                if conditions[move] >= 0:
                    behind[q, conditions[move]] = True
        changed = bool(behind.sum() > before)
    return behind


def met_on_several_ways(automaton: RowAutomaton) -> Flags:
    """Return to which states ways through different states may lead that begin with the same row; if there are many states, all."""
    states = len(automaton.variable)
    found = np.full(states, states > _MOST_PAIRED, np.bool_)
    if states > _MOST_PAIRED:
        return found
    # ways part at the first row, and behind each state
    choices = (automaton.starts_first, automaton.starts_later, *automaton.moves)
    known = {pair for moves in choices for pair in combinations(sorted(_states(moves)), 2)}
    pairs = list(known)
    for one, other in pairs:
        for move in product(_states(automaton.moves[one]), _states(automaton.moves[other])):
            pair = min(move), max(move)
            if pair[0] == pair[1]:
                found[pair[0]] = True
            elif pair not in known:
                known.add(pair)
                pairs.append(pair)
    behind = np.flatnonzero(found).tolist()
    for q in behind:
        following = [move for move in _states(automaton.moves[q]) if not found[move]]
        found[following] = True
        behind += following
    return found


def _states(moves: tuple[int, ...]) -> Iterator[int]:
    return (move for move in moves if move != ACCEPT)
