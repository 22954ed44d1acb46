"""Cases of the kernels over the states of a pattern whose matches labels decide: the count, and the graph of matches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpu_cep_kernels.labels_decide import counting, graph
from tests.kernel_cases.calls import Call, KernelCase, cases
from tests.kernel_cases.inputs import Array, Random, Streams, ends_of, flags, places_of, start_events, streams

# SEQ(a+, b+) where events tie: nothing bound, a before the current time, a in it, and both; (source, variable, target)
_TRANSITIONS = ((1, 0, 2), (2, 0, 2), (1, 1, 3), (3, 1, 3))
# what each state is once the time has moved on, and the highest that may become it or lead to it
_SETTLED, _HIGHEST = (0, 1, 1, 3), (0, 2, 2, 3)
_AT_ONCE = (0, 1, 2, 3)


def _moves(ends: Sequence[tuple[int, int, int]]) -> counting.Moves:
    """(this end, variable, other end) of each transition, ascending."""
    sizes = np.bincount([end for end, _, _ in ends], minlength=len(_SETTLED))
    return counting.Moves(places_of(sizes), *(np.array([each[k] for each in ends], np.int64) for k in (2, 1)))


def _states(tied: bool) -> counting.StateTable:
    forth = sorted(_TRANSITIONS, key=lambda transition: transition[0])
    back = sorted(((target, v, source) for source, v, target in _TRANSITIONS), key=lambda transition: transition[0])
    settled, highest = (_SETTLED, _HIGHEST) if tied else (_AT_ONCE, _AT_ONCE)
    final = np.array([False, False, False, True])
    return counting.StateTable(_moves(forth), _moves(back), np.array([2]), np.array([0]), final, np.array(settled), np.array(highest))


def _counting(
    size: int, random: Random, slots: int, tile: int = 9, rows: int = 7, together: bool = False, tied: bool = True, **given: Any
) -> Call:  # fmt: skip
    """Tiles of candidates; the last one may have fewer."""
    events = streams(size, random, variables=2, tied=tied, **given)
    starts = start_events(events.labels, 1)
    ends = events.stream_end[starts] if together else ends_of(events, starts)
    scratch = counting.CountScratch(*(np.zeros((slots, *shape), np.int64) for shape in ((4, 4), (4, 4), (rows, 4), (4, 1))))
    states, totals = _states(tied), np.zeros(len(starts), np.int64)
    labelled = counting.LabelledEvents(events.after, events.labels.reshape(1, -1))
    return Call(-(-len(starts) // tile), (tile, starts, ends, labelled, states, scratch, totals))


def _groups(labels: Array) -> graph.GroupTable:
    """Nodes of a in its current time, and of b."""
    occurrences = [np.count_nonzero(labels & labels.dtype.type(1 << v)) for v in range(2)]
    scope = [graph.ALL, graph.EARLIER, graph.ALL]
    return graph.GroupTable(
        variable=np.array([0, 1]),
        begins=np.array([True, False]),
        ends=np.array([False, True]),
        source_first=np.array([0, 1, 3]),
        source=np.array([0, 0, 1]),
        scope=np.array(scope),
        base=places_of(np.array(occurrences)),
    )


def _earliest(events: Streams, size: int) -> Array:
    return np.searchsorted(ends_of(events, np.arange(size)), np.arange(size), side="right")


def _growth(size: int, random: Random, slots: int, tied: bool = True, **given: Any) -> Call:
    events = streams(size, random, variables=2, tied=tied, **given)
    groups = _groups(events.labels)
    room = int(groups.base[-1])
    nodes = graph.NodeTable(
        np.zeros(room, np.int64), np.zeros(room, np.bool_), np.zeros(room, np.int64), *(np.full((room, 2), k, np.int64) for k in (0, -1))
    )
    growth = graph.Growth(*(np.zeros(2, np.int64) for _ in graph.Growth._fields))
    inputs = events.offsets, events.after, events.labels.reshape(1, -1), _earliest(events, size), flags(size, random, 0.9)
    return Call(1, (*inputs, groups, growth, nodes))


def _usefulness(size: int, random: Random, slots: int) -> Call:
    call = _growth(size, random, slots)
    graph.grow_graph(*call.arguments)
    *_, groups, growth, nodes = call.arguments
    scratch = np.zeros(2, np.int64), np.zeros(2, np.int64), np.zeros(len(nodes.event), np.int64)
    return Call(1, (size, groups, growth.used, nodes, *scratch, np.zeros(len(nodes.event), np.bool_)))


STATE_CASES: tuple[KernelCase, ...] = (
    *cases(
        counting.count_matches,
        _counting,
        {
            "": {},
            "untied": {"tied": False},
            "few-rows": {"rows": 1},
            "one-tile": {"tile": 1 << 40},
            "together": {"together": True},
            "uint8": {"word": np.uint8},
        },
    ),
    *cases(graph.grow_graph, _growth, {"": {}, "untied": {"tied": False}, "float64": {"time": np.float64}}),
    *cases(graph.mark_useful, _usefulness, {"": {}}),
)
