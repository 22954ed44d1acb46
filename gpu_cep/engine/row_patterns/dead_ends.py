"""Make the memory of dead ends of a search, as large as they ask for and its budget allows."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import accumulate, combinations, pairwise, product

import numpy as np

from gpu_cep.plan.row_patterns.automaton import ACCEPT, RowAutomaton
from gpu_cep.plan.row_patterns.places import RowPlace
from gpu_cep.plan.row_patterns.row_plan import MatchConditions
from gpu_cep_kernels.row_patterns.conditions import COUNT_DISTINCT, MatchConditionTable
from gpu_cep_kernels.row_patterns.memo import Memo, MemoColumn, keep_dead_ends
from gpu_cep_kernels.rules.tables import ColumnBank, Flags

# Dead ends that are kept at first, and the bytes that those of a thread may take in the end.
_DEAD_ENDS = 1 << 14
_MOST_BYTES = 1 << 28
# In patterns with more states, pairs of them are not followed.
_MOST_PAIRED = 128
# How much larger the memory becomes when it has forgotten such a share of its size.
_GROWTH = 8
_SHARE_LOST = 1 / 64
# Rows by which it is said whether values are mostly different.
_SAMPLED = 1 << 8
# What a search may forget whose memory has the size that it may have.
_ANY = 1 << 62
# The operations by which programs read totals.
_LOAD_COUNT = "load_count"
_LOADS = (_LOAD_COUNT, "load_aggregate_int", "load_aggregate_float")


def make_memo(
    automaton: RowAutomaton, conditions: MatchConditions, table: MatchConditionTable, bank: ColumnBank, windows: bool
) -> Memo:  # fmt: skip
    """Return an empty memory of dead ends for a search over the rows of `bank`, in which windows may limit the matches."""
    behind = conditions_behind(automaton, table)
    reads_place, reads_total = behind @ _places_read(conditions, table), behind @ _totals_read(conditions, _LOADS)
    read = [_columns_read(conditions, k) for k in range(len(conditions.places))]
    varied = np.array([place.from_first and _vary(bank, columns) for place, columns in zip(conditions.places, read, strict=True)], np.bool_)
    place_first = np.array([0, *accumulate(map(_width, conditions.places, map(len, read)))], np.int64)
    bound = np.full(len(behind), windows) | (reads_place & varied).any(axis=1) | reads_total.any(axis=1)
    # a state to which one way leads meets what it reads again only in a match that begins with another row
    useful = behind.any(axis=1) & may_be_met_again(automaton) & (~bound | met_on_several_ways(automaton))
    width = MemoColumn.READ + int(place_first[-1]) + 3 * len(conditions.totals)
    slots = min(_DEAD_ENDS, _most_slots(width)) if useful.any() else 1
    return Memo(
        keys=np.zeros((slots, width), np.int64),
        asked=np.zeros(width, np.int64),
        farthest=np.full(1, -1, np.int64),
        lost=np.zeros(1, np.int64),
        most_lost=_most_lost(slots, width),
        place_first=place_first,
        column_first=np.array([0, *accumulate(map(len, read))], np.int64),
        column=np.array([column for columns in read for _, column in columns], np.int64),
        is_float=np.array([floating for columns in read for floating, _ in columns], np.bool_),
        useful=useful,
        bound=bound,
        reads_place=reads_place,
        reads_total=reads_total,
        counts=_totals_read(conditions, (_LOAD_COUNT,)).any(axis=0) | (table.step == COUNT_DISTINCT),
    )


def grown(memo: Memo, start: int) -> Memo:
    """Return a larger memory of the same dead ends, if this one has forgotten many and may grow; else the same.

    Those that cannot be met any more in a match from row `start` on are left out.
    """
    slots, width = memo.keys.shape
    if memo.lost[0] <= memo.most_lost:
        return memo
    wanted = min(_GROWTH * slots, _most_slots(width))
    larger = memo._replace(
        keys=np.zeros((wanted, width), np.int64), lost=np.zeros(1, np.int64), most_lost=_most_lost(wanted, width)
    )  # fmt: skip
    keep_dead_ends(memo.keys, start, larger)
    return larger


def _most_lost(slots: int, width: int) -> int:
    """Return how many dead ends a memory of so many slots may forget before it is to grow."""
    return int(slots * _SHARE_LOST) if slots < _most_slots(width) else _ANY


def _most_slots(width: int) -> int:
    """Return the largest power of two of so wide keys that memory may hold."""
    return 1 << max(0, (_MOST_BYTES // (8 * width)).bit_length() - 1)


def _columns_read(conditions: MatchConditions, place: int) -> list[tuple[bool, int]]:
    """Return the columns of the bank that conditions read at a place, floats last."""
    loads = (load for each in conditions.conditions for load in each.program.code if load[0] in ("load_int", "load_float"))
    return sorted({(name == "load_float", column) for name, _, column, role in loads if role == place})


def _vary(bank: ColumnBank, columns: list[tuple[bool, int]]) -> bool:
    """Return whether a sample of rows has mostly different values in some columns."""
    rows = np.unique(np.linspace(0, max(0, bank.ints.shape[1] - 1), min(_SAMPLED, bank.ints.shape[1])).astype(np.int64))
    values = [(bank.floats if floating else bank.ints)[column, rows] for floating, column in columns]
    return len(set(zip(*values, strict=True))) > len(rows) / 4


def _width(place: RowPlace, columns: int) -> int:
    """Return how many numbers say what a place can still read of some columns, as the kernel lists them."""
    ahead = 1 if place.from_first else place.offset + 1
    rows = ahead * (1 if place.inside else 2 * columns) if place.from_first or place.members is not None else 0
    counts = place.from_first or place.members is None
    variables = ahead + max(0, -place.distance) if place.inside else 0
    return rows + counts + variables


def _places_read(conditions: MatchConditions, table: MatchConditionTable) -> Flags:
    """Return whether condition c reads place k: [c, k]."""
    read = np.zeros((len(conditions.conditions), len(conditions.places)), np.bool_)
    for c, (first, last) in enumerate(pairwise(table.place_first)):
        read[c, table.place[first:last]] = True
    return read


def _totals_read(conditions: MatchConditions, operations: Collection[str]) -> Flags:
    """Return whether condition c reads total t by one of some operations of programs: [c, t]."""
    read = np.zeros((len(conditions.conditions), len(conditions.totals)), np.bool_)
    for c, condition in enumerate(conditions.conditions):
        read[c, [total for name, _, total, _ in condition.program.code if name in operations]] = True
    return read


def conditions_behind(automaton: RowAutomaton, table: MatchConditionTable) -> Flags:
    """Return whether condition c is judged at a state that may come behind state q: [q, c]."""
    moves, states = automaton.moves, len(automaton.moves)
    behind = np.zeros((states, len(table.result)), np.bool_)
    judged = [slice(*table.condition_first[variable : variable + 2]) for variable in automaton.variable]
    changed = True
    while changed:
        before = behind.sum()
        for q in reversed(range(states)):
            for move in _states(moves[q]):
                behind[q] |= behind[move]
                behind[q, judged[move]] = True
        changed = bool(behind.sum() > before)
    return behind


def may_be_met_again(automaton: RowAutomaton) -> Flags:
    """Return which states may be dead ends that are met again: a match ends in none of them, and not only the first row has them."""
    found = np.zeros(len(automaton.moves), np.bool_)
    found[[move for moves in automaton.moves for move in _states(moves)]] = True
    return found & np.array([ACCEPT not in moves for moves in automaton.moves], np.bool_)


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
