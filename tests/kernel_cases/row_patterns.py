"""Cases of the kernels of SQL's row patterns."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_cep_kernels.phase_one.neighbour_conditions import NeighbourProgram
from gpu_cep_kernels.row_patterns import labels, matches, memo, reach, search, walk
from gpu_cep_kernels.row_patterns.conditions import COUNT_DISTINCT, Arguments, Mapped, MatchConditionTable
from gpu_cep_kernels.row_patterns.memo import Memo, MemoColumn
from gpu_cep_kernels.row_patterns.operands import ALONE, Operand, OperandTable
from gpu_cep_kernels.row_patterns.runs import NO_RUN, NO_TOTAL, RunTable, Side
from gpu_cep_kernels.row_patterns.tables import Pieces, Reach, RowAutomatonTable, SkipTo
from gpu_cep_kernels.rules.interpreter import Op
from gpu_cep_kernels.rules.running import AGGREGATIONS
from gpu_cep_kernels.rules.tables import BY_FLOATS, BY_INTS, BY_PROGRAM, AggregateValues, ColumnBank, Registers
from tests.kernel_cases.calls import Call, KernelCase, Variants, cases
from tests.kernel_cases.inputs import Array, Random, column_bank, event_times, flags, floats, integers, label_words, stream_offsets
from tests.kernel_cases.tables import program_registers, program_table

# A+ (B | C)*? $?, whose states are numbered in order; a match may end behind A.
_AUTOMATON = RowAutomatonTable(
    variable=np.array([0, 1, 2], np.uint16),
    move_first=np.array([0, 2, 5, 8, 9, 11]),
    moves=np.array([0, -1, 1, 2, -1, 2, 1, -1, 0, 0, 1], np.int32),
    ends=np.array([True, True, False]),
    target=np.array([False, True, True]),
    choices=np.empty((0, 0), np.int32),
)
# A B C+, in which no row leaves a choice.
_STRAIGHT = RowAutomatonTable(
    variable=np.array([0, 1, 2], np.uint16),
    move_first=np.array([0, 1, 2, 4, 5, 6]),
    moves=np.array([1, 2, 2, -1, 0, 0], np.int32),
    ends=np.array([False, False, True]),
    target=np.array([False, True, True]),
    choices=np.empty((0, 0), np.int32),
)
# Behind each state the first one whose bit is set in the word; ACCEPT where none is set.
_CHOICES = np.array([[next((q for q in range(3) if word >> q & 1), -1) for word in range(256)]] * 5, np.int32)
_WORDS: Variants = {"uint8": {"word": np.uint8}, "uint64": {"word": np.uint64}}
# The value of a row and that of the first row of the match, which is not greater; fewer than three rows of B are mapped.
_PROGRAM = program_table((("load_int", 0, 0, 0), ("load_int", 1, 0, 1), ("le_int", 2, 0, 1)))
_NOTHING = np.empty((0, 0), np.int32)


def _partitions(size: int, random: Random) -> Array:
    return np.unique(stream_offsets(size, random))


def _pieces(size: int, random: Random) -> Pieces:
    """Partitions, of which some are cut."""
    offsets = _partitions(size, random)
    found = np.union1d(offsets, random.integers(0, size + 1, 3))
    owners = np.searchsorted(offsets, found[:-1], "right") - 1
    return Pieces(found, offsets[owners], offsets[owners + 1])


def _borders_of(pieces: Pieces) -> Array:
    """The borders of the partitions."""
    return np.union1d(pieces.offsets[:1], pieces.ends)


def _tables(random: Random, word: Any, bytes_of_labels: int) -> tuple[Array, Array, Any, Any]:
    kind = np.uint8 if word is np.uint8 else np.uint64
    return random.integers(0, 8, (bytes_of_labels, 256)).astype(kind), random.integers(0, 8, (1, 256)).astype(kind), kind(3), kind(5)


def _reaching(size: int, random: Random, slots: int, word: Any, followed: bool = False) -> Call:
    pieces, given = _pieces(size, random), label_words(size, random, 3, word)
    tables = _tables(random, word, given.dtype.itemsize)
    behind = np.where(pieces.offsets[1:] < pieces.ends, random.integers(0, 8, len(pieces.begins)), 0)[: len(pieces.begins) * followed]
    return Call(len(pieces.begins), (pieces, given, *tables, behind.astype(tables[0].dtype), np.zeros((size, 1), tables[0].dtype)))


def _mending(size: int, random: Random, slots: int, word: Any) -> Call:
    call = _reaching(size, random, slots, word)
    reach.mark_reach(0, call.size, *call.arguments)
    *given, _, _, words = call.arguments
    return Call(1, (*given, words))


def _reach_crossing(size: int, random: Random, slots: int, word: Any) -> Call:
    pieces, given, fits, before, accepts, words = _mending(size, random, slots, word).arguments
    return Call(3 * len(pieces.begins), (pieces, given, fits, before, accepts, words, np.zeros((len(pieces.begins), 3), words.dtype)))


def _reach_carrying(size: int, random: Random, slots: int, word: Any) -> Call:
    pieces = _pieces(size, random)
    words = random.integers(0, 8, (len(pieces.begins), 3)).astype(word)
    return Call(1, (pieces, words[:, 0].copy(), words, np.zeros(len(words), word)))


def _wide_reaching(size: int, random: Random, slots: int, word: Any) -> Call:
    pieces, given = _pieces(size, random), label_words(size, random, 3, word)
    fits, before = random.integers(0, 9, (3, 2), np.uint64), random.integers(0, 9, (128, 2), np.uint64)
    accepts, ends = np.array([1, 2], np.uint64), np.array([2, 1], np.uint64)
    return Call(len(pieces.begins), (pieces, given, fits, before, accepts, ends, np.zeros((size, 2), np.uint64)))


def _wide_mending(size: int, random: Random, slots: int, word: Any) -> Call:
    call = _wide_reaching(size, random, slots, word)
    reach.mark_wide_reach(0, call.size, *call.arguments)
    *given, _, words = call.arguments
    return Call(1, (*given, words, np.zeros(2, np.uint64)))


def _labelled(size: int, random: Random) -> tuple[Pieces, Array, Array]:
    pieces, given = _pieces(size, random), label_words(size, random, 3, np.uint8)
    earliest = np.zeros((size, 3), np.int32)
    reach.find_earliest_ends(0, len(pieces.begins), pieces, given, _AUTOMATON, False, earliest[:0], earliest)
    return pieces, given, earliest


def _ending(size: int, random: Random, slots: int, opened: bool = False, followed: bool = False) -> Call:
    pieces, given, earliest = _labelled(size, random)
    behind = np.where(random.random((len(pieces.begins), 3)) < 0.5, pieces.offsets[1:, None], 2**31 - 1).astype(np.int32)
    return Call(len(pieces.begins), (pieces, given, _AUTOMATON, opened, behind[: size * followed], np.zeros_like(earliest)))


def _end_carrying(size: int, random: Random, slots: int) -> Call:
    pieces, _, earliest = _labelled(size, random)
    crossed, firsts = random.integers(0, 8, (len(pieces.begins), 3)).astype(np.uint8), earliest[pieces.offsets[:-1]]
    return Call(1, (pieces, firsts, crossed, np.full_like(firsts, 2**31 - 1)))


def _limited_finding(size: int, random: Random, slots: int, to: SkipTo, windows: bool = False) -> Call:
    """With windows, the matches of some rows."""
    pieces, known = _reach(size, random, windows)
    found, starts = np.zeros((2, size), np.int32), np.arange(size)[:: -2 if windows else 1][: size * windows].copy()
    return Call(len(starts) if windows else size, (starts, pieces, _AUTOMATON, known, int(to), 2, *found))


def _end_mending(size: int, random: Random, slots: int) -> Call:
    pieces, given, earliest = _labelled(size, random)
    return Call(1, (pieces, given, _AUTOMATON, earliest))


def _times_limited(size: int, random: Random, slots: int, time: Any, missing: bool) -> Call:
    pieces = _pieces(size, random)
    offsets = _borders_of(pieces)
    times = event_times(offsets, random, time)
    clock = times.view(np.uint64) ^ np.uint64(1 << 63) if time is np.int64 else times
    absent = np.zeros(size if missing else 0, np.bool_)
    absent[offsets[1:-1][: len(absent)] - 1] = True
    given = label_words(size, random, 3, np.uint8)
    return Call(len(pieces.begins), (pieces, given, np.uint8(5), clock, absent, clock.dtype.type(3), np.zeros(size, np.int64)))


def _rows_limited(size: int, random: Random, slots: int) -> Call:
    pieces = _pieces(size, random)
    return Call(len(pieces.begins), (pieces, 3, np.zeros(size, np.int64)))


def _reach(size: int, random: Random, windows: bool) -> tuple[Pieces, Reach]:
    pieces, given, earliest = _labelled(size, random)
    reach.mend_earliest_ends(pieces, given, _AUTOMATON, earliest)
    if not windows:
        words = (earliest < np.iinfo(np.int32).max) @ np.array([1, 2, 4])
        return pieces, Reach(words.astype(np.uint8).reshape(-1, 1), _NOTHING, np.empty(0, np.int64))
    limits = np.zeros(size, np.int64)
    reach.limit_by_rows(0, len(pieces.begins), pieces, 3, limits)
    return pieces, Reach(np.empty((0, 0), np.uint8), earliest, limits)


def _finding(size: int, random: Random, slots: int, to: SkipTo, windows: bool = False, choices: bool = False) -> Call:
    pieces, known = _reach(size, random, windows)
    shared, count = size if to == SkipTo.NEXT_ROW and not windows else 0, len(pieces.begins)
    automaton = _AUTOMATON._replace(choices=_CHOICES) if choices else _AUTOMATON
    chains = matches.Chains(np.full(count, -1), np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros(size, np.bool_))
    crossed = np.full((count, 3) if shared else (0, 0), -1, np.int32)
    trail = matches.Trail(np.full(shared, -1, np.int32), np.zeros(shared, np.int32), crossed)
    return Call(count, (pieces, automaton, known, int(to), np.full(size, -1, np.int32), chains, trail))


def _match_crossing(size: int, random: Random, slots: int) -> Call:
    pieces, known = _reach(size, random, windows=False)
    crossed = np.zeros((len(pieces.begins), 3), np.int32)
    return Call(crossed.size, (pieces, _AUTOMATON, known, crossed))


def _match_carrying(size: int, random: Random, slots: int) -> Call:
    call = _match_crossing(size, random, slots)
    matches.cross_row_matches(0, call.size, *call.arguments)
    pieces, *_, crossed = call.arguments
    return Call(1, (pieces, crossed, np.full_like(crossed, -1)))


def _match_mending(size: int, random: Random, slots: int, to: SkipTo) -> Call:
    call = _finding(size, random, slots, to)
    matches.find_row_matches(0, call.size, *call.arguments)
    return Call(1, call.arguments)


def _found(size: int, random: Random) -> tuple[Array, Array, Array, Reach]:
    """The first rows, the beginnings of their partitions and the places of matches."""
    call = _match_mending(size, random, 1, SkipTo.PAST_LAST_ROW)
    matches.mend_row_matches(*call.arguments)
    pieces, _, known, _, lengths, *_ = call.arguments
    firsts = np.flatnonzero(lengths >= 0)
    begins = pieces.begins[np.searchsorted(pieces.offsets, firsts, "right") - 1]
    return firsts, begins, np.concatenate([[0], np.cumsum(lengths[firsts])]).astype(np.int64), known


def _sharing(size: int, random: Random, slots: int) -> Call:
    call = _match_mending(size, random, 1, SkipTo.NEXT_ROW)
    matches.mend_row_matches(*call.arguments)
    pieces, automaton, known, _, lengths, *_ = call.arguments
    offsets = _borders_of(pieces)
    members, trail = np.array([True, False, True]), np.full(size, -1, np.int32)
    return Call(len(offsets) - 1, (offsets, lengths, automaton, known, members, trail, np.full(size, -1), np.full(size, -1)))


def _following(size: int, random: Random, slots: int) -> Call:
    return Call(1, (np.arange(size) + random.integers(1, 5, size), flags(size, random, 0.1)))


def _mapping(size: int, random: Random, slots: int) -> Call:
    firsts, begins, places, known = _found(size, random)
    limits = np.full(len(firsts), size)
    return Call(len(firsts), (firsts, begins, places, _AUTOMATON, known, limits, np.zeros(places[-1], np.int32)))


def _seeking(size: int, random: Random, slots: int, step: int) -> Call:
    firsts, _, places, _ = _found(size, random)
    states = random.integers(0, 3, places[-1]).astype(np.int32)
    return Call(len(firsts), (firsts, places, states, np.array([True, False, True]), step, 1, np.zeros(len(firsts), np.int64)))


def _beside(size: int, random: Random, slots: int) -> Call:
    pieces = _pieces(size, random)
    registers = program_registers(_PROGRAM, slots)
    rows = np.zeros((2, slots), np.int64)
    own = Registers(rows, rows, registers.ints, registers.floats, registers.nulls)
    condition = NeighbourProgram(_PROGRAM, 2, np.array([0, -1]))
    bank = column_bank(size + 1, random)
    given = label_words(size, random, 3, np.uint8)
    return Call(len(pieces.begins), (condition, pieces, bank, own, np.uint8(5), given, np.zeros(size, np.bool_)))


def _borders(size: int, random: Random, slots: int, back: int) -> Call:
    offsets = _partitions(size, random)
    return Call(len(offsets) - 1, (offsets, back, np.uint8(5), np.full(size, np.uint8(7))))


# A column at a place with another one, and with totals of the match.
_COMPARED: Variants = {
    "columns": {"kind": Operand.COLUMN, "means": BY_INTS},
    "constant": {"kind": Operand.CONSTANT, "means": BY_FLOATS},
    "count": {"kind": Operand.COUNT, "means": BY_INTS},
    "sum": {"kind": Operand.TOTAL, "means": BY_INTS},
    "least": {"kind": Operand.TOTAL, "means": BY_FLOATS},
    "mean": {"kind": Operand.MEAN_OF_INTS, "means": BY_FLOATS},
    "column of integers": {"kind": Operand.COLUMN_OF_INTS, "means": BY_FLOATS},
    "sum of integers": {"kind": Operand.CONSTANT, "means": BY_INTS, "made": True},
    "sum of floats": {"kind": Operand.COLUMN, "means": BY_FLOATS, "made": True},
}


def _condition_table(kind: Operand = Operand.COLUMN, means: int = BY_INTS, made: bool = False) -> MatchConditionTable:
    """B is not less than the first row of the match, by a program, and C is not less than an operand; rows of B are kept, and their sum.

    If it is `made`, a constant is added to the operand.
    """
    number = int(kind in (Operand.TOTAL, Operand.COLUMN) and means == BY_FLOATS)
    operands = OperandTable(
        np.array([0, int(kind), int(Operand.CONSTANT)]), np.array([0, number, 0]), np.array([1, 0, 0]), np.array([0, 2, 3]),
        np.array([0.0, 0.5, 0.25]), np.array([ALONE, (Op.ADD_INT if means == BY_INTS else Op.ADD_FLOAT) if made else ALONE, ALONE]),
    )  # fmt: skip
    return MatchConditionTable(
        condition_first=np.array([0, 0, 1, 2]), code_first=np.array([0, 0]), code_last=np.array([3, 3]), result=np.array([2, 2]),
        means=np.array([BY_PROGRAM, means]), comparison=np.array([0, 5]), left=np.array([0, 0]), right=np.array([0, 1]), operands=operands,
        left_column=np.array([-1, 0 if kind == Operand.COLUMN and not made else -1]), right_column=np.array([-1, number]),
        place_first=np.array([0, 2, 4]), place=np.array([0, 1, 0, 1]), place_set=np.array([-1, 0]), from_first=np.array([True, False]),
        offset=np.array([0, 0]), distance=np.array([0, 0]), inside=np.array([False, False]), in_set=np.array([[False, True, False]]),
        step=np.array([AGGREGATIONS["sum_ints"], AGGREGATIONS["min_floats"], AGGREGATIONS["count_events"], COUNT_DISTINCT]),
        argument=np.array([[-1, 0, -1], [1, 1, 1], [2, -1, 2], [3, 3, -1]]), stand_in=np.zeros(4, np.int64),
        classifier=1, spelling=np.array([7, 8, 9]),
    )  # fmt: skip


def _run_table(kind: Operand) -> RunTable:
    """Rows of C change the total with which they are compared: the second one, or none at all."""
    total = 1 if kind == Operand.TOTAL else NO_TOTAL
    side = Side.RUNNING if total >= 0 else Side.FIXED
    return RunTable(np.array([NO_RUN, NO_RUN, total]), np.array([0, 0, int(Side.FIXED)]), np.array([0, 0, int(side)]))


def _memo(slots: int) -> Memo:
    """What is read of the first row of the match, and of the last one of a set: an integer and a float of each."""
    every, useful = np.ones((3, 4), np.bool_), np.array([True, True, False])
    columns = np.array([0, 2, 4]), np.array([0, 0, 1, 1]), np.array([False, True, False, True])
    places = np.array([0, 5, 9])
    width = MemoColumn.READ + 9 + 3 * 4
    keys, asked, lost = np.zeros((slots, width), np.int64), np.zeros(width, np.int64), np.zeros(1, np.int64)
    counts = np.array([True, False, True, True])
    return Memo(keys, asked, np.full(1, -1), lost, 1 << 62, places, *columns, useful, ~useful, every[:, :2].copy(), every, counts)


def _keeping(size: int, random: Random, slots: int) -> Call:
    larger = _memo(8 * slots)
    keys = random.integers(0, 5, (size, larger.keys.shape[1]))
    keys[:, MemoColumn.STATE] = random.integers(0, 2, size)
    return Call(1, (keys, 2, larger))


def _match_room(size: int, random: Random) -> tuple[ColumnBank, Arguments, Mapped]:
    """The columns that conditions read, the arguments of totals, and the room for what is mapped."""
    bank = column_bank(size + 1, random)
    ints, reals = integers(4 * size, random).reshape(4, size), floats(4 * size, random).reshape(4, size)
    ints[3] = random.integers(0, 5, size)
    arguments = Arguments(ints, reals, random.integers(0, 3, (4, size), np.uint8))
    registers = Registers(np.zeros(4, np.int64), np.zeros(4, np.int64), np.zeros(4, np.int64), np.zeros(4), np.zeros(4, np.bool_))
    values = AggregateValues(np.zeros((4, size + 1), np.int64), np.zeros((4, size + 1), np.int64), np.zeros((4, size + 1)))
    codes, covered = np.zeros((4, size + 1), np.int64), np.zeros(4, np.int64)
    rows, places = np.zeros((1, size), np.int64), np.zeros((4, 5), np.int64)
    return bank, arguments, Mapped(rows, np.zeros(1, np.int64), values, covered, codes, places, registers)


def _walking(
    size: int, random: Random, slots: int, to: SkipTo, kind: Operand = Operand.COLUMN, means: int = BY_INTS, made: bool = False,
    most_steps: int = 9,
) -> Call:  # fmt: skip
    offsets = _partitions(size, random)
    bank, arguments, mapped = _match_room(size, random)
    every = Reach(np.full((size, 1), 7, np.uint8), _NOTHING, np.empty(0, np.int64))
    numbers = np.array([0, len(offsets) - 1, -1, 0, 0, 0])
    table, runs = _condition_table(kind, means, made), _run_table(kind)
    lengths = np.full(size, -1, np.int32)
    return Call(1, (offsets, _STRAIGHT, every, int(to), table, runs, _PROGRAM, bank, arguments, most_steps, mapped, numbers, lengths))


def _searching(size: int, random: Random, slots: int, to: SkipTo, most_steps: int = 1 << 20, opened: bool = False) -> Call:
    pieces, known = _reach(size, random, windows=opened)
    offsets = _borders_of(pieces)
    firsts = offsets[:-1].copy()
    if opened:
        ends = np.repeat(offsets[1:], np.diff(offsets))
        known = known._replace(limits=np.where(known.limits == ends - 1, ends, known.limits))
        firsts[::3] += 1
    bank, arguments, mapped = _match_room(size, random)
    known_ends = _memo(16)
    numbers = np.array([0, len(offsets) - 1, -1, 0, 0, 0])
    state = search.SearchState(numbers, np.zeros(size + 1, np.uint16), np.zeros(size + 1, np.int64), np.zeros(4 * size, np.int32))
    searched = search.Searched(_AUTOMATON, known, int(to), _condition_table(), _PROGRAM, arguments)
    lengths = np.full(size, -1, np.int32)
    return Call(1, (offsets, firsts, searched, bank, most_steps, mapped, known_ends, state, lengths))


_NAMED = {to.name.lower(): to for to in SkipTo}
_SKIPS: Variants = {name: {"to": to} for name, to in _NAMED.items()}

ROW_PATTERN_CASES: tuple[KernelCase, ...] = (
    *cases(labels.mask_by_rows_beside, _beside, {"": {}}),
    *cases(labels.mask_borders, _borders, {"before": {"back": 2}, "behind": {"back": -2}}),
    *cases(reach.mark_reach, _reaching, {**_WORDS, "followed": {"word": np.uint8, "followed": True}}),
    *cases(reach.cross_reach, _reach_crossing, _WORDS),
    *cases(reach.carry_reach, _reach_carrying, _WORDS),
    *cases(reach.mark_wide_reach, _wide_reaching, _WORDS),
    *cases(reach.mend_reach, _mending, _WORDS),
    *cases(reach.mend_wide_reach, _wide_mending, _WORDS),
    *cases(reach.find_earliest_ends, _ending, {"": {}, "opened": {"opened": True}, "followed": {"followed": True}}),
    *cases(reach.carry_earliest_ends, _end_carrying, {"": {}}),
    *cases(reach.mend_earliest_ends, _end_mending, {"": {}}),
    *cases(
        reach.limit_by_times,
        _times_limited,
        {"uint64": {"time": np.int64, "missing": False}, "float64": {"time": np.float64, "missing": True}},
    ),
    *cases(reach.limit_by_rows, _rows_limited, {"": {}}),
    *cases(
        matches.find_row_matches,
        _finding,
        {**_SKIPS, "windows": {"to": SkipTo.NEXT_ROW, "windows": True}, "choices": {"to": SkipTo.LAST, "choices": True}},
    ),
    *cases(matches.cross_row_matches, _match_crossing, {"": {}}),
    *cases(matches.find_limited_matches, _limited_finding, {**_SKIPS, "windows": {"to": SkipTo.PAST_LAST_ROW, "windows": True}}),
    *cases(matches.carry_row_matches, _match_carrying, {"": {}}),
    *cases(matches.mend_row_matches, _match_mending, _SKIPS),
    *cases(matches.find_shared_rows, _sharing, {"": {}}),
    *cases(matches.follow_targets, _following, {"": {}}),
    *cases(matches.map_rows, _mapping, {"": {}}),
    *cases(matches.find_mapped_rows, _seeking, {"first": {"step": 1}, "last": {"step": -1}}),
    *cases(
        search.search_row_matches,
        _searching,
        {**_SKIPS, "paused": {"to": SkipTo.NEXT_ROW, "most_steps": 9}, "opened": {"to": SkipTo.NEXT_ROW, "opened": True}},
    ),
    *cases(
        walk.walk_row_matches,
        _walking,
        {
            **{name: {"to": to, "most_steps": 1 << 20} for name, to in _NAMED.items()},
            **{name: {"to": SkipTo.NEXT_ROW, **of} for name, of in _COMPARED.items()},
        },
    ),
    *cases(memo.keep_dead_ends, _keeping, {"": {}}),
)
