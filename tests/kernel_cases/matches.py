"""Cases of the kernels that read matches: expressions, flat matches, aggregates, negations."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_cep_kernels.matches import aggregates, negations
from gpu_cep_kernels.matches import flat_matches as match_kernels
from gpu_cep_kernels.matches.flat_matches import FlatMatches
from gpu_cep_kernels.rules.interpreter import CODE, evaluate_rows
from gpu_cep_kernels.rules.tables import ProgramTable
from tests.kernel_cases.calls import Call, KernelCase, cases
from tests.kernel_cases.inputs import (
    Array,
    Random,
    column_bank,
    flags,
    flat_matches,
    floats,
    integers,
    places_of,
    streams,
)
from tests.kernel_cases.tables import (
    negation_table,
    operation,
    program_registers,
    program_results,
    program_table,
)


def _lasts(found: FlatMatches) -> Array:
    return np.array([found.events[low:high].max() for low, high in zip(found.offsets, found.offsets[1:], strict=False)], np.int64)


def _match_order(size: int, random: Random, slots: int) -> Call:
    found = flat_matches(size, random)
    first = np.sort(random.integers(0, size // 4 + 1, size))
    return Call(1, (first, found, _lasts(found), np.arange(size), np.zeros(size, np.int64)))


def _grouping(size: int, random: Random, slots: int) -> Call:
    events = size // 2 + 1
    return Call(1, (random.integers(0, events, size), np.zeros(events + 2, np.int64), np.zeros(size, np.int64)))


def _merging(size: int, random: Random, slots: int) -> Call:
    """Two lists of matches, each with variables of its own, and one that both have."""
    sides = [flat_matches(number, random) for number in (size, size // 2)]
    left, right = [np.sort(random.integers(0, size // 2 + 1, len(found.counts))) for found in sides]
    number, bound = len(left) + len(right), sum(len(found.events) for found in sides)
    merged = FlatMatches(np.empty(0, np.int64), np.ones((number, 5), np.int32), np.zeros(bound, np.int64))
    return Call(1, (left, np.array([0, 2, 3]), sides[0], right, np.array([1, 2, 4]), sides[1], np.zeros(number, np.int64), merged))


def _disjoint(size: int, random: Random, slots: int) -> Call:
    first = random.integers(0, size + 1, size)
    last, stream_of = first + random.integers(0, 9, size), np.sort(random.integers(0, 3, size))
    return Call(1, (np.lexsort((first, last, stream_of)), stream_of, first, last, np.zeros(size, np.bool_)))


def _settling(size: int, random: Random, slots: int) -> Call:
    """Matches of three streams, of which some in the middle are settled."""
    streams_of, first = np.sort(random.integers(0, 3, size)), np.arange(size)
    last = first + random.integers(0, 9, size)
    late, early = first > size // 8, last < size - size // 8
    return Call(1, (streams_of, first, last, late, early, np.zeros(size, np.int64), np.zeros(size, np.bool_)))


def _offsets(size: int, random: Random, slots: int) -> Call:
    return Call(1, (flat_matches(size, random).counts, np.zeros(size + 1, np.int64)))


def _last_events(size: int, random: Random, slots: int) -> Call:
    found = flat_matches(size, random)
    return Call(size, (found.offsets, found.events, np.zeros(size, np.int64)))


def _binding(size: int, random: Random, slots: int, kept: float | None = None) -> Call:
    found = flat_matches(size, random)
    order = np.arange(size) if kept is None else random.permutation(size)[: int(size * kept)]
    places = places_of(found.counts[order, 1])
    ranks = np.full(size, -1, np.int64)
    ranks[order] = np.arange(len(order))
    given = np.empty(0, np.int64) if kept is None else ranks
    return Call(size, (1, found, np.arange(6) * 7, given, places, np.zeros(int(places[-1]), np.int64)))


def _placing(size: int, random: Random, slots: int) -> Call:
    found = flat_matches(size, random)
    sparse = (found.counts * (random.random(found.counts.shape) < 0.7)).astype(np.int32)
    rows = np.arange(6, dtype=np.int32) * 7
    ends = np.array([0, 2, 2]), np.array([True, False, True])
    return Call(size, (*ends, found._replace(counts=sparse), rows, np.zeros((size, 3), np.int32)))


def _singles(size: int, random: Random, slots: int) -> Call:
    events, rows = random.integers(0, 6, (size, 3)), np.arange(6, dtype=np.int32) * 7
    return Call(size, (np.array([2, 0]), events, rows, np.zeros((2, size), np.int64)))


def _placed(size: int, random: Random, slots: int) -> Call:
    *given, _ = _singles(size, random, slots).arguments
    return Call(size, (*given, np.zeros((size, 2), np.int32)))


def _ordering_placed(size: int, random: Random, slots: int, ordered: bool) -> Call:
    placed = random.integers(0, 1_000, (size, 3)).astype(np.int32)
    order = random.permutation(size) if ordered else np.empty(0, np.int64)
    return Call(size, (order, placed, np.zeros((3, size), np.int64)))


def _sums(size: int, random: Random, slots: int, ordered: bool) -> Call:
    """Of the matches from a third on."""
    order = random.permutation(size) if ordered else np.empty(0, np.int64)
    counts = flat_matches(size, random).counts
    return Call(1, (size // 3, size, np.array([0, 2]), order, counts, np.zeros((2, size + 1), np.int32)))


def _inverting(size: int, random: Random, slots: int) -> Call:
    return Call(1, (random.permutation(size)[: size // 2], np.full(size, -1, np.int64)))


def _repeating(size: int, random: Random, slots: int) -> Call:
    places = places_of(random.integers(0, 4, 7))
    chosen = random.integers(0, 7, size)
    repeated = places_of(np.diff(places)[chosen])
    return Call(size, (chosen, places, np.arange(int(places[-1])) * 3, repeated, np.zeros(int(repeated[-1]), np.int64)))


def _numbering(size: int, random: Random, slots: int) -> Call:
    found = flat_matches(size, random)
    bound = len(found.events)
    outputs = np.zeros(bound, np.int64), np.zeros(bound, np.int32), np.zeros(bound, np.int64)
    return Call(size, (random.integers(0, 9, size), found.counts, found.offsets, *outputs))


def _reordering(size: int, random: Random, slots: int) -> Call:
    found = flat_matches(size, random)
    order = random.permutation(size)
    offsets = places_of(np.diff(found.offsets)[order])
    gathered = found._replace(offsets=offsets, counts=np.zeros_like(found.counts), events=np.zeros_like(found.events))
    return Call(size, (order, found, gathered))


def _segments(size: int, random: Random, kind: Any) -> tuple[Array, Array, Array]:
    """Places, values and NULLs of segments of which some are empty, or all NULL."""
    places = places_of(random.integers(0, 7, size))
    values = floats(int(places[-1]), random) if kind is np.float64 else integers(int(places[-1]), random)
    return places, values, flags(len(values), random, 0.4)


def _present(size: int, random: Random, slots: int) -> Call:
    places, _, nulls = _segments(size, random, np.int64)
    return Call(size, (places, nulls, np.zeros(size, np.int64)))


def _float_sums(size: int, random: Random, slots: int) -> Call:
    return Call(size, (*_segments(size, random, np.float64), np.zeros(size)))


def _int_sums(size: int, random: Random, slots: int) -> Call:
    return Call(size, (*_segments(size, random, np.int64), np.zeros(size, np.int64), np.zeros(size, np.bool_)))


def _extremes(size: int, random: Random, slots: int, kind: Any, sign: int) -> Call:
    return Call(size, (*_segments(size, random, kind), sign, np.zeros(size, np.int64)))


def _evaluation(size: int, random: Random, slots: int, programs: ProgramTable, nulls: bool) -> Call:
    bank = column_bank(size, random, nulls)
    result = int(programs.code[-1, 1])
    return Call(size, (result, programs, bank, program_registers(programs, slots), program_results(size)))


# x * y + 0.5 > x: a product and a sum, which must not be contracted
_FLOAT_PROGRAM = program_table(
    (
        ("load_float", 0, 0, 0),
        ("load_float", 1, 1, 0),
        ("mul_float", 2, 0, 1),
        ("const_float", 3, 0, 0),
        ("add_float", 2, 2, 3),
        ("gt_float", 3, 2, 0),
    ),
    float_constants=[0.5],
)

# the second column where the first is greater than it, else 3
_CASE_PROGRAM = program_table(
    (
        ("null", 0, 0, 0),
        ("load_int", 1, 0, 0),
        ("load_int", 2, 1, 0),
        ("gt_int", 3, 1, 2),
        ("skip_unless", 3, 3, 2),
        ("coalesce_int", 0, 2, 2),
        ("skip", 0, 0, 2),
        ("const_int", 3, 0, 0),
        ("coalesce_int", 0, 3, 3),
        ("coalesce_int", 3, 0, 0),
    ),
    int_constants=[3],
)

# what only a run of an automaton can load, what has an address on the host alone, and what has no result
_APART = ("load_count", "load_aggregate", "call", "skip")


def _ruling_out(size: int, random: Random, slots: int, **given: Any) -> Call:
    """Matches of two events; no d between these, and none in the window behind the first or before the last."""
    events = streams(size, random, **given)
    first = np.sort(random.integers(0, max(size - 1, 1), size // 2))
    last = first + 1 + random.integers(0, 3, len(first))
    pairs = np.stack([first, np.minimum(last, max(size - 1, 0))], axis=1)
    matches = FlatMatches(places_of(np.full(len(pairs), 2)), np.empty((0, 0), np.int32), pairs.ravel())
    places = np.flatnonzero(random.random(size) < 0.2)
    scopes: list[Any] = [(2, (0,), (1,), places), (2, (1,), (), places), (2, (), (0,), places)] if size else []
    ruling = negation_table(scopes, events.offsets, events.times, events.times, events.length)
    batch = negations.NegatedEvents(0, events.next_events)
    return Call(1, (matches, ruling, batch, np.zeros(len(scopes) + 1, np.int64), np.zeros(len(pairs) + 1, np.int64)))


MATCH_CASES: tuple[KernelCase, ...] = (
    *cases(match_kernels.order_matches, _match_order, {"": {}}),
    *cases(match_kernels.group_matches, _grouping, {"": {}}),
    *cases(match_kernels.merge_matches, _merging, {"": {}}),
    *cases(match_kernels.select_disjoint, _disjoint, {"": {}}),
    *cases(match_kernels.settle_disjoint, _settling, {"": {}}),
    *cases(match_kernels.match_offsets, _offsets, {"": {}}),
    *cases(match_kernels.last_events, _last_events, {"": {}}),
    *cases(match_kernels.sum_bound, _sums, {"as-they-are": {"ordered": False}, "ordered": {"ordered": True}}),
    *cases(match_kernels.place_bound, _placing, {"": {}}),
    *cases(match_kernels.gather_singles, _singles, {"": {}}),
    *cases(match_kernels.place_rows, _placed, {"": {}}),
    *cases(match_kernels.order_placed, _ordering_placed, {"": {"ordered": True}, "as-they-are": {"ordered": False}}),
    *cases(match_kernels.invert_order, _inverting, {"": {}}),
    *cases(match_kernels.repeat_bindings, _repeating, {"": {}}),
    *cases(match_kernels.number_bound, _numbering, {"": {}}),
    *cases(
        match_kernels.split_binding,
        _binding,
        {"": {}, "ordered": {"kept": 1.0}, "some": {"kept": 0.5}},
    ),
    *cases(
        match_kernels.gather_matches,
        _reordering,
        {"": {}},
    ),
    *cases(aggregates.count_present, _present, {"": {}}),
    *cases(aggregates.sum_floats, _float_sums, {"": {}}),
    *cases(aggregates.sum_ints, _int_sums, {"": {}}),
    *cases(
        aggregates.extreme_places,
        _extremes,
        {"int64-least": {"kind": np.int64, "sign": 1}, "float64-greatest": {"kind": np.float64, "sign": -1}},
    ),
    *cases(
        evaluate_rows,
        _evaluation,
        {"program": {"programs": _FLOAT_PROGRAM, "nulls": True}},
        ("bank.floats", "bank.float_nulls"),
    ),
    *cases(
        evaluate_rows,
        _evaluation,
        {
            "case": {"programs": _CASE_PROGRAM, "nulls": True},
            **{name: {"programs": operation(name), "nulls": True} for name in CODE if not name.startswith(_APART)},
        },
    ),
    *cases(negations.keep_by_negations, _ruling_out, {"int64": {}, "float64": {"time": np.float64}}),
)
