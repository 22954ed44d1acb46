"""Remember the states of a run that lead to no match: the robust strategy searches none of them twice.

Whether a run becomes a match depends on four things:

- how often its variables are bound,
- the bound events that later conditions and negations read,
- the event behind which it goes on,
- the end of its window.

The first two are the *key* of a state. A state that leads to no match behind
some event leads to none behind a later event. Nor does it in a window that
ends earlier. So each key is kept with one event and one window end. Starts are
searched from the last one to the first, and their windows end ever earlier.
So what one start has found serves all that follow.

Some variables are *lone*: what follows depends on their last event alone. In
the chain ``a.x < b.x AND b.x < c.x`` all variables are lone. A dead end of a
lone variable is kept by its event and not by a key. Searches skip that event,
and all dead ones beside it, in one step. Some are lone among the runs of one
start only: later conditions read the first event of the match, too.

The table has one place for each hash of a key, and compares keys. A state
whose place was overwritten is searched again. Some states have no key, and
their dead ends are not kept. In these an open condition reads all events of a
binding, or an aggregate other than their number.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gpu_cep_kernels.compile.jit import rule
from gpu_cep_kernels.rules.scalars import bit, mix_hash
from gpu_cep_kernels.rules.tables import EventPath, Ints, PathState, PatternTable, Words

# What a condition reads of a binding: its first or last event, how many it has, all of them; or the match's first or last event.
FIRST_EVENT, LAST_EVENT, NUMBER, ALL_EVENTS, MATCH_START, MATCH_END = range(6)

# A bit for what is read at the end of a match; the lower bits are variables.
AT_THE_END = 63
# Whether a variable is lone: never, among the runs of one start, among all.
NEVER, IN_A_START, ALWAYS = range(3)
# The words with which a key begins: the counts of all variables, and the variables whose last event is tied.
_COUNTS = 2


class StateKeys(NamedTuple):
    """Say what distinguishes two states of a run: v is a variable, k one thing that is read.

    - enough[v]: the number of v's events from which on more make no difference.
    - weight[v]: what each event of v, up to ``enough[v]``, adds to the number that stands for all counts.
    - read[k]: what is read of a binding, one of the constants FIRST_EVENT to MATCH_END.
    - variable[k]: the variable whose binding is read.
    - readers[k]: a bit for each variable whose events are judged by it, and AT_THE_END.
    - lone[v]: among which runs v is lone (NEVER, IN_A_START, ALWAYS).
    """

    enough: Ints
    weight: Ints
    read: Ints
    variable: Ints
    readers: Words
    lone: Ints


class DeadEnds(NamedTuple):
    """Hold the dead ends found so far, in two hash tables of 2ⁿ places; with no places none are kept.

    - states: what distinguishes two states.
    - key: scratch for one key.
    - keys[k]: the key at place k of the first table.
    - behind[k], end[k]: it leads to no match behind this event, in windows up to this end.
    - lone[k]: the number of an event and its lone variable, at place k of the second table (0: free).
    - lone_start[k]: the start of the runs for which it is a dead end; −1 for all.
    - lone_until[k]: the variable's further events before this one are dead ends, too.
    - lone_end[k]: it leads to no match in windows up to this end.
    - patience: the tables are used after so many searches in a row without a match.
    """

    states: StateKeys
    key: Ints
    keys: Ints
    behind: Ints
    end: Ints
    lone: Ints
    lone_start: Ints
    lone_until: Ints
    lone_end: Ints
    patience: int


def new_dead_ends(states: StateKeys, places: int, patience: int) -> DeadEnds:
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
    """Return a mask of the variables that may bind further events, with the bit AT_THE_END."""
    readers = bit(AT_THE_END)
    for v in range(pattern.order.size):
        closed = path.bound[v] >= pattern.maximum[v]
        for k in range(pattern.following_first[v], pattern.following_first[v + 1]):
            closed = closed or path.last[pattern.following[k]] >= 0
        if not closed:
            readers |= bit(v)
    return readers


@rule
def _word(k: int, depth: int, states: StateKeys, path: EventPath) -> int:
    """Return the value of read k for a key: an event, or a number of events; −1 if there is none yet."""
    v, read, word = states.variable[k], states.read[k], -1
    if read == MATCH_START:
        word = path.event[0]
    elif read == MATCH_END and path.state[PathState.UNSATISFIED] == 0:
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
    """Write to ``dead_ends.key`` the key of the path of `depth` events that goes on behind `position`.

    Return the key's place in the table, or −1 if the state has no key. The key
    also holds the variables whose last event is tied with the next event: no
    variable that follows them may bind that event.
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
    """Return whether place `place` of the table holds the key written last, as a dead end for this search.

    The search goes on behind `position` in a window that ends at `end`.
    """
    covers = dead_ends.behind[place] <= position and end <= dead_ends.end[place]
    k = 0
    while covers and k < dead_ends.key.size:
        covers = dead_ends.keys[place, k] == dead_ends.key[k]
        k += 1
    return bool(covers)


@rule
def _keeps(depth: int, path: EventPath, dead_ends: DeadEnds) -> bool:
    """Return whether dead ends of paths of `depth` events are kept by key.

    They are after `patience` searches, unless the last variable bound is lone.
    """
    kept = dead_ends.end.size > 0 and path.state[PathState.SEARCHES] >= dead_ends.patience
    return bool(kept and dead_ends.states.lone[path.bound_to[depth - 1]] == NEVER)


@rule
def is_dead_end(depth: int, position: int, end: int, after: Any, pattern: PatternTable, path: EventPath, dead_ends: DeadEnds) -> bool:
    """Return whether the path of `depth` events is known to lead to no match behind `position` and before `end`."""
    dead = False
    if _keeps(depth, path, dead_ends):
        place = _write_key(depth, position, after, pattern, path, dead_ends)
        dead = place >= 0 and _covers(place, position, end, dead_ends)
    return dead


@rule
def keep_dead_end(depth: int, end: int, after: Any, pattern: PatternTable, path: EventPath, dead_ends: DeadEnds) -> None:
    """Keep in the table that the path of `depth` events leads to no match with any events before `end`."""
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
    """Return the start event of the current run if v is lone among the runs of one start only; −1 if among all."""
    return int(path.event[0]) if dead_ends.states.lone[v] == IN_A_START else -1


@rule
def _pass_over(v: int, event: int, until: int, end: int, path: EventPath, dead_ends: DeadEnds) -> None:
    """Store a dead end of lone variable v: its events from `event` to before `until` lead to no match.

    That holds in windows up to `end`.
    """
    number = _number(v, event, dead_ends)
    place = number & (dead_ends.lone.size - 1)
    dead_ends.lone[place] = number
    dead_ends.lone_start[place] = _start(v, path, dead_ends)
    dead_ends.lone_until[place] = until
    dead_ends.lone_end[place] = end


@rule
def first_alive(v: int, event: int, end: int, occurrence: Any, path: EventPath, dead_ends: DeadEnds) -> int:
    """Return v's first event, from its event `event` on, that is no known dead end.

    If there is none before `end`, return one that is not before it.
    """
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
