"""Cases of the kernels that join partial matches."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_cep_kernels.joins import table_joins
from gpu_cep_kernels.joins.table_joins import APART, BEFORE, BEHIND, Buckets, Partners, Sides, Tables
from gpu_cep_kernels.matches import hashing
from gpu_cep_kernels.matches.hashing import HashKeys, PartialMatches
from gpu_cep_kernels.phase_one.input_buffers import Streams as BatchStreams
from gpu_cep_kernels.rules.path_arrays import new_path
from gpu_cep_kernels.rules.tables import Conditions, Criteria, Registers
from tests.kernel_cases.calls import Call, KernelCase, cases
from tests.kernel_cases.inputs import Array, Random, Streams, column_bank, places_of, streams
from tests.kernel_cases.tables import PROGRAMS, SINGLE, aggregate_table, condition_table, negation_table, pattern_table, program_registers

_BUCKETS = 4


def _partial_matches(events: Streams, random: Random, places: int) -> PartialMatches:
    """Some events, each with others of its stream, in order of first event."""
    size = len(events.labels)
    ends = events.stream_end.astype(np.int64)
    first = np.sort(random.integers(0, max(size, 1), size))
    others = [first + random.integers(0, 8, size) % (ends[first] - first) for _ in range(places - 1)]
    table = np.stack([first, *others]).astype(np.int32)
    table = np.stack([row[random.permutation(places)] for row in table.T] or [table[:, 0]]).T if size else table
    return PartialMatches(table.copy(), table.min(axis=0), table.max(axis=0))


def _sides(left: int, right: int, tests: bool) -> Sides:
    """Variables 0, 1 and 2 on the left, as many as `left`, and on the right."""
    variables = np.arange(left + right)
    related = [(0, place, relation) for place, relation in zip(range(right), (APART, BEHIND, BEFORE), strict=False)] if tests else []
    one, other, relation = np.array(related, np.int64).reshape(-1, 3).T.copy()
    return Sides(
        left_place=np.where(variables < left, variables, -1),
        right_place=np.where(variables >= left, variables - left, -1),
        preceding=np.arange(0 if tests else 1),
        succeeding=np.arange(left - 1),
        one=one,
        other=other,
        relation=relation,
        conditions=np.array([c for c, condition in enumerate(SINGLE) if _relates([part.variable for part in condition.parts], left)]),
    )


def _relates(variables: list[int], left: int) -> bool:
    return min(variables) < left <= max(variables)


def _whole(events: Streams, strict: bool) -> BatchStreams:
    return BatchStreams(events.offsets, events.times, events.times, events.length, strict)


def _buckets(size: int, random: Random, hashed: bool) -> Buckets:
    if not hashed:
        return Buckets(np.array([0, size]), np.empty(0, np.int64))
    borders = np.sort(random.integers(0, size + 1, _BUCKETS - 1))
    return Buckets(np.array([0, *borders, size]), random.integers(0, _BUCKETS, size))


def _hashes(size: int, random: Random, slots: int) -> Call:
    table = _partial_matches(streams(size, random), random, 2)
    bank = column_bank(size, random)
    keys = HashKeys(np.array([1, 0]), np.array([0, 1]), np.array([False, True]))
    return Call(size, (table, keys, bank.ints, bank.floats.view(np.int64), 0, _BUCKETS - 1, np.zeros(size, np.int64)))


def _ranges(size: int, random: Random, slots: int, left: int = 1, strict: bool = True, hashed: bool = False, **given: Any) -> Call:
    events = streams(size, random, **given)
    one, other = _partial_matches(events, random, left), _partial_matches(events, random, 3 - left)
    first, number = np.zeros(size, np.int64), np.zeros(size, np.int64)
    own = size // 2
    sides = _sides(left, 3 - left, tests=False)
    return Call(size, (Tables(one, other, sides), _buckets(size, random, hashed), _whole(events, strict), 0, own, first, number))


def _filtering(size: int, random: Random, slots: int, left: int = 1, strict: bool = True, **given: Any) -> Call:
    events = streams(size, random, **given)
    one, other = _partial_matches(events, random, left), _partial_matches(events, random, 3 - left)
    conditions = Conditions(condition_table(3, SINGLE), aggregate_table(3, ()), PROGRAMS, column_bank(size, random), 0)
    registers = program_registers(PROGRAMS, slots)
    rows = np.zeros((conditions.table.roles, slots), np.int64)
    fixed = Tables(one, other, _sides(left, 3 - left, tests=True)), _whole(events, strict), conditions
    begin = size // 3
    return Call(size - begin, (begin, *fixed, Registers(rows, rows, *registers[2:]), _partners(_candidates(events, one, other)[begin:])))


def _candidates(events: Streams, one: PartialMatches, other: PartialMatches) -> Array:
    """For each row of one table the first of another of its stream, and their number, as [row, 2]; all in order of first event."""
    starts = events.offsets[np.searchsorted(events.offsets, one.first, side="right") - 1]
    ends = np.minimum(events.stream_end[one.first], one.first + 12) if len(one.first) else one.first
    low, high = np.searchsorted(other.first, np.maximum(starts, one.first - 12)), np.searchsorted(other.first, ends)
    return np.stack([low, np.maximum(high - low, 0)], axis=1)


def _partners(candidates: Array) -> Partners:
    rows = len(candidates)
    first, size = candidates.T.astype(np.int64).copy()
    places = places_of(size)
    found = np.zeros(int(places[-1]), np.int32)
    return Partners(first, size, places[:-1].copy(), found, np.zeros(rows, np.int64), np.zeros(rows, np.int64))


def _joining(size: int, random: Random, slots: int, left: int) -> Call:
    events = streams(size, random)
    one, other = _partial_matches(events, random, left), _partial_matches(events, random, 3 - left)
    begin = size // 3
    partners = _partners(np.stack([np.zeros(size - begin, np.int64), random.integers(0, 4, size - begin)], axis=1))
    partners.rows[:] = random.integers(0, max(size, 1), len(partners.rows))
    partners.number[:] = partners.size
    rows = len(partners.rows)
    joined = PartialMatches(np.zeros((3, rows), np.int32), np.zeros(rows, np.int32), np.zeros(rows, np.int32))
    return Call(size - begin, (begin, one, other, partners, partners.place.copy(), joined))


def _judging(size: int, random: Random, slots: int, **given: Any) -> Call:
    """Rows of b and a are ruled out by a d between these, or by one in the window behind a."""
    events = streams(size, random, **given)
    table = _partial_matches(events, random, 2)
    places = np.flatnonzero(random.random(size) < 0.1)
    listed = [(3, (0,), (1,), places), (3, (0,), (), places)]
    negations = negation_table(listed, events.offsets, events.times, events.times, events.length)
    conditions = Conditions(condition_table(4, SINGLE), aggregate_table(4, ()), PROGRAMS, column_bank(size, random), 0)
    pattern = pattern_table((1, 2), ((1, 1), (1, 1), (1, 1)))
    run, allowed = new_path(2, pattern, conditions), np.zeros(size, np.bool_)
    return Call(1, (size // 3, size, table, np.array([1, 0]), np.arange(2), Criteria(pattern, conditions, negations), run, allowed))


JOIN_CASES: tuple[KernelCase, ...] = (
    *cases(hashing.hash_rows, _hashes, {"": {}}),
    *cases(
        table_joins.find_ranges,
        _ranges,
        {
            "int64": {},
            "float64": {"time": np.float64},
            "untied": {"strict": False},
            "hashed": {"hashed": True, "left": 2},
        },
    ),
    *cases(
        table_joins.filter_partners,
        _filtering,
        {"int64": {}, "float64": {"time": np.float64}, "untied": {"strict": False}, "right-single": {"left": 2}},
    ),
    *cases(table_joins.join_rows, _joining, {"left-single": {"left": 1}, "right-single": {"left": 2}}),
    *cases(table_joins.judge_rows, _judging, {"int64": {}, "float64": {"time": np.float64}}),
)
