"""Define the tables of iteration in the lazy automata: when each condition is decided, and the stack."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpu_cep_kernels.rules.path_arrays import double_rows
from gpu_cep_kernels.rules.tables import Flags, Ints

# When a quantified variable decides a condition:
# ALONE each event by itself, as the stage begins,
# FIRST the first event,
# GROUPING the first event, for all later ones,
# FILTERING each event, for all later ones,
# FOLLOWING each event together with those before,
# CLOSING the whole binding.
ALONE, FIRST, GROUPING, FILTERING, FOLLOWING, CLOSING = range(6)


class _Scope(NamedTuple):
    """Name the numbers in the scope of a row."""

    BEGIN: int = 0  # the first event that it may bind
    END: int = 1  # the event before which those end
    STREAM: int = 2  # the number of its stream among the batch's


Scope = _Scope()


class LazyMode(NamedTuple):
    """Say how to enumerate.

    - own: only matches that start before this event are found.
    - starting: whether each pivot, or row, is the first event of its matches.
    - counting: whether matches are counted and not written.
    - step_limit: a call makes little more than so many steps.
    """

    own: int
    starting: bool
    counting: bool
    step_limit: int


class IterationTable(NamedTuple):
    """List the conditions that events of a quantified variable decide; k is an entry.

    - first[v]: the first entry of variable v; the last one is the end.
    - listed[k]: the condition.
    - when[k]: when it is decided (ALONE to CLOSING).
    """

    first: Ints
    listed: Ints
    when: Ints


class Iterations(NamedTuple):
    """Hold the stack of the enumeration; f is a place of the path, n a negation.

    - fixed: the variables that rows bind; of one that is in `order`, too, a row binds the first event.
    - order: the variables of the stages.
    - stage[f]: the stage whose variable binds the event at f.
    - events[cursor[f]:stop[f]]: the events that may still be bound at f.
    - free[f]: where `events` has room for a further list.
    - earliest[f], latest[f]: the first and the last event bound before f.
    - needs[n, v]: whether negation n waits for variable v.
    - judged[n]: the stage at whose end it is judged, therefore; −1 if it has been judged.
    - scope: numbers that Scope names.
    - sizes: scratch.
    """

    fixed: Ints
    order: Ints
    stage: Ints
    cursor: Ints
    stop: Ints
    free: Ints
    earliest: Ints
    latest: Ints
    events: npt.NDArray[np.int32]
    needs: Flags
    judged: Ints
    scope: Ints
    sizes: Ints


def new_iterations(fixed: Ints, order: Ints, path: int, room: int, needs: Flags) -> Iterations:
    """Return the stack before the first row, with room for `path` bound events and `room` listed ones."""
    return Iterations(
        fixed=fixed,
        order=order,
        stage=np.zeros(path + 1, np.int64),
        cursor=np.zeros(path + 1, np.int64),
        stop=np.zeros(path + 1, np.int64),
        free=np.zeros(path + 1, np.int64),
        earliest=np.zeros(path + 1, np.int64),
        latest=np.zeros(path + 1, np.int64),
        events=np.zeros(room, np.int32),
        needs=needs,
        judged=np.zeros(len(needs), np.int64),
        scope=np.zeros(len(Scope), np.int64),
        sizes=np.zeros_like(order),
    )


def widen_lists(stack: Iterations) -> Iterations:
    """Return `stack` with room for lists twice as long."""
    return stack._replace(events=double_rows(stack.events))


def lengthen_path(stack: Iterations) -> Iterations:
    """Return `stack` with room for a path twice as long."""
    names = ("stage", "cursor", "stop", "free", "earliest", "latest")
    grown: dict[str, Any] = {name: double_rows(getattr(stack, name)) for name in names}
    return stack._replace(**grown)
