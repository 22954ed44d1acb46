"""Cases of the kernels that judge conditions between neighbours, and that read contiguous matches off labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_cep_kernels.labels_decide import runs
from gpu_cep_kernels.matches import disjoint
from gpu_cep_kernels.phase_one import neighbour_conditions
from gpu_cep_kernels.rules.interpreter import CODE, combine_floats, combine_ints
from gpu_cep_kernels.rules.scalars import COMPARISONS, UNBOUNDED
from gpu_cep_kernels.rules.tables import BY_FLOATS, BY_INTS, Registers
from tests.kernel_cases.calls import Call, KernelCase, Variants, cases
from tests.kernel_cases.inputs import Array, Random, column_bank, flags, floats, integers, label_words, places_of, streams
from tests.kernel_cases.tables import program_registers, program_table

_WORDS: Variants = {"uint8": {"word": np.uint8}, "uint64": {"word": np.uint64}}
_CLOCKS: Variants = {"uint64": {}, "float64": {"time": np.float64}}
# The sum of this event's value and that of the one two places before is above their product.
_PROGRAM = program_table(
    (
        ("load_int", 0, 0, 0),
        ("load_int", 1, 0, 1),
        ("add_int", 2, 0, 1),
        ("mul_int", 3, 0, 1),
        ("gt_int", 4, 2, 3),
    )
)


def _columns(size: int, random: Random, slots: int, comparison: str, kind: Any, word: Any) -> Call:
    left, right = ((floats if kind is np.float64 else integers)(size, random) for _ in range(2))
    return Call(size, (left, right, COMPARISONS[comparison], word(5), np.full(size, word(7))))


def _combining(size: int, random: Random, slots: int, operation: str) -> Call:
    kind = np.float64 if operation.endswith("float") else np.int64
    left, right = ((floats if kind is np.float64 else integers)(size, random) for _ in range(2))
    results = (np.zeros(size, kind), np.zeros(size, np.bool_))[: 2 if kind is np.int64 else 1]
    return Call(size, (CODE[operation], left, right, *results))


def _nulls(size: int, random: Random, slots: int, word: Any) -> Call:
    return Call(size, (random.integers(0, 4, size, np.uint64), np.uint64(2), word(5), np.full(size, word(7))))


def _neighbours(size: int, random: Random, slots: int, word: Any, nulls: bool = True) -> Call:
    """A condition for each comparison, of integers and of floats, with the events before; those of this batch begin at row 1."""
    codes = np.array([*COMPARISONS.values()] * 2)
    means = np.repeat([BY_INTS, BY_FLOATS], len(COMPARISONS))
    back = random.integers(0, 4, (len(codes), 2))
    repeated = flags(len(codes), random, 0.5)
    conditions = neighbour_conditions.NeighbourComparisons(
        means, codes, random.integers(0, 2, (len(codes), 2)), back, repeated, random.integers(1, 128, len(codes)).astype(np.uint64)
    )
    return Call(size, (conditions, column_bank(size + 1, random, nulls), 1, *(label_words(size, random, 7, word) for _ in range(2))))


def _program(size: int, random: Random, slots: int, word: Any) -> Call:
    registers = program_registers(_PROGRAM, slots)
    rows = np.zeros((2, slots), np.int64)
    own = Registers(rows, rows, registers.ints, registers.floats, registers.nulls)
    labels = label_words(size, random, 3, word)
    condition = neighbour_conditions.NeighbourProgram(_PROGRAM, 4, np.array([0, 2]))
    return Call(size, (condition, column_bank(size + 2, random), 2, own, word(5), labels, np.zeros(size, np.bool_)))


def _repeats(size: int, random: Random, slots: int, word: Any) -> Call:
    return Call(1, (label_words(size, random, 3, word), word(2), np.zeros(size + 2, np.int32)))


def _sequence(enters: Array, repeats: Array) -> runs.Sequence:
    """a, then b+, then two or three c."""
    until = np.zeros((2, len(enters) + 2), np.int32)
    for row, mask in enumerate((2, 4)):
        runs.find_repeats(repeats, repeats.dtype.type(mask), until[row])
    maximum = np.array([1, UNBOUNDED, 3])
    return runs.Sequence(enters, np.array([1, 2, 4], enters.dtype), np.array([-1, 0, 1]), until, np.array([1, 1, 2]), maximum)


def _reading(size: int, random: Random, time: Any = np.int64, word: Any = np.uint8) -> tuple[Array, Any, runs.Sequence]:
    """The clock and the length of windows, and a sequence; each event may enter one variable, and often repeats the one before."""
    events = streams(size, random, time=time)
    letters = random.integers(0, 4, size)
    again = flags(size, random, 0.6)
    again[:1] = False
    letters = letters[np.maximum.accumulate(np.where(again, 0, np.arange(size)))]
    enters = np.where(letters < 3, 1 << letters, 0).astype(word)
    return events.times, events.length, _sequence(enters, enters)


def _starting(size: int, random: Random, slots: int, word: Any) -> Call:
    *_, sequence = _reading(size, random, word=word)
    return Call(1, (size, sequence.enters, sequence.mask[:2], np.zeros(size + 1, np.int64)))


def _last(size: int, random: Random, slots: int, **given: Any) -> Call:
    return Call(size, (np.arange(size), *_reading(size, random, **given), np.zeros(size, np.int32)))


def _counting(size: int, random: Random, slots: int, **given: Any) -> Call:
    reading, last = _reading(size, random, **given), np.zeros(size, np.int32)
    runs.find_last_events(0, size, np.arange(size), *reading, last)
    starts = np.flatnonzero(last >= 0)
    return Call(len(starts), (starts, *reading, np.zeros((len(starts), 3), np.int32)))


def _listing(size: int, random: Random, slots: int) -> Call:
    offsets = places_of(random.integers(1, 5, size))
    return Call(size, (100, np.arange(size) * 2, offsets, np.zeros(int(offsets[-1]), np.int64)))


def _ends(size: int, random: Random) -> Array:
    last = (np.arange(size) + random.integers(0, 9, size)).astype(np.int32)
    last[flags(size, random, 0.4)] = -1
    return last


def _keeping(size: int, random: Random, slots: int) -> Call:
    return Call(1, (np.arange(size), _ends(size, random)))


def _dropping(size: int, random: Random, slots: int) -> Call:
    last = _ends(size, random)
    return Call(1, (last[last >= 0],))


def _apart(size: int, random: Random, slots: int) -> Call:
    first, last = _in_order(size, random)
    return Call(1, (first, last, np.zeros(len(first) + 1, np.int64)))


def _in_order(size: int, random: Random) -> tuple[Array, Array]:
    """The first and last events of matches; both ascend."""
    starts, last = np.arange(size), _ends(size, random)
    disjoint.drop_containing(last)
    count = runs.keep_matches(starts, last)
    return starts[:count], last[:count]


# Blocks of eight matches, and parts of two.
_BLOCK, _PART = 3, 1


def _finding_ends(size: int, random: Random, slots: int) -> Call:
    last = _ends(size, random)
    blocks = -(-size >> _BLOCK)
    return Call(blocks, (_BLOCK, last, np.zeros(blocks, np.int32)))


def _dropping_in_blocks(size: int, random: Random, slots: int) -> Call:
    last = np.arange(size, dtype=np.int32) + random.integers(0, 9, size, np.int32)
    blocks = -(-size >> _BLOCK)
    return Call(blocks, (_BLOCK, np.arange(1, blocks + 1, dtype=np.int32) << _BLOCK, last))


def _following(size: int, random: Random, slots: int) -> Call:
    first, last = _in_order(size, random)
    return Call(len(first), (first, last, np.zeros(len(first), np.int32)))


def _leaving(size: int, random: Random, slots: int) -> Call:
    *_, following = arguments = _following(size, random, slots).arguments
    disjoint.follow_matches(0, len(following), *arguments)
    return Call(len(following), (_PART, following, np.zeros(len(following), np.int32)))


def _entering(size: int, random: Random, slots: int) -> Call:
    """Hops enter every other block, at its second match."""
    *_, exits = arguments = _leaving(size, random, slots).arguments
    disjoint.leave_blocks(0, len(exits), *arguments)
    entered = (np.arange(-(-len(exits) >> _BLOCK), dtype=np.int32) << _BLOCK) + 1
    entered[1::2] = disjoint.NOWHERE
    return Call(len(entered), (_BLOCK, _PART, entered, exits, np.zeros(-(-len(exits) >> _PART), np.int32)))


def _ranges(size: int, random: Random) -> tuple[Array, Array, Array]:
    """Where matches begin, how many events they bind, and the rows of events."""
    return np.arange(size), random.integers(1, 4, (size, 3)).astype(np.int32), np.arange(size + 12, dtype=np.int32)[::-1].copy()


def _listing_rows(size: int, random: Random, slots: int) -> Call:
    first, counts, rows = _ranges(size, random)
    places = np.stack([places_of(counts[:, v]) for v in (0, 2)]).astype(np.int32)
    begins = places_of(places[:, -1])
    lists = np.zeros(int(begins[-1]), np.int64)
    return Call(size, (np.array([0, 2]), first, counts, rows, places, begins, lists))


def _picking(size: int, random: Random, slots: int) -> Call:
    ends = np.array([0, 2, 2]), np.array([True, False, True])
    return Call(size, (*ends, *_ranges(size, random), np.zeros((3, size), np.int64)))


def _gathering(size: int, random: Random, slots: int) -> Call:
    counts = random.integers(1, 4, (size, 3)).astype(np.int32)
    given = runs.Ranges(np.arange(size), np.arange(size) + counts.sum(axis=1), counts)
    gathered = runs.Ranges._make(np.zeros_like(array) for array in given)
    return Call(size, (random.permutation(size), given, gathered))


RUN_CASES: tuple[KernelCase, ...] = (
    *cases(
        neighbour_conditions.mask_by_columns,
        _columns,
        {
            **{f"int64-{name}": {"comparison": name, "kind": np.int64, "word": np.uint8} for name in COMPARISONS},
            **{f"float64-{name}": {"comparison": name, "kind": np.float64, "word": np.uint64} for name in COMPARISONS},
        },
        ("left", "right"),
    ),
    *cases(combine_ints, _combining, {name: {"operation": f"{name}_int"} for name in ("add", "sub", "mul")}, ("left", "right")),
    *cases(combine_floats, _combining, {name: {"operation": f"{name}_float"} for name in ("add", "sub", "mul")}, ("left", "right")),
    *cases(neighbour_conditions.mask_by_nulls, _nulls, _WORDS, ("nulls",)),
    *cases(neighbour_conditions.mask_by_neighbours, _neighbours, {**_WORDS, "no-nulls": {"word": np.uint8, "nulls": False}}),
    *cases(neighbour_conditions.mask_by_program, _program, _WORDS),
    *cases(runs.find_repeats, _repeats, _WORDS),
    *cases(runs.select_entering, _starting, _WORDS),
    *cases(runs.find_last_events, _last, {**_CLOCKS, "uint64-words": {"word": np.uint64}}),
    *cases(runs.count_bound, _counting, _CLOCKS),
    *cases(runs.list_events, _listing, {"": {}}),
    *cases(runs.keep_matches, _keeping, {"": {}}),
    *cases(disjoint.drop_containing, _dropping, {"": {}}),
    *cases(disjoint.take_apart, _apart, {"": {}}),
    *cases(disjoint.find_first_completions, _finding_ends, {"": {}}, ("last",)),
    *cases(disjoint.drop_containing_in_blocks, _dropping_in_blocks, {"": {}}, ("last",)),
    *cases(disjoint.follow_matches, _following, {"": {}}, ("first", "last")),
    *cases(disjoint.leave_blocks, _leaving, {"": {}}, ("following",)),
    *cases(disjoint.enter_blocks, _entering, {"": {}}),
    *cases(runs.list_rows, _listing_rows, {"": {}}),
    *cases(runs.pick_rows, _picking, {"": {}}),
    *cases(runs.gather_ranges, _gathering, {"": {}}),
)
