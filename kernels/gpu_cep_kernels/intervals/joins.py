"""Join situations by Allen relations: binary search finds ranges of candidates (TPStream, section 5.2).

The situations of one name in one stream share no time. So both their starts and
their ends ascend. To each situation A they fall into five *zones*, in this
order:

- those before A,
- those that touch or hold A's start, two at most,
- those inside A,
- those that hold or touch A's end, two at most,
- those after A.

What a relation allows lies in one zone, and four binary searches find where the
zones begin.

An endpoint is a number that compares with other endpoints: a time, or the
place of a time among all times. Windows are measured on clocks, where
differences are lengths of time (see :func:`gpu_cep_kernels.rules.scalars.within`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from gpu_cep_kernels.compile.jit import kernel, rule
from gpu_cep_kernels.rules.scalars import within
from gpu_cep_kernels.rules.tables import Ints, Places

# The relations of A to B, by number: `finishes` as the paper's Table 1 has it, A starts first and both end together.
RELATIONS = (
    "before", "meets", "overlaps", "finishes", "contains", "starts", "equals",
    "started-by", "during", "finished-by", "overlapped-by", "met-by", "after",
)  # fmt: skip
(
    BEFORE, MEETS, OVERLAPS, FINISHES, CONTAINS, STARTS, EQUALS,
    STARTED_BY, DURING, FINISHED_BY, OVERLAPPED_BY, MET_BY, AFTER,
) = range(13)  # fmt: skip

# The zone of A in which B lies, by the relation of A to B.
ZONES = (4, 3, 3, 3, 2, 1, 1, 1, 1, 1, 1, 1, 0)
ZONE_COUNT = 5


class Situations(NamedTuple):
    """Hold the situations of all names, in order of time within a name and a stream; i is a situation.

    - offsets[v, s]: the first one of name v in stream s; ``offsets[v, s + 1]`` is the end.
    - start[i], end[i]: its endpoints.
    - known[i]: the endpoint from which on it may be in a match. Like the other two, it ascends.
    - start_clock, end_clock, known_clock: the same on the clock of windows.
    """

    offsets: Ints
    start: Any
    end: Any
    known: Any
    start_clock: Any
    end_clock: Any
    known_clock: Any


class Configurations(NamedTuple):
    """Hold partial matches of situations, one per row i.

    - members[place, i]: its situations.
    - stream[i]: the stream of all of them.
    - low[i]: the start of the one that starts first.
    - high[i]: the endpoint at which all relations between them are decided.
    - low_clock, high_clock: the same two on the clock of windows.
    """

    members: Places
    stream: Places
    low: Any
    high: Any
    low_clock: Any
    high_clock: Any


class Level(NamedTuple):
    """Say what a join adds to each configuration: one situation, under all constraints with those it has.

    - name: the name of the new situation.
    - place[k]: constraint k relates the situation at this place to the new one.
    - allowed[k]: the mask of relations of which one must hold.
    - early[k]: those of them that are decided when the later of the two starts;
      the others are decided when the earlier ends.
    - first_zone[k], last_zone[k]: the zones to which constraint k cuts the range of candidates.
    - divided: the number of the constraint whose zones are apart, or below 0 if there is none.
    - runs[g]: its runs of zones, each from ``runs[g, 0]`` to ``runs[g, 1]``.
    - windowed: whether the window cuts the range, too. Each candidate is tested against it in any case.
    """

    name: int
    place: Ints
    allowed: Ints
    early: Ints
    first_zone: Ints
    last_zone: Ints
    divided: int
    runs: Ints
    windowed: bool


class CandidateRanges(NamedTuple):
    """Hold the ranges of candidates of the rows of a chunk.

    - first[g, i]: the first candidate of row i in run g of zones.
    - size[g, i]: how many there are.
    """

    first: Ints
    size: Ints


class Limits(NamedTuple):
    """Hold what bounds a match in time.

    - latest: the endpoint by which all of it must be decided.
    - limit: the endpoint before which it must start.
    - length: the length of the window.
    """

    latest: Any
    limit: Any
    length: Any


class Fitting(NamedTuple):
    """Hold the situations that fit the rows of a chunk.

    - kept[place[i]:]: those of row i.
    - number[i]: how many they are.
    """

    place: Ints
    kept: Places
    number: Ints


@rule
def relation(a_start: Any, a_end: Any, b_start: Any, b_end: Any) -> int:
    """Return the one relation of A to B that holds (Table 1)."""
    if a_end <= b_start:
        return MEETS if a_end == b_start else BEFORE
    if b_end <= a_start:
        return MET_BY if b_end == a_start else AFTER
    if a_start < b_start:
        return OVERLAPS if a_end < b_end else FINISHES if a_end == b_end else CONTAINS
    if a_start == b_start:
        return STARTS if a_end < b_end else EQUALS if a_end == b_end else STARTED_BY
    return DURING if a_end < b_end else FINISHED_BY if a_end == b_end else OVERLAPPED_BY


@rule
def _first_after(low: int, high: int, point: Any, endpoints: Any) -> int:
    """Return the first of the situations [low, high) whose endpoint comes after a point."""
    while low < high:
        middle = (low + high) // 2
        if endpoints[middle] <= point:
            low = middle + 1
        else:
            high = middle
    return low


@rule
def _first_from(low: int, high: int, point: Any, endpoints: Any) -> int:
    """Return the first of the situations [low, high) whose endpoint comes at a point or after it."""
    while low < high:
        middle = (low + high) // 2
        if endpoints[middle] < point:
            low = middle + 1
        else:
            high = middle
    return low


@rule
def _zone_begin(zone: int, low: int, high: int, start: Any, end: Any, situations: Situations) -> int:
    """Return where a zone of situation A begins among the situations [low, high).

    A lasts from `start` to `end`.
    """
    if zone <= 0:
        return low
    if zone == 1:
        return _first_from(low, high, start, situations.end)
    if zone == 2:
        return _first_after(low, high, start, situations.start)
    if zone == 3:
        return _first_from(_first_after(low, high, start, situations.start), high, end, situations.end)
    if zone == 4:
        return _first_after(low, high, end, situations.start)
    return high


@rule
def _first_in_window(low: int, high: int, latest: Any, latest_clock: Any, length: Any, situations: Situations) -> int:
    """Return the first of the situations [low, high) that does not start too long before `latest`."""
    while low < high:
        middle = (low + high) // 2
        if situations.start[middle] < latest and not within(situations.start_clock[middle], latest_clock, length):
            low = middle + 1
        else:
            high = middle
    return low


@rule
def _first_beyond_window(low: int, high: int, earliest: Any, earliest_clock: Any, length: Any, situations: Situations) -> int:
    """Return the first of the situations [low, high) that is known too long after `earliest`."""
    while low < high:
        middle = (low + high) // 2
        if situations.known[middle] <= earliest or within(earliest_clock, situations.known_clock[middle], length):
            low = middle + 1
        else:
            high = middle
    return low


@kernel(writes=("candidates",))
def find_candidates(
    low: int, high: int, rows: Configurations, level: Level, situations: Situations, length: Any, candidates: CandidateRanges
) -> None:  # fmt: skip
    """Find the candidates of each row: the situations in the zones of all constraints and, if ``level.windowed``, in the window."""
    for i in range(low, high):
        begin, end = situations.offsets[level.name, rows.stream[i]], situations.offsets[level.name, rows.stream[i] + 1]
        if level.windowed:
            begin = _first_in_window(begin, end, rows.high[i], rows.high_clock[i], length, situations)
            end = _first_beyond_window(begin, end, rows.low[i], rows.low_clock[i], length, situations)
        for k in range(level.first_zone.size):
            a = rows.members[level.place[k], i]
            start, stop = situations.start[a], situations.end[a]
            first = _zone_begin(level.first_zone[k], begin, end, start, stop, situations)
            end = _zone_begin(level.last_zone[k] + 1, first, end, start, stop, situations)
            begin = first
        for g in range(level.runs.shape[0]):
            first, last = begin, end
            if level.divided >= 0:
                a = rows.members[level.place[level.divided], i]
                start, stop = situations.start[a], situations.end[a]
                first = _zone_begin(level.runs[g, 0], begin, end, start, stop, situations)
                last = _zone_begin(level.runs[g, 1] + 1, first, end, start, stop, situations)
            candidates.first[g, i] = first
            candidates.size[g, i] = last - first


@kernel(writes=("number",))
def count_candidates(
    low: int, high: int, rows: Configurations, situations: Situations, limits: Limits, candidates: CandidateRanges, number: Ints
) -> None:  # fmt: skip
    """``number[i]``: how many candidates fit row i, where zones and window tell nearly all.

    What they leave to test is whether a candidate is decided, or starts, too late.
    This is so where each zone allows just the relations wanted, and no candidate
    can be both the first and the last of a match.
    """
    latest, limit, length = limits
    for i in range(low, high):
        size = 0
        if rows.high[i] <= latest and within(rows.low_clock[i], rows.high_clock[i], length):
            for g in range(candidates.first.shape[0]):
                first = candidates.first[g, i]
                end = _first_after(first, first + candidates.size[g, i], latest, situations.known)
                if rows.low[i] >= limit:
                    end = _first_from(first, end, limit, situations.start)
                size += end - first
        number[i] = size


@rule
def _judge_constraints(i: int, r: int, rows: Configurations, level: Level, situations: Situations) -> tuple[bool, Any, Any]:
    """Return whether situation r satisfies all constraints with row i, and when all is decided.

    The time is given as an endpoint and on the clock.
    """
    start, end = situations.start[r], situations.end[r]
    high, high_clock = rows.high[i], rows.high_clock[i]
    if situations.known[r] > high:
        high, high_clock = situations.known[r], situations.known_clock[r]
    holds = True
    for k in range(level.place.size):
        a = rows.members[level.place[k], i]
        found = relation(situations.start[a], situations.end[a], start, end)
        holds = holds and (level.allowed[k] >> found & 1) != 0
        # a relation decided when the later one starts moves `high` no further: both are known no earlier
        if (level.early[k] >> found & 1) == 0:
            first = a if situations.end[a] < end else r
            if situations.end[first] > high:
                high, high_clock = situations.end[first], situations.end_clock[first]
    return holds, high, high_clock


@rule
def _fits(i: int, r: int, rows: Configurations, level: Level, situations: Situations, limits: Limits) -> bool:
    """Return whether situation r can be added to row i: all constraints hold, within the limits."""
    holds, high, high_clock = _judge_constraints(i, r, rows, level, situations)
    low, low_clock = rows.low[i], rows.low_clock[i]
    if situations.start[r] < low:
        low, low_clock = situations.start[r], situations.start_clock[r]
    return bool(holds and high <= limits.latest and low < limits.limit and within(low_clock, high_clock, limits.length))


@kernel(writes=("fitting.kept", "fitting.number"))
def keep_fitting(
    low: int, high: int, begin: int, rows: Configurations, level: Level, situations: Situations, limits: Limits,
    candidates: CandidateRanges, fitting: Fitting,
) -> None:  # fmt: skip
    """Write the candidates that fit each row of a chunk to ``fitting.kept``, and how many; the chunk begins at row `begin`."""
    for i in range(low, high):
        row = begin + i
        size = 0
        for g in range(candidates.first.shape[0]):
            first = candidates.first[g, row]
            for r in range(first, first + candidates.size[g, row]):
                fitting.kept[fitting.place[i] + size] = r
                size += _fits(row, r, rows, level, situations, limits)
        fitting.number[i] = size


@kernel(writes=("out",))
def join_situations(
    low: int, high: int, begin: int, rows: Configurations, level: Level, situations: Situations, fitting: Fitting, target: Ints,
    out: Configurations,
) -> None:  # fmt: skip
    """Write the rows of a chunk, each with one situation more, once for each situation that fits it.

    The chunk begins at row `begin`. What comes of its row i begins at row ``target[i]``.
    """
    places = rows.members.shape[0]
    for i in range(low, high):
        row = begin + i
        for k in range(fitting.number[i]):
            r, m = fitting.kept[fitting.place[i] + k], target[i] + k
            for p in range(places):
                out.members[p, m] = rows.members[p, row]
            out.members[places, m] = r
            out.stream[m] = rows.stream[row]
            _, high_end, high_clock = _judge_constraints(row, r, rows, level, situations)
            out.high[m] = high_end
            out.high_clock[m] = high_clock
            earlier = situations.start[r] < rows.low[row]
            out.low[m] = situations.start[r] if earlier else rows.low[row]
            out.low_clock[m] = situations.start_clock[r] if earlier else rows.low_clock[row]
