"""Dead ends of the robust strategy: states of a run from which no match was found, so that none is sought from them again.

Whether a run goes on to a match depends on how often its variables are bound,
on the events that later conditions and negations read, on the event behind
which it goes on, and on the end of its window. The first two are the *key* of
its state. A state that has led to no match from some event on leads to none
from any later event on, nor in a window that ends earlier: that is what is
kept for each key. Searches that go from the last start to the first meet
windows that end ever earlier, so that what one start has found serves all
that follow.

What comes behind a *lone* variable depends on its last event alone, whatever
was bound before it: in the chain ``a.x < b.x AND b.x < c.x`` all are lone. So an
event that led nowhere as one of its events leads nowhere from any state, and
searches pass over it, and over others beside it, in one step. Where the first
event of the match matters, too, that is so for runs that begin with it.

There is one place for each hash of a key, and keys are compared: what was
forgotten is searched again. A state has no key as long as an open condition
reads all events of a binding, or an aggregate over them other than their
number; its dead ends are not kept.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gpu_cep_kernels.compile.jit import rule
from gpu_cep_kernels.rules.scalars import bit, mix_hash
from gpu_cep_kernels.rules.tables import SEARCHES, UNSATISFIED, EventPath, Ints, PatternTable, Words

# What is read of a variable's binding: an event, how many there are, or all of them; or the first or the last event of the match.
FIRST_EVENT, LAST_EVENT, NUMBER, ALL_EVENTS, MATCH_START, MATCH_END = range(6)

# The reader that reads at the end of a match, beside as many variables.
AT_THE_END = 63
# Whether a variable is lone: never, among the runs of one start, among all.
NEVER, IN_A_START, ALWAYS = range(3)
# Words of a key before those of what is read.
_COUNTS = 2


class StateTable(NamedTuple):
    """Say what distinguishes two states of a run.

    Variable v counts up to ``enough[v]`` events, and ``weight[v]`` for each.
    ``read[k]`` of the binding of ``variable[k]`` is read by the variables of the
    bits ``readers[k]``, when one of their events is to be bound. ``lone[v]``
    says among which runs v is lone.
    """

    enough: Ints
    weight: Ints
    read: Ints
    variable: Ints
    readers: Words
    lone: Ints


class DeadEnds(NamedTuple):
    """The dead ends found so far: the state ``keys[k]`` leads to no match behind event ``behind[k]`` in windows up to ``end[k]``.

    There are 2ⁿ places, or none: nothing is kept. `key` is scratch. They are
    asked once `patience` searches in a row have led to no match. The event and
    its lone variable of number ``lone[k]``, and the variable's further events
    before event ``lone_until[k]``, lead to no match in windows up to
    ``lone_end[k]`` and runs from event ``lone_start[k]`` (−1: any).
    """

    states: StateTable
    key: Ints
    keys: Ints
    behind: Ints
    end: Ints
    lone: Ints
    lone_start: Ints
    lone_until: Ints
    lone_end: Ints
    patience: int


def new_dead_ends(states: StateTable, places: int, patience: int) -> DeadEnds:
    """Return an empty table of so many places, a power of two, or 0 to keep no dead ends."""
    words = _COUNTS + len(states.read)
    return DeadEnds(
        states=states,
        key=np.zeros(words, np.int64),
        keys=np.zeros((places, words), np.int64),
        behind=np.zeros(places, np.int64),
        end=np.zeros(places, np.int64),
        lone=np.zeros(places, np.int64),
        lone_start=np.zeros(places, np.int64),
        lone_until=np.zeros(places, np.int64),
        lone_end=np.zeros(places, np.int64),
        patience=patience,
    )


@rule
def _readers(pattern: PatternTable, path: EventPath) -> Any:
    """Return as bits the variables that may bind further events, and the reader at the end of the match."""
    readers = bit(AT_THE_END)
    for v in range(pattern.order.size):
        closed = path.bound[v] >= pattern.maximum[v]
        for k in range(pattern.following_first[v], pattern.following_first[v + 1]):
            closed = closed or path.last[pattern.following[k]] >= 0
        if not closed:
            readers |= bit(v)
    return readers


@rule
def _word(k: int, depth: int, states: StateTable, path: EventPath) -> int:
    """Return the word of the key that read k stands for: an event or a number, −1 if there is none yet."""
    v, read, word = states.variable[k], states.read[k], -1
    if read == MATCH_START:
        word = path.event[0]
    elif read == MATCH_END and path.state[UNSATISFIED] == 0:
        word = path.event[depth - 1]
    elif read == NUMBER:
        word = path.bound[v]
    elif read == FIRST_EVENT and path.bound[v] > 0:
        word = path.event[path.first[v]]
    elif read == LAST_EVENT and path.bound[v] > 0:
        word = path.event[path.last[v]]
    return word


@rule
def _write_key(depth: int, position: int, after: Any, pattern: PatternTable, path: EventPath, dead_ends: DeadEnds) -> int:
    """Write the key of the path of `depth` events that goes on behind `position`; return its place, or −1 if it has none.

    Of variables whose last event ties with the next event, none that follows may bind that.
    """
    states, key = dead_ends.states, dead_ends.key
    counts, tied = 0, np.uint64(0)
    for v in range(pattern.order.size):
        counts += states.weight[v] * min(path.bound[v], states.enough[v])
        if after.size > 0 and path.bound[v] > 0 and after[path.event[path.last[v]]] > position + 1:
            tied |= bit(v)
    key[0], key[1] = counts, np.int64(tied)
    code = mix_hash(mix_hash(np.uint64(0), key[0]), key[1])
    readers, has_key = _readers(pattern, path), True
    for k in range(states.read.size):
        word = -1
        if (states.readers[k] & readers) != 0:
            has_key = has_key and (states.read[k] != ALL_EVENTS or path.bound[states.variable[k]] == 0)
            word = _word(k, depth, states, path)
        key[_COUNTS + k] = word
        code = mix_hash(code, key[_COUNTS + k])
    place = np.int64(code & np.uint64(dead_ends.end.size - 1))
    return int(place) if has_key else -1


@rule
def _covers(place: int, position: int, end: int, dead_ends: DeadEnds) -> bool:
    """Whether what is kept at a place is about the key that was written last, behind `position` and in windows up to `end`."""
    covers = dead_ends.behind[place] <= position and end <= dead_ends.end[place]
    k = 0
    while covers and k < dead_ends.key.size:
        covers = dead_ends.keys[place, k] == dead_ends.key[k]
        k += 1
    return bool(covers)


@rule
def _keeps(depth: int, path: EventPath, dead_ends: DeadEnds) -> bool:
    """Whether the dead ends of paths of `depth` events are kept by their keys."""
    kept = dead_ends.end.size > 0 and path.state[SEARCHES] >= dead_ends.patience
    return bool(kept and dead_ends.states.lone[path.bound_to[depth - 1]] == NEVER)


@rule
def is_dead_end(depth: int, position: int, end: int, after: Any, pattern: PatternTable, path: EventPath, dead_ends: DeadEnds) -> bool:
    """Whether the path of `depth` events is known to lead to no match with events behind `position` and before `end`."""
    dead = False
    if _keeps(depth, path, dead_ends):
        place = _write_key(depth, position, after, pattern, path, dead_ends)
        dead = place >= 0 and _covers(place, position, end, dead_ends)
    return dead


@rule
def keep_dead_end(depth: int, end: int, after: Any, pattern: PatternTable, path: EventPath, dead_ends: DeadEnds) -> None:
    """Keep that the path of `depth` events leads to no match with any events before `end`."""
    position = path.event[depth - 1]
    if _keeps(depth, path, dead_ends):
        place = _write_key(depth, position, after, pattern, path, dead_ends)
        if place >= 0 and not _covers(place, position, end, dead_ends):
            dead_ends.behind[place] = position
            dead_ends.end[place] = end
            for k in range(dead_ends.key.size):
                dead_ends.keys[place, k] = dead_ends.key[k]
    elif dead_ends.end.size > 0 and depth > 1 and dead_ends.states.lone[path.bound_to[depth - 1]] != NEVER:
        _pass_over(path.bound_to[depth - 1], position, position + 1, end, path, dead_ends)


@rule
def _number(v: int, event: int, dead_ends: DeadEnds) -> int:
    """Return a number that identifies the pair of an event and a variable; it is at least 1."""
    return int(event * dead_ends.states.lone.size + v + 1)


@rule
def _start(v: int, path: EventPath, dead_ends: DeadEnds) -> int:
    """Return the start event of the runs among which v is lone; −1 if it is among all."""
    return int(path.event[0]) if dead_ends.states.lone[v] == IN_A_START else -1


@rule
def _pass_over(v: int, event: int, until: int, end: int, path: EventPath, dead_ends: DeadEnds) -> None:
    """Keep that `event` and v's further events before `until` lead to no match in windows up to `end`."""
    number = _number(v, event, dead_ends)
    place = number & (dead_ends.lone.size - 1)
    dead_ends.lone[place] = number
    dead_ends.lone_start[place] = _start(v, path, dead_ends)
    dead_ends.lone_until[place] = until
    dead_ends.lone_end[place] = end


@rule
def first_alive(v: int, event: int, end: int, occurrence: Any, path: EventPath, dead_ends: DeadEnds) -> int:
    """Return the first event of v, from its event `event` on, that may lead to a match, or one that is not before `end`."""
    alive = event
    if dead_ends.lone.size > 0 and event < end and dead_ends.states.lone[v] != NEVER:
        start, searching = _start(v, path, dead_ends), True
        while searching:
            number = _number(v, alive, dead_ends)
            place = number & (dead_ends.lone.size - 1)
            searching = dead_ends.lone[place] == number and dead_ends.lone_start[place] == start and end <= dead_ends.lone_end[place]
            if searching:
                alive = int(occurrence[v, dead_ends.lone_until[place]])
                searching = alive < end
        if alive != event:
            _pass_over(v, event, min(alive, end), end, path, dead_ends)
    return alive
