"""Cases of the kernels that search for matches of SQL's row patterns whose conditions read the match."""

from __future__ import annotations

import numpy as np

from gpu_cep_kernels.row_patterns import memo, search, walk
from gpu_cep_kernels.row_patterns.conditions import COUNT_DISTINCT, Arguments, Mapped, MatchConditionTable
from gpu_cep_kernels.row_patterns.memo import Memo, MemoColumn
from gpu_cep_kernels.row_patterns.operands import ALONE, Operand, OperandTable
from gpu_cep_kernels.row_patterns.runs import NO_RUN, NO_TOTAL, RunTable, Side
from gpu_cep_kernels.row_patterns.tables import Reach, RowAutomatonTable, SkipTo
from gpu_cep_kernels.rules.interpreter import Op
from gpu_cep_kernels.rules.running import AGGREGATIONS
from gpu_cep_kernels.rules.tables import BY_FLOATS, BY_INTS, BY_PROGRAM, AggregateValues, ColumnBank, Registers
from tests.kernel_cases.calls import Call, KernelCase, Variants, cases
from tests.kernel_cases.inputs import Random, column_bank, floats, integers
from tests.kernel_cases.row_matches import NAMED_SKIPS, PROGRAM, SKIPS
from tests.kernel_cases.row_reach import AUTOMATON, NOTHING, borders_of, partitions, reach_of

# A B C+, in which no row leaves a choice.
_STRAIGHT = RowAutomatonTable(
    variable=np.array([0, 1, 2], np.uint16),
    move_first=np.array([0, 1, 2, 4, 5, 6]),
    moves=np.array([1, 2, 2, -1, 0, 0], np.int32),
    ends=np.array([False, False, True]),
    target=np.array([False, True, True]),
    choices=np.empty((0, 0), np.int32),
)
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
    offsets = partitions(size, random)
    bank, arguments, mapped = _match_room(size, random)
    every = Reach(np.full((size, 1), 7, np.uint8), NOTHING, np.empty(0, np.int64))
    numbers = np.array([0, len(offsets) - 1, -1, 0, 0, 0])
    table, runs = _condition_table(kind, means, made), _run_table(kind)
    lengths = np.full(size, -1, np.int32)
    return Call(1, (offsets, _STRAIGHT, every, int(to), table, runs, PROGRAM, bank, arguments, most_steps, mapped, numbers, lengths))


def _searching(size: int, random: Random, slots: int, to: SkipTo, most_steps: int = 1 << 20, opened: bool = False) -> Call:
    pieces, known = reach_of(size, random, windows=opened)
    offsets = borders_of(pieces)
    firsts = offsets[:-1].copy()
    if opened:
        ends = np.repeat(offsets[1:], np.diff(offsets))
        known = known._replace(limits=np.where(known.limits == ends - 1, ends, known.limits))
        firsts[::3] += 1
    bank, arguments, mapped = _match_room(size, random)
    known_ends = _memo(16)
    numbers = np.array([0, len(offsets) - 1, -1, 0, 0, 0])
    state = search.SearchState(numbers, np.zeros(size + 1, np.uint16), np.zeros(size + 1, np.int64), np.zeros(4 * size, np.int32))
    searched = search.Searched(AUTOMATON, known, int(to), _condition_table(), PROGRAM, arguments)
    lengths = np.full(size, -1, np.int32)
    return Call(1, (offsets, firsts, searched, bank, most_steps, mapped, known_ends, state, lengths))


ROW_SEARCH_CASES: tuple[KernelCase, ...] = (
    *cases(
        search.search_row_matches,
        _searching,
        {**SKIPS, "paused": {"to": SkipTo.NEXT_ROW, "most_steps": 9}, "opened": {"to": SkipTo.NEXT_ROW, "opened": True}},
    ),
    *cases(
        walk.walk_row_matches,
        _walking,
        {
            **{name: {"to": to, "most_steps": 1 << 20} for name, to in NAMED_SKIPS.items()},
            **{name: {"to": SkipTo.NEXT_ROW, **of} for name, of in _COMPARED.items()},
        },
    ),
    *cases(memo.keep_dead_ends, _keeping, {"": {}}),
)
