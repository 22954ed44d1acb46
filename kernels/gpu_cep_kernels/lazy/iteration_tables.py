"""What iteration in the lazy automata is done with: which conditions the events of a quantified variable decide when, and the stack."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpu_cep_kernels.rules.tables import Flags, Ints, double_rows

# When a quantified variable decides a condition: by each event alone, as its stage begins; by its first event; by the first, about all
# later ones; by each, about all later ones; by each, together with those before; by its whole binding.
ALONE, FIRST, GROUPING, FILTERING, FOLLOWING, CLOSING = range(6)

# Where the events of a row may be, and the number of its stream among the batch's.
BEGIN, END, STREAM = range(3)


class LazyMode(NamedTuple):
    """How matches are enumerated: only those that start before event `own`, of which each pivot, or row, is the first event if `starting`.

    With `counting` they are only counted. A call makes little more than
    `step_limit` steps.
    """

    own: int
    starting: bool
    counting: bool
    step_limit: int


class IterationTable(NamedTuple):
    """Events of variable v decide the conditions ``listed[first[v]:first[v + 1]]``, and ``when[k]``, a constant above, says when."""

    first: Ints
    listed: Ints
    when: Ints


class Iterations(NamedTuple):
    """The stack of the enumeration: at place f of the path an event of variable ``order[stage[f]]`` is bound.

    Rows bind the variables `fixed`; of one that is in `order`, too, they bind
    the first event. ``events[cursor[f]:stop[f]]`` are the events that may still
    be bound at f, and behind ``free[f]`` there is room for a list.
    ``earliest[f]`` and ``latest[f]`` are the ends of what is bound before f.
    Negation n waits for the variables that ``needs[n]`` marks, and so is judged
    at the end of stage ``judged[n]`` (−1: it has been judged). `scope` is
    indexed by the constants above, `sizes` is scratch.
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
    """Return the stack before the first row, with room for a path of `path` events and lists of `room` events."""
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
        scope=np.zeros(3, np.int64),
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
