"""Make the arrays of an enumeration's path, and make room in them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gpu_cep_kernels.rules.cut import KEEP_ALL, new_cut
from gpu_cep_kernels.rules.tables import AggregateValues, Conditions, EventPath, PathState, PatternTable, Registers


def new_path(depth: int, pattern: PatternTable, conditions: Conditions, kept: int = KEEP_ALL, limit: int = 1) -> EventPath:
    """Return an empty path with room for `depth` events, for one thread.

    `kept` says which matches are asked for, and `limit` how many of each first event if these are the first ones.
    """
    roles, registers = max(1, conditions.table.roles), max(1, conditions.programs.registers)
    variables, values = len(pattern.order), len(conditions.aggregates.step)
    # negated variables never bind, but conditions read them
    named = len(conditions.table.first) - 1
    state = np.zeros(len(PathState), np.int64)
    state[PathState.UNSATISFIED] = variables
    return EventPath(
        event=np.zeros(depth, np.int64),
        bound_to=np.zeros(depth, np.uint16),
        earlier=np.zeros(depth, np.int64),
        choice_event=np.zeros(depth + 1, np.int64),
        choices=np.zeros((depth + 1, variables), np.uint16),
        left=np.zeros(depth + 1, np.int64),
        led=np.zeros(depth + 1, np.bool_),
        last=np.array([-1] * named, np.int64),
        first=np.array([-1] * named, np.int64),
        bound=np.zeros(variables, np.int64),
        blockers=np.add.reduce(pattern.precedes, axis=0, dtype=np.int64),
        available=np.zeros(variables, np.uint16),
        next_place=np.zeros(variables, np.int64),
        state=state,
        earliest=np.zeros(variables, np.int64),
        cursor=np.zeros(max(1, named), np.int64),
        near=np.zeros(named + 1, np.int64),
        aggregates=new_values(values, depth),
        registers=Registers(
            rows=np.zeros(roles, np.int64),
            places=np.zeros(roles, np.int64),
            ints=np.zeros(registers, np.int64),
            floats=np.zeros(registers, np.float64),
            nulls=np.zeros(registers, np.bool_),
        ),
        cut=new_cut(kept, limit, variables, depth),
    )


def new_values(values: int, depth: int) -> AggregateValues:
    """Return zeros for so many aggregates at each of `depth` places."""
    shape = values, depth
    return AggregateValues(counts=np.zeros(shape, np.int64), ints=np.zeros(shape, np.int64), floats=np.zeros(shape))


def deepen_path(path: EventPath) -> EventPath:
    """Return `path` with room for twice as many events."""
    by_place = ("event", "bound_to", "earlier", "choice_event", "choices", "left", "led")
    grown: dict[str, Any] = {name: double_rows(getattr(path, name), 0) for name in by_place}
    cut = path.cut._replace(events=double_rows(path.cut.events, 1))
    return path._replace(**grown, aggregates=AggregateValues(*(double_rows(values, 1) for values in path.aggregates)), cut=cut)


def double_rows(array: npt.NDArray[Any], axis: int = 0) -> npt.NDArray[Any]:
    """Return `array` with twice the length along an axis; the new half is zero."""
    grown = np.zeros((*array.shape[:axis], 2 * array.shape[axis], *array.shape[axis + 1 :]), array.dtype)
    # the new half takes no memory until it is written
    grown[(slice(None),) * axis + (slice(array.shape[axis]),)] = array
    return grown
