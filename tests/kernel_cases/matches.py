"""Cases of the kernels that find and read matches: expressions, the two automata, flat matches, aggregates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpu_cep.engine.lowering.chains import chain_of
from gpu_cep_kernels.automaton import chain_runs, enumeration, single_runs
from gpu_cep_kernels.automaton.dead_ends import ALWAYS, LAST_EVENT, NEVER, StateTable, new_dead_ends
from gpu_cep_kernels.automaton.enumeration import CandidateWindows, Mode, Shortcuts
from gpu_cep_kernels.automaton.single_runs import CURRENT, FURTHER_ONLY, Judgements, Walk
from gpu_cep_kernels.matches import aggregates, negations
from gpu_cep_kernels.matches import flat_matches as match_kernels
from gpu_cep_kernels.rules.cut import KEEP_ALL, KEEP_DISJOINT, KEEP_EARLIEST
from gpu_cep_kernels.rules.interpreter import OPCODES, evaluate_rows
from gpu_cep_kernels.rules.tables import Conditions, Criteria, EventTable, MatchTable, ProgramTable, Strategy, new_path
from tests.kernel_cases.calls import Call, KernelCase, cases
from tests.kernel_cases.inputs import (
    Array,
    FlatMatches,
    Random,
    column_bank,
    ends_of,
    flags,
    flat_matches,
    floats,
    integers,
    places_of,
    start_events,
    streams,
)
from tests.kernel_cases.jumps import JUMPING, JUMPING_PROGRAMS, jumps, no_jumps
from tests.kernel_cases.tables import (
    AGGREGATES,
    FINALLY,
    ITERATED,
    ITERATION_PROGRAMS,
    MEAN,
    MEAN_PROGRAMS,
    PROGRAMS,
    QUANTIFIED,
    Condition,
    aggregate_table,
    condition_table,
    negation_table,
    operation,
    pattern_table,
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


def _disjoint(size: int, random: Random, slots: int) -> Call:
    first = random.integers(0, size + 1, size)
    last, stream_of = first + random.integers(0, 9, size), np.sort(random.integers(0, 3, size))
    return Call(1, (np.lexsort((first, last, stream_of)), stream_of, first, last, np.zeros(size, np.bool_)))


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
    return Call(size, (np.array([0, 2]), found._replace(counts=sparse), rows, np.zeros((size, 2), np.int32)))


def _singles(size: int, random: Random, slots: int) -> Call:
    return Call(size, (random.integers(0, 6, (size, 3)), np.arange(6, dtype=np.int32) * 7, np.zeros((3, size), np.int64)))


def _placed(size: int, random: Random, slots: int) -> Call:
    events, rows, _ = _singles(size, random, slots).arguments
    return Call(size, (events, rows, np.zeros((size, 3), np.int32)))


def _ordering_placed(size: int, random: Random, slots: int, ordered: bool) -> Call:
    placed = random.integers(0, 1_000, (size, 3)).astype(np.int32)
    order = random.permutation(size) if ordered else np.empty(0, np.int64)
    return Call(size, (order, placed, np.zeros((3, size), np.int64)))


def _places(size: int, random: Random, slots: int, ordered: bool) -> Call:
    order = random.permutation(size) if ordered else np.empty(0, np.int64)
    return Call(1, (1, flat_matches(size, random).counts, order, np.zeros(size + 1, np.int64)))


def _inverting(size: int, random: Random, slots: int) -> Call:
    return Call(1, (random.permutation(size)[: size // 2], np.full(size, -1, np.int64)))


def _repeating(size: int, random: Random, slots: int) -> Call:
    places = places_of(random.integers(0, 4, 7))
    chosen = random.integers(0, 7, size)
    repeated = places_of(np.diff(places)[chosen])
    return Call(size, (chosen, places, np.arange(int(places[-1])) * 3, repeated, np.zeros(int(repeated[-1]), np.int64)))


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

_NEXT = pattern_table((2, 1), ((1, 1), (1, None), (1, 1)))
_ANY = pattern_table((1, 1, 1), ((1, 1), (1, 2), (1, 1)))
_DEPTH = 64
# The states of the second pattern under QUANTIFIED: b and c read a, and b its last event.
_STATES = StateTable(
    enough=np.array([1, 2, 1]),
    weight=np.array([1, 2, 6]),
    read=np.array([LAST_EVENT, LAST_EVENT]),
    variable=np.array([0, 1]),
    readers=np.array([0b110, 0b010], np.uint64),
    lone=np.array([NEVER, NEVER, ALWAYS]),
)


def automaton(
    size: int,
    random: Random,
    slots: int,
    strategy: Strategy = Strategy.NEXT,
    counting: bool = False,
    steps: int = 1 << 12,
    conditions: Sequence[Condition] = QUANTIFIED,
    programs: ProgramTable = PROGRAMS,
    negated: bool = False,
    patience: int = 0,
    remembered: int = 0,
    kept: int = KEEP_ALL,
    limit: int = 1,
    exclusive: bool | None = None,
    **given: Any,
) -> Call:
    free = strategy in (Strategy.ANY, Strategy.ROBUST)
    events = streams(size, random, exclusive=not free if exclusive is None else exclusive, **given)
    starts = start_events(events.labels, 1)[:: 1 if kept == KEEP_ALL else -1].copy()
    pattern = _ANY if free else _NEXT
    aggregate = aggregate_table(4, AGGREGATES if programs is ITERATION_PROGRAMS or programs is MEAN_PROGRAMS else ())
    # no d between b and c, and none in the window after a
    places = np.flatnonzero(random.random(size) < 0.1)
    negations = [(3, (1,), (2,), places), (3, (0,), (), places)] if negated else []
    rules_out = negation_table(negations, events.offsets, events.times, events.times, events.length)
    successor = events.occurrence[1, 1 : size + 1].astype(np.int64) if strategy == Strategy.CONTIGUOUS else np.zeros(0, np.int64)
    most = 0 if counting else size
    inputs = CandidateWindows(starts, ends_of(events, starts)), EventTable(events.after, events.occurrence, successor)
    bank = column_bank(size, random)
    judged = Conditions(condition_table(4, conditions), aggregate, programs, bank, 0)
    jumping = jumps(bank, events.occurrence, patience) if conditions is JUMPING and size else no_jumps()
    counts, totals = np.zeros((most, 3), np.int32), np.zeros(len(starts), np.int64)
    output = MatchTable(np.zeros(most, np.int64), counts, np.zeros(most * 8, np.int64), totals)
    run = new_path(_DEPTH, pattern, judged, kept, limit)
    dead_ends = new_dead_ends(_STATES, remembered, 0)
    shortcuts, mode = Shortcuts(jumping, dead_ends), Mode(strategy.value, counting, steps)
    return Call(1, (*inputs, Criteria(pattern, judged, rules_out), shortcuts, mode, run, output))


def _judged(*judged: tuple[int, int, int, int, int], behind: tuple[int, int] = (0, 0)) -> Judgements:
    """Judgements of conditions on a, b+ and c: (condition, needed, when, slot of the left side and of the right one).

    Those from ``behind[0]`` on are b's, and those from ``behind[1]`` on c's.
    """
    condition, needed, when, left, right = zip(*judged, strict=True)
    return Judgements(
        before=np.array([0, 1, 3], np.uint64),
        behind=np.array([6, 4, 0], np.uint64),
        everyone=np.array([7], np.uint64),
        first=np.array([0, *behind, len(judged)]),
        condition=np.array(condition),
        needed=np.array(needed, np.uint64),
        when=np.array(when),
        waits=np.zeros(len(judged), np.uint64),
        left=np.array(left),
        right=np.array(right),
        slot_first=2 * np.arange(len(judged) + 1),
        slot=np.array([left, right]).T.ravel(),
    )


_LAST_A, _LAST_B = 3, 4


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
    return Call(1, (matches, ruling, np.zeros(len(scopes) + 1, np.int64), np.zeros(len(pairs) + 1, np.int64)))


# The conditions QUANTIFIED where they are decided: the first two as b binds an event, the program as c does.
_JUDGED = _judged(
    (0, 1, single_runs.ALWAYS, _LAST_A, CURRENT),
    (1, 0, FURTHER_ONLY, _LAST_B, CURRENT),
    (2, 1, single_runs.ALWAYS, _LAST_A, CURRENT),
    behind=(0, 2),
)
# The conditions JUMPING: the first two as b binds an event, the others as c does.
_JUMPING_JUDGED = _judged(
    (0, 1, single_runs.ALWAYS, _LAST_A, CURRENT),
    (1, 0, FURTHER_ONLY, _LAST_B, CURRENT),
    *((c, 1, single_runs.ALWAYS, _LAST_A, CURRENT) for c in (2, 3, 4)),
    behind=(0, 2),
)
# The condition MEAN as c binds an event.
_MEAN_JUDGED = _judged((0, 3, single_runs.ALWAYS, _LAST_A, _LAST_B))
_JUDGEMENTS = ((JUMPING, _JUMPING_JUDGED), (MEAN, _MEAN_JUDGED))


def _walking(size: int, random: Random, slots: int, contiguous: bool = False, exclusive: bool = True, **given: Any) -> Call:
    _, (windows, events, criteria, shortcuts, mode, run, output) = automaton(
        size, random, slots, strategy=Strategy.CONTIGUOUS if contiguous else Strategy.NEXT, exclusive=exclusive, **given
    )
    walk = Walk(mode.strategy, mode.counting, mode.step_limit)
    judged = next((judged for conditions, judged in _JUDGEMENTS if given.get("conditions") is conditions), _JUDGED)
    return Call(1, (windows, events, criteria, judged, shortcuts.jumps, walk, run, output))


_CHAIN = pattern_table((1, 1, 1), ((1, 1), (1, None), (1, 1)))
_SINGLES = pattern_table((1, 1, 1), ((1, 1), (1, 1), (1, 1)))


def walking_chain(size: int, random: Random, slots: int, robust: bool = False, **given: Any) -> Call:
    _, (windows, events, criteria, judged, _, walk, run, output) = _walking(size, random, slots, **given)
    pattern, walk = (_SINGLES, walk._replace(strategy=int(Strategy.ROBUST))) if robust else (_CHAIN, walk)
    codes = [condition.code for condition in given.get("conditions", QUANTIFIED)]
    chain = chain_of(pattern, judged, criteria.conditions.table, codes)
    return Call(1, (windows, events, criteria._replace(pattern=pattern), chain, walk, np.zeros(7, np.int64), run, output))


MATCH_CASES: tuple[KernelCase, ...] = (
    *cases(match_kernels.order_matches, _match_order, {"": {}}),
    *cases(match_kernels.group_matches, _grouping, {"": {}}),
    *cases(match_kernels.select_disjoint, _disjoint, {"": {}}),
    *cases(match_kernels.match_offsets, _offsets, {"": {}}),
    *cases(match_kernels.last_events, _last_events, {"": {}}, ("offsets", "events")),
    *cases(match_kernels.binding_places, _places, {"as-they-are": {"ordered": False}, "ordered": {"ordered": True}}),
    *cases(match_kernels.place_bound, _placing, {"": {}}, ("matches",)),
    *cases(match_kernels.gather_singles, _singles, {"": {}}, ("events",)),
    *cases(match_kernels.place_rows, _placed, {"": {}}, ("events",)),
    *cases(match_kernels.order_placed, _ordering_placed, {"": {"ordered": True}, "as-they-are": {"ordered": False}}, ("placed",)),
    *cases(match_kernels.invert_order, _inverting, {"": {}}),
    *cases(match_kernels.repeat_bindings, _repeating, {"": {}}),
    *cases(
        match_kernels.split_binding,
        _binding,
        {"": {}, "ordered": {"kept": 1.0}, "some": {"kept": 0.5}},
        ("matches", "places"),
    ),
    *cases(
        match_kernels.gather_matches,
        _reordering,
        {"": {}},
        ("order", "matches", "gathered.offsets"),
    ),
    *cases(aggregates.count_present, _present, {"": {}}, ("places", "nulls")),
    *cases(aggregates.sum_floats, _float_sums, {"": {}}, ("places", "values", "nulls")),
    *cases(aggregates.sum_ints, _int_sums, {"": {}}, ("places", "values", "nulls")),
    *cases(
        aggregates.extreme_places,
        _extremes,
        {"int64-least": {"kind": np.int64, "sign": 1}, "float64-greatest": {"kind": np.float64, "sign": -1}},
        ("places", "values", "nulls"),
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
            **{name: {"programs": operation(name), "nulls": True} for name in OPCODES if not name.startswith(_APART)},
        },
    ),
    *cases(negations.keep_by_negations, _ruling_out, {"int64": {}, "float64": {"time": np.float64}}),
    *cases(
        single_runs.walk_windows,
        _walking,
        {
            "next": {},
            "next-untied": {"tied": False},
            "counting": {"counting": True},
            "contiguous": {"contiguous": True},
            "negated": {"negated": True},
            "float64": {"time": np.float64, "negated": True},
            "interrupted": {"steps": 20},
            "disjoint": {"kept": KEEP_DISJOINT},
            "choice": {"exclusive": False},
            "jumping": {"conditions": JUMPING, "programs": JUMPING_PROGRAMS},
        },
    ),
    *cases(
        chain_runs.walk_chains,
        walking_chain,
        {
            "next": {},
            "next-untied": {"tied": False},
            "counting": {"counting": True},
            "float64": {"time": np.float64},
            "interrupted": {"steps": 20},
            "disjoint": {"kept": KEEP_DISJOINT},
            "choice": {"exclusive": False},
            "sifted": {"conditions": JUMPING, "programs": JUMPING_PROGRAMS},
            "mean": {"conditions": MEAN, "programs": MEAN_PROGRAMS},
            "robust": {"robust": True, "exclusive": False},
            "robust-sifted": {"robust": True, "exclusive": False, "conditions": JUMPING, "programs": JUMPING_PROGRAMS},
        },
    ),
    *cases(
        enumeration.enumerate_matches,
        automaton,
        {
            "next": {},
            "next-untied": {"tied": False},
            "any": {"strategy": Strategy.ANY},
            "any-counting": {"strategy": Strategy.ANY, "counting": True},
            "interrupted": {"strategy": Strategy.ANY, "steps": 20},
            "contiguous": {"strategy": Strategy.CONTIGUOUS},
            "robust": {"strategy": Strategy.ROBUST},
            "robust-remembering": {"strategy": Strategy.ROBUST, "remembered": 4},
            "iterated": {"strategy": Strategy.ANY, "conditions": ITERATED, "programs": ITERATION_PROGRAMS, "negated": True},
            "iterated-robust": {"strategy": Strategy.ROBUST, "conditions": ITERATED, "programs": ITERATION_PROGRAMS, "negated": True},
            "finally": {"strategy": Strategy.ANY, "conditions": FINALLY, "programs": ITERATION_PROGRAMS},
            "float64": {"time": np.float64, "negated": True},
            "disjoint": {"kept": KEEP_DISJOINT},
            "disjoint-any": {"strategy": Strategy.ANY, "kept": KEEP_DISJOINT, "steps": 20, "negated": True},
            "disjoint-robust": {"strategy": Strategy.ROBUST, "kept": KEEP_DISJOINT},
            "earliest-any": {"strategy": Strategy.ANY, "kept": KEEP_EARLIEST},
            "first-any": {"strategy": Strategy.ANY, "kept": KEEP_EARLIEST, "limit": 3},
            "first-counted": {"strategy": Strategy.ANY, "kept": KEEP_EARLIEST, "limit": 3, "counting": True},
            "jumping": {"conditions": JUMPING, "programs": JUMPING_PROGRAMS},
            "jumping-any": {"strategy": Strategy.ANY, "conditions": JUMPING, "programs": JUMPING_PROGRAMS, "patience": 1},
            "jumping-robust": {"strategy": Strategy.ROBUST, "conditions": JUMPING, "programs": JUMPING_PROGRAMS, "steps": 20},
        },
    ),
)
