"""Cases of the kernels of the lazy automata: single variables, and the quantified ones behind them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from gpu_cep_kernels.lazy.chain import LazyMatches, enumerate_chain, enumerate_negated_chain, find_pivots, new_chain
from gpu_cep_kernels.lazy.iteration_tables import ALONE, CLOSING, FILTERING, FOLLOWING, GROUPING, IterationTable, LazyMode, new_iterations
from gpu_cep_kernels.lazy.iterations import enumerate_iterations
from gpu_cep_kernels.phase_one.input_buffers import Buffered, InputBuffers, count_labels, fill_buffers
from gpu_cep_kernels.phase_one.input_buffers import Streams as BatchStreams
from gpu_cep_kernels.rules.path_arrays import new_path
from gpu_cep_kernels.rules.tables import Conditions, Criteria, MatchTable, NegationTable, ProgramTable
from tests.kernel_cases.calls import Call, KernelCase, cases
from tests.kernel_cases.inputs import Array, Random, Streams, column_bank, places_of, streams
from tests.kernel_cases.tables import (
    AGGREGATES,
    FINALLY,
    ITERATED,
    ITERATION_PROGRAMS,
    PROGRAMS,
    QUANTIFIED,
    SINGLE,
    Condition,
    aggregate_table,
    condition_table,
    negation_table,
    pattern_table,
)

_SINGLE = pattern_table((1, 2), ((1, 1), (1, 1), (1, 1)))
_ITERATED = pattern_table((1, 1, 1), ((1, 1), (1, 3), (1, 1)))
_PATH = 16
# Which events of b decide conditions of these, in turn.
_QUANTIFIED_USES = ((0, ALONE), (1, FILTERING))
_FINAL_USES = ((0, FOLLOWING), (1, CLOSING))
_GROUPED_USES = ((0, ALONE), (1, GROUPING))


def _buffers(events: Streams) -> tuple[InputBuffers, Array]:
    """The input buffers of three variables, and how many events each has."""
    counts = np.zeros(3, np.int64)
    count_labels(events.labels, counts)
    first = places_of(counts)
    buffers = InputBuffers(first, np.zeros(int(first[-1]) + 1, np.int32))
    fill_buffers(events.labels, *buffers)
    return buffers, counts


def _negations(events: Streams, random: Random, negated: bool) -> tuple[NegationTable, Array]:
    """No d between a and b, and none in the window after a; and which variables each waits for."""
    places = np.flatnonzero(random.random(len(events.labels)) < 0.05)
    listed = [(3, (0,), (1,), places), (3, (0,), (), places)] if negated else []
    needs = np.array([[True, True, False], [True, False, False]])[: len(listed)]
    return negation_table(listed, events.offsets, events.times, events.times, events.length), needs


def _chain(
    size: int,
    random: Random,
    slots: int,
    counting: bool = False,
    strict: bool = True,
    starting: bool = False,
    negated: bool = False,
    steps: int = 1 << 12,
    **given: Any,
) -> Call:
    events = streams(size, random, **given)
    buffers, counts = _buffers(events)
    conditions = Conditions(condition_table(4, SINGLE), aggregate_table(4, ()), PROGRAMS, column_bank(size, random), 0)
    run = new_path(3, _SINGLE, conditions)
    run.earlier[:] = -1
    negations, needs = _negations(events, random, negated)
    order = np.arange(3) if starting else np.argsort(counts, kind="stable")
    pivots = find_pivots(order[0], buffers, _SINGLE, size, starting)
    chain = new_chain(order, 3, pivots, buffers, _SINGLE, needs)
    whole = BatchStreams(events.offsets, events.times, events.times, events.length, strict)
    most = len(events.offsets) if counting else size
    starts, totals = np.full(most, size, np.int64), np.zeros(most if counting else 0, np.int64)
    output = LazyMatches(starts, np.zeros((0 if counting else most, 3), np.int64), totals)
    criteria, mode = Criteria(_SINGLE, conditions, negations), LazyMode(size, starting, counting, steps)
    return Call(1, (Buffered(buffers, whole), criteria, mode, chain, run, output))


def _iteration(
    size: int,
    random: Random,
    slots: int,
    conditions: Sequence[Condition] = QUANTIFIED,
    programs: ProgramTable = PROGRAMS,
    uses: tuple[tuple[int, int], ...] = _QUANTIFIED_USES,
    counting: bool = False,
    starting: bool = False,
    negated: bool = False,
    steps: int = 1 << 12,
    **given: Any,
) -> Call:
    """Rows bind a, and b+ and c follow."""
    events = streams(size, random, **given)
    buffers, _ = _buffers(events)
    aggregates = aggregate_table(4, AGGREGATES if programs is ITERATION_PROGRAMS else ())
    judged = Conditions(condition_table(4, conditions), aggregates, programs, column_bank(size, random), 0)
    negations, needs = _negations(events, random, negated)
    listed, when = np.array(uses, np.int64).T.copy()
    table = IterationTable(np.array([0, 0, len(uses), len(uses)]), listed, when)
    pivots = buffers.events[buffers.first[0] : buffers.first[1]].astype(np.int64)
    rows = np.stack([pivots, np.zeros_like(pivots), np.zeros_like(pivots)], axis=1)
    whole = BatchStreams(events.offsets, events.times, events.times, events.length, True)
    most = len(events.offsets) if counting else size
    starts, totals = np.full(most, size, np.int64), np.zeros(most if counting else 0, np.int64)
    room = 0 if counting else most
    output = MatchTable(starts, np.zeros((room, 3), np.int32), np.zeros(room * 5 + _PATH, np.int64), totals)
    run, stack = new_path(_PATH, _ITERATED, judged), new_iterations(np.array([0]), np.array([1, 2]), _PATH, 1 << 12, needs)
    criteria, mode = Criteria(_ITERATED, judged, negations), LazyMode(size, starting, counting, steps)
    return Call(1, (rows, Buffered(buffers, whole), criteria, table, mode, stack, run, output))


LAZY_CASES: tuple[KernelCase, ...] = (
    *cases(
        enumerate_chain,
        _chain,
        {
            "int64": {},
            "float64": {"time": np.float64},
            "counting": {"counting": True},
            "untied": {"strict": False},
            "starting": {"starting": True},
            "interrupted": {"steps": 20},
        },
    ),
    *cases(
        enumerate_negated_chain,
        partial(_chain, negated=True),
        {"int64": {}, "float64": {"time": np.float64}, "starting": {"starting": True}},
    ),
    *cases(
        enumerate_iterations,
        _iteration,
        {
            "int64": {},
            "float64": {"time": np.float64},
            "counting": {"counting": True},
            "negated": {"negated": True},
            "starting": {"starting": True, "negated": True},
            "grouped": {"uses": _GROUPED_USES},
            "iterated": {"conditions": ITERATED, "programs": ITERATION_PROGRAMS, "uses": _FINAL_USES},
            "finally": {"conditions": FINALLY, "programs": ITERATION_PROGRAMS, "uses": _FINAL_USES},
            "interrupted": {"steps": 20},
        },
    ),
)
