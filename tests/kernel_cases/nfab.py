"""Cases of the kernels of NFA^b: the pass over the events, and the matches read off its buffer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpu_cep_kernels.nfab.buffer_counts import count_buffer, merge_cells, new_stack, new_sums, new_totals
from gpu_cep_kernels.nfab.buffer_paths import BufferPaths, enumerate_paths, last_starts, new_walk, path_ends
from gpu_cep_kernels.nfab.growth import EventWindows, grow_runs
from gpu_cep_kernels.nfab.match_buffer import mark_ends, mark_used_nodes, new_buffer, new_ends
from gpu_cep_kernels.nfab.merged_runs import FLOATS, INTS, ReadTable, new_runs
from gpu_cep_kernels.nfab.pass_runs import Pass, PassState
from gpu_cep_kernels.rules.path_arrays import new_path
from gpu_cep_kernels.rules.tables import BY_FLOATS, BY_INTS, ONCE, Conditions, Criteria, EventTable, MatchTable, ProgramTable, Strategy
from tests.kernel_cases.calls import Call, KernelCase, cases
from tests.kernel_cases.inputs import Random, column_bank, ends_of, flags, places_of, streams
from tests.kernel_cases.tables import (
    AGGREGATES,
    FINALLY,
    ITERATED,
    ITERATION_PROGRAMS,
    PROGRAMS,
    QUANTIFIED,
    Condition,
    aggregate_table,
    condition_table,
    negation_table,
    pattern_table,
)

_PATTERN = pattern_table((1, 1, 1), ((1, 1), (1, 2), (1, 1)))
_BANKS = {"load_int": INTS, "load_float": FLOATS}
# Room for all that 200 events add to few runs, and signatures of any length that the conditions give.
_ROOM, _RUNS, _WORDS, _DEPTH = 1 << 12, 1 << 8, 64, 64


def _reads(condition: Condition) -> list[tuple[int, int, int]]:
    """(bank, column, role) of what a condition reads."""
    loads = [(_BANKS[name], column, role) for name, _, column, role in condition.code if name in _BANKS]
    compared = {BY_INTS: INTS, BY_FLOATS: FLOATS}.get(condition.means)
    return loads if compared is None else [(compared, *condition.left), (compared, *condition.right)]


def _read_table(variables: int, conditions: Sequence[Condition], judged: Conditions) -> ReadTable:
    found = [_reads(condition) for condition in conditions]
    flat = np.array([read for own in found for read in own], np.int64).reshape(-1, 3)
    decides = np.zeros((len(conditions), variables), np.bool_)
    for v in range(variables):
        decides[judged.table.listed[judged.table.first[v] : judged.table.first[v + 1]], v] = True
    once = np.zeros_like(decides)
    once[np.repeat(np.arange(len(conditions)), np.diff(judged.table.part_first)), judged.table.variable] = judged.table.spread == ONCE
    return ReadTable(
        first=places_of(np.array([len(own) for own in found])),
        role=flat[:, 2].copy(),
        bank=flat[:, 0].copy(),
        column=flat[:, 1].copy(),
        decides=decides,
        once=once,
        live=np.zeros(len(conditions), np.int64),
        open=np.zeros(len(_PATTERN.order), np.bool_),
    )


def _growth(
    size: int,
    random: Random,
    slots: int,
    strategy: Strategy = Strategy.NEXT,
    steps: int = 1 << 12,
    conditions: Sequence[Condition] = QUANTIFIED,
    programs: ProgramTable = PROGRAMS,
    cuts: bool = False,
    **given: Any,
) -> Call:
    events = streams(size, random, exclusive=strategy != Strategy.ANY, **given)
    aggregates = aggregate_table(4, AGGREGATES if programs is ITERATION_PROGRAMS else ())
    judged = Conditions(condition_table(4, conditions), aggregates, programs, column_bank(size, random), 0)
    everything = np.arange(size)
    earliest = np.searchsorted(ends_of(events, everything), everything, side="right")
    run = new_path(_ROOM, _PATTERN, judged)
    buffer = new_buffer(_ROOM)._replace(event=run.event, bound_to=run.bound_to, earlier=run.earlier)
    state = np.zeros(len(PassState), np.int64)
    state[PassState.FREE], state[PassState.FAULT], state[PassState.FIRST], state[PassState.CUTS] = _RUNS, -1, -1, cuts
    runs, reads = new_runs(_RUNS, len(_PATTERN.order), _WORDS), _read_table(4, conditions, judged)
    work = Pass(run, buffer, runs, reads, new_ends(_ROOM), state)
    table = EventTable(events.after, events.occurrence, np.zeros(0, np.int64))
    windows = EventWindows(earliest, events.stream_end, flags(size, random, 0.9))
    return Call(1, (size, windows, strategy.value, steps, table, _PATTERN, judged, work))


def _paths(size: int, random: Random, slots: int, counting: bool = False, steps: int = 1 << 12, **given: Any) -> Call:
    call = _growth(size, random, slots, **given)
    grow_runs(*call.arguments)
    end, windows, *_, judged, work = call.arguments
    offsets, times = np.array([0, size]), np.arange(size, dtype=np.uint64)
    # no d between b and c
    places = np.flatnonzero(random.random(size) < 0.1)
    negations = negation_table([(3, (1,), (2,), places)], offsets, times, times, np.uint64(size))
    most = 0 if counting else size
    output = MatchTable(np.zeros(most, np.int64), np.zeros((most, 3), np.int32), np.zeros(most * 8, np.int64), np.zeros(end, np.int64))
    ends = path_ends(int(work.state[PassState.NODES]), int(work.state[PassState.ENDS]), work.buffer, work.ends)
    criteria, path = Criteria(_PATTERN, judged, negations), new_path(_DEPTH, _PATTERN, judged)
    return Call(1, (windows.earliest, counting, steps, BufferPaths(work.buffer, ends), criteria, new_walk(_DEPTH), path, output))


def _grown(size: int, random: Random, slots: int, **given: Any) -> tuple[Any, ...]:
    """The arguments of a pass that has taken all events."""
    call = _growth(size, random, slots, **given)
    grow_runs(*call.arguments)
    return call.arguments


def _marked(size: int, random: Random, slots: int, **given: Any) -> Call:
    work = _grown(size, random, slots, **given)[-1]
    return Call(1, (int(work.state[PassState.ENDS]), work.buffer, work.ends, np.full(int(work.state[PassState.NODES]), -1)))


def _merged(size: int, random: Random, slots: int, **given: Any) -> Call:
    work = _grown(size, random, slots, **given)[-1]
    return Call(1, (work.buffer, new_sums(int(work.state[PassState.NODES])).same))


def _used(size: int, random: Random, slots: int, **given: Any) -> Call:
    work = _grown(size, random, slots, **given)[-1]
    nodes = int(work.state[PassState.NODES])
    used = np.zeros(nodes, np.bool_)
    used[work.ends.node[: work.state[PassState.ENDS]]] = True
    return Call(1, (work.buffer, used, np.zeros(nodes, np.bool_)))


def _counted(size: int, random: Random, slots: int, steps: int = 1 << 12, height: int = _DEPTH, **given: Any) -> Call:
    _, windows, *_, work = _grown(size, random, slots, **given)
    nodes = int(work.state[PassState.NODES])
    last_start, sums = last_starts(nodes, int(work.state[PassState.ENDS]), work.buffer, work.ends), new_sums(nodes)
    merge_cells(work.buffer, sums.same)
    inputs = windows.earliest, windows.stream_end, last_start, steps, work.buffer
    return Call(1, (*inputs, sums, new_stack(height), new_totals(max(size, 1))))


NFAB_CASES: tuple[KernelCase, ...] = (
    *cases(
        grow_runs,
        _growth,
        {
            "next": {},
            "next-untied": {"tied": False},
            "any": {"strategy": Strategy.ANY},
            "contiguous": {"strategy": Strategy.CONTIGUOUS},
            "interrupted": {"strategy": Strategy.ANY, "steps": 20},
            "iterated": {"strategy": Strategy.ANY, "conditions": ITERATED, "programs": ITERATION_PROGRAMS},
            "finally": {"conditions": FINALLY, "programs": ITERATION_PROGRAMS},
            "float64": {"time": np.float64},
            "cutting": {"cuts": True},
            "cutting-any": {"strategy": Strategy.ANY, "cuts": True, "steps": 20},
            "cutting-contiguous": {"strategy": Strategy.CONTIGUOUS, "cuts": True},
        },
    ),
    *cases(
        enumerate_paths,
        _paths,
        {
            "next": {},
            "any": {"strategy": Strategy.ANY},
            "counting": {"strategy": Strategy.ANY, "counting": True},
            "interrupted": {"strategy": Strategy.ANY, "steps": 20},
            "iterated": {"strategy": Strategy.ANY, "conditions": ITERATED, "programs": ITERATION_PROGRAMS},
            "finally": {"strategy": Strategy.ANY, "conditions": FINALLY, "programs": ITERATION_PROGRAMS},
        },
    ),
    *cases(mark_ends, _marked, {"next": {}, "any": {"strategy": Strategy.ANY}}),
    *cases(mark_used_nodes, _used, {"next": {}, "any": {"strategy": Strategy.ANY}}),
    *cases(merge_cells, _merged, {"next": {}, "any": {"strategy": Strategy.ANY}}),
    *cases(
        count_buffer,
        _counted,
        {
            "next": {},
            "any": {"strategy": Strategy.ANY},
            "contiguous": {"strategy": Strategy.CONTIGUOUS},
            "iterated": {"strategy": Strategy.ANY, "conditions": ITERATED, "programs": ITERATION_PROGRAMS},
            "interrupted": {"strategy": Strategy.ANY, "steps": 20},
            "low": {"strategy": Strategy.ANY, "height": 2},
        },
    ),
)
