"""Build the indexes by which searches jump: zone maps, and hash buckets of a batch's events."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gpu_cep_kernels.automaton.jumps import BLOCK, UNKNOWN, UNUSABLE, Bounds, Jumps, JumpTable, ValueBuckets, ZoneMaps
from gpu_cep_kernels.matches.groups import order_by_group
from gpu_cep_kernels.matches.hashing import HashKeys, PartialMatches, hash_rows
from gpu_cep_kernels.rules.scalars import EQ, GE, GT, UNBOUNDED
from gpu_cep_kernels.rules.tables import Bytes, ColumnBank, Flags, Ints, Places, Words

_MOST_BUCKETS = 1 << 22
# Two integers up to this size have a sum and a difference of 64 bits.
_LARGE = (1 << 62) - 1
_NO_INTS = np.empty(0, np.int64)


def new_bounds(state: Bytes) -> Bounds:
    """Return bounds for one enumeration's jumps; `state` is what is known of each."""
    return Bounds(state.copy(), np.zeros(len(state), np.int64), np.zeros(len(state)))


def first_state(table: JumpTable, bank: ColumnBank, base: int, size: int) -> Bytes:
    """Return what is known of each bound before the first search: nothing, or that it is never used.

    It is not used if the sum or difference that the condition computes may overflow for some events of the
    batch, which has `size` of them: to skip these would hide the error.
    """
    state = np.full(len(table.condition), UNKNOWN, np.uint8)
    for j in np.flatnonzero(_sums_of_integers(table)).tolist():
        columns = [column for column in (int(table.column[j]), int(table.beside[j])) if column >= 0]
        values = bank.ints[columns, base : base + size]
        if size and (values.max() > _LARGE or values.min() < -_LARGE):
            state[j] = UNUSABLE
    return state


def _sums_of_integers(table: JumpTable) -> Flags:
    """Return for each jump whether the condition computes a sum or a difference with the new event's integer."""
    return (table.added >= 0) & ~table.floating


def no_jumps(table: JumpTable) -> Jumps:
    """Return jumps without indexes, for searches that pass over events one by one.

    Whether sums of integers may overflow is not asked for them, so that their bounds are not used.
    """
    state = np.where(_sums_of_integers(table), UNUSABLE, UNKNOWN).astype(np.uint8)
    return Jumps(table, _NO_ZONES, _NO_BUCKETS, new_bounds(state), UNBOUNDED)


def jump_indexes(table: JumpTable, bank: ColumnBank, base: int, occurrence: Places) -> tuple[ZoneMaps, ValueBuckets]:
    """Return the indexes of all jumps over a batch; jumps with one key share an index.

    Event e of the batch stands in row ``base + e`` of the bank. ``occurrence[v, e]`` is the first event of v from e on.
    """
    size = occurrence.shape[1] - 2
    zones: dict[bool, dict[int, npt.NDArray[Any]]] = {False: {}, True: {}}
    buckets: dict[int, tuple[Ints, Places]] = {}
    for v in range(len(table.first) - 1):
        present = occurrence[v, :size] == np.arange(size, dtype=np.int32)
        for j in range(table.first[v], table.first[v + 1]):
            floating, column, k = bool(table.floating[j]), int(table.column[j]), int(table.key[j])
            usable = present & ~_nulls(bank.float_nulls if floating else bank.int_nulls, column, base, size)
            values = (bank.floats if floating else bank.ints)[column, base : base + size]
            if table.comparison[j] == EQ and k not in buckets:
                buckets[k] = value_buckets(np.flatnonzero(usable).astype(np.int32), bank, base, column, floating)
            elif table.comparison[j] != EQ and k not in zones[floating]:
                zones[floating][k] = _zone_map(values, usable, greatest=table.comparison[j] in (GT, GE))
    return _stack_zones(size, zones), _join_buckets(list(buckets.values()))


def _nulls(words: Words, column: int, base: int, size: int) -> Flags:
    """Return for each event of the batch whether a column of the bank is NULL there."""
    if not len(words):
        return np.zeros(size, np.bool_)
    return (words[base : base + size] >> np.uint64(column)) & np.uint64(1) != 0


def _zone_map(values: npt.NDArray[Any], usable: Flags, *, greatest: bool) -> npt.NDArray[Any]:
    """Return a zone map: the greatest or least usable value of each block of events, then of each block of blocks, up to one."""
    usable = usable & (values == values)
    extreme = np.maximum if greatest else np.minimum
    if values.dtype.kind == "f":
        none: Any = -np.inf if greatest else np.inf
    else:
        none = np.iinfo(np.int64).min if greatest else np.iinfo(np.int64).max
    level = extreme.reduceat(np.where(usable, values, none), np.arange(0, len(values), BLOCK))
    levels = [level]
    while len(level) > 1:
        level = extreme.reduceat(level, np.arange(0, len(level), BLOCK))
        levels.append(level)
    return np.concatenate(levels)


def _stack_zones(size: int, zones: dict[bool, dict[int, npt.NDArray[Any]]]) -> ZoneMaps:
    """Return all zone maps as one int64 and one float64 matrix; their levels begin at the same places."""
    sizes = [-(-size // BLOCK)]
    while sizes[-1] > 1:
        sizes.append(-(-sizes[-1] // BLOCK))
    level = _offsets(sizes)
    ints, floats = [*zones[False].values()], [*zones[True].values()]
    return ZoneMaps(np.array(ints, np.int64).reshape(-1, level[-1]), np.array(floats, np.float64).reshape(-1, level[-1]), level)


def value_buckets(events: Places, bank: ColumnBank, base: int, column: int, floating: bool) -> tuple[Ints, Places]:
    """Return where each bucket begins, with the end of the last one, and the events bucket by bucket; values are hashed.

    Buckets are a power of two, at most about as many as events. Event e stands in row ``base + e`` of the bank.
    """
    number = min(1 << max(len(events) - 1, 0).bit_length(), _MOST_BUCKETS)
    found = np.empty(len(events), np.int64)
    keys = HashKeys(np.zeros(1, np.int64), np.array([column], np.int64), np.array([floating]))
    rows = PartialMatches(events[np.newaxis], events, events)
    hash_rows(0, len(events), rows, keys, bank.ints, bank.floats.view(np.int64), base, number - 1, found)
    order, border = order_by_group(found, number)
    return border, events[order]


def _join_buckets(buckets: list[tuple[Ints, Places]]) -> ValueBuckets:
    """Return the indexes of equal values, each given as borders and events, in one table."""
    numbers = [len(border) - 1 for border, _ in buckets]
    begins = _offsets([len(events) for _, events in buckets])
    return ValueBuckets(
        first=_offsets([number + 1 for number in numbers])[:-1],
        mask=np.array(numbers, np.int64) - 1,
        border=np.concatenate([_NO_INTS, *(border + begin for (border, _), begin in zip(buckets, begins[:-1], strict=True))]),
        events=np.concatenate([np.empty(0, np.int32), *(events for _, events in buckets)]),
    )


def _offsets(sizes: list[int]) -> Ints:
    """Return where each part of the given size begins, with the end of the last one."""
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64)


_NO_ZONES = ZoneMaps(_NO_INTS.reshape(0, 0), np.empty((0, 0)), np.zeros(1, np.int64))
_NO_BUCKETS = _join_buckets([])
