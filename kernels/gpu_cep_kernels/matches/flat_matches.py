"""Order, select and gather flat matches, and split their bindings by variable."""

from __future__ import annotations

from typing import Any, NamedTuple

from gpu_cep_kernels.compile.jit import kernel, rule, sequential
from gpu_cep_kernels.rules.copies import copy_rows
from gpu_cep_kernels.rules.scalars import UNBOUNDED


class FlatMatches(NamedTuple):
    """Hold matches one after the other; m is a match.

    - offsets[m]: the place of its first event in `events`; one more entry than matches.
    - counts[m, v]: how many events it binds to variable v.
    - events: the events of all matches, variable after variable.
    """

    offsets: Any
    counts: Any
    events: Any


@rule
def _precedes(left: int, right: int, matches: FlatMatches, lasts: Any) -> bool:
    """Return whether match `left` comes before `right`, where both have the same first event.

    The last event decides, then the lists of events, variable by variable.
    """
    if lasts[left] != lasts[right]:
        return lasts[left] < lasts[right]
    offsets, counts, events = matches
    a, b = offsets[left], offsets[right]
    for v in range(counts.shape[1]):
        shared = min(counts[left, v], counts[right, v])
        for k in range(shared):
            if events[a + k] != events[b + k]:
                return events[a + k] < events[b + k]
        if counts[left, v] != counts[right, v]:
            return counts[left, v] < counts[right, v]
        a += counts[left, v]
        b += counts[right, v]
    return False


@sequential(writes=("order",), scratch=("scratch",))
def order_matches(first: Any, matches: FlatMatches, lasts: Any, order: Any, scratch: Any) -> int:
    """Write in `order` the matches of each first event by last event and then by bindings.

    Matches of one first event follow one another. `order` is given as their
    numbers, ascending. It is a bottom-up merge sort, with `scratch` as long as
    `order`. Return how many first events had matches that were not in order.
    """
    moved = 0
    begin = 0
    while begin < first.size:
        end, ordered = begin + 1, True
        while end < first.size and first[end] == first[begin]:
            ordered = ordered and not _precedes(end, end - 1, matches, lasts)
            end += 1
        moved += not ordered
        width = end - begin if ordered else 1
        while width < end - begin:
            for start in range(begin, end, 2 * width):
                middle, stop = min(start + width, end), min(start + 2 * width, end)
                i, j = start, middle
                for place in range(start, stop):
                    from_right = j < stop and (i >= middle or _precedes(order[j], order[i], matches, lasts))
                    scratch[place] = order[j] if from_right else order[i]
                    i += not from_right
                    j += from_right
            for m in range(begin, end):
                order[m] = scratch[m]
            width *= 2
        begin = end
    return moved


@sequential(writes=("places", "order"))
def group_matches(starts: Any, places: Any, order: Any) -> None:
    """``order``: the matches by first event, and as given among equals; a counting sort.

    Match m starts at event ``starts[m]``. `places` is given as zeros, two more than
    there are events. Afterwards the matches of event e begin at ``places[e]`` of
    `order`.
    """
    for m in range(starts.size):
        places[starts[m] + 2] += 1
    for e in range(2, places.size):
        places[e] += places[e - 1]
    for m in range(starts.size):
        place = places[starts[m] + 1]
        order[place] = m
        places[starts[m] + 1] = place + 1


@rule
def _copy_widened(m: int, columns: Any, matches: FlatMatches, target: int, place: int, widened: FlatMatches) -> int:
    """Copy match m to number `target`, with its events from `place` on; return where the next match's events begin.

    Its variable v becomes number ``columns[v]``. These ascend. The others bind nothing.
    """
    offsets, counts, events = matches
    for u in range(widened.counts.shape[1]):
        widened.counts[target, u] = 0
    for v in range(counts.shape[1]):
        widened.counts[target, columns[v]] = counts[m, v]
    for e in range(offsets[m], offsets[m + 1]):
        widened.events[place] = events[e]
        place += 1
    return place


@sequential(writes=("first", "merged.counts", "merged.events"))
def merge_matches(
    left_first: Any, left_columns: Any, left: FlatMatches, right_first: Any, right_columns: Any, right: FlatMatches, first: Any,
    merged: FlatMatches,
) -> None:  # fmt: skip
    """Merge two lists of matches that ascend by first event; among equal ones those of the left list come before.

    ``left_columns[v]`` is the number, in `merged`, of the variable v of the left list; so are those of the right.
    They ascend. ``first[m]`` is the first event of match m of `merged`, of which the offsets are not read.
    """
    i, j, place = 0, 0, 0
    for m in range(first.size):
        if i < left_first.size and (j >= right_first.size or left_first[i] <= right_first[j]):
            first[m] = left_first[i]
            place = _copy_widened(i, left_columns, left, m, place, merged)
            i += 1
        else:
            first[m] = right_first[j]
            place = _copy_widened(j, right_columns, right, m, place, merged)
            j += 1


@sequential(writes=("places",))
def sum_bound(begin: int, end: int, variables: Any, order: Any, counts: Any, places: Any) -> None:
    """``places[k, m + 1]``: how many events the matches from `begin` to m, which is below `end`, bind to variable ``variables[k]``.

    Match m is number ``order[m]`` of the counted ones; `order` is empty if it is number m.
    """
    for k in range(variables.size):
        total = 0
        for m in range(begin, end):
            total += counts[order[m] if order.size else m, variables[k]]
            places[k, m + 1] = total


@sequential(writes=("offsets",))
def match_offsets(counts: Any, offsets: Any) -> None:
    """``offsets[m]``: where the events of match m begin; one more entry than matches."""
    total = 0
    for m in range(counts.shape[0]):
        offsets[m] = total
        for v in range(counts.shape[1]):
            total += counts[m, v]
    offsets[counts.shape[0]] = total


@kernel(writes=("lasts",))
def last_events(low: int, high: int, offsets: Any, events: Any, lasts: Any) -> None:
    """``lasts[m]``: the latest event of match m."""
    for m in range(low, high):
        latest = events[offsets[m]]
        for k in range(offsets[m] + 1, offsets[m + 1]):
            latest = max(latest, events[k])
        lasts[m] = latest


@kernel(writes=("out",))
def split_binding(low: int, high: int, v: int, matches: FlatMatches, rows: Any, ranks: Any, places: Any, out: Any) -> None:
    """Gather ``rows[e]`` of the events e bound to variable v; those of match m go to ``out[places[r]:]`` with r its rank.

    ``ranks[m]`` is −1 for a match that is left out. `ranks` is empty if matches stay
    in their order.
    """
    offsets, counts, events = matches
    for m in range(low, high):
        rank = ranks[m] if ranks.size else m
        if rank >= 0:
            begin, target = offsets[m], places[rank]
            for u in range(v):
                begin += counts[m, u]
            for k in range(counts[m, v]):
                out[target + k] = rows[events[begin + k]]


@kernel(writes=("placed",))
def place_bound(low: int, high: int, variables: Any, last: Any, matches: FlatMatches, rows: Any, placed: Any) -> None:
    """``placed[m, k]``: ``rows[e]`` of the first event e of variable ``variables[k]`` in match m; −1 if it binds none.

    It is the last one where ``last[k]`` is true. No variable is less than the one before.
    """
    offsets, counts, events = matches
    for m in range(low, high):
        place, v = offsets[m], 0
        for k in range(variables.size):
            while v < variables[k]:
                place += counts[m, v]
                v += 1
            behind = counts[m, v] - 1 if last[k] else 0
            placed[m, k] = rows[events[place + behind]] if counts[m, v] > 0 else -1


@kernel(writes=("out",))
def gather_singles(low: int, high: int, variables: Any, events: Any, rows: Any, out: Any) -> None:
    """``out[k, m] = rows[events[m, variables[k]]]``, for matches that bind one event to each variable.

    All variables are read in one pass: the events of a match stand together.
    """
    for m in range(low, high):
        for k in range(variables.size):
            out[k, m] = rows[events[m, variables[k]]]


@kernel(writes=("placed",))
def place_rows(low: int, high: int, variables: Any, events: Any, rows: Any, placed: Any) -> None:
    """``placed[m, k] = rows[events[m, variables[k]]]``: rows of matches in the order of their events, so that few are far apart."""
    for m in range(low, high):
        for k in range(variables.size):
            placed[m, k] = rows[events[m, variables[k]]]


@kernel(writes=("out",))
def order_placed(low: int, high: int, order: Any, placed: Any, out: Any) -> None:
    """``out[v, m] = placed[order[m], v]``; `order` is empty if matches stay in theirs."""
    for m in range(low, high):
        source = order[m] if order.size else m
        for v in range(placed.shape[1]):
            out[v, m] = placed[source, v]


@sequential(writes=("ranks",))
def invert_order(order: Any, ranks: Any) -> None:
    """``ranks[order[k]] = k``; `ranks` is given as −1 everywhere."""
    for k in range(order.size):
        ranks[order[k]] = k


@kernel(writes=("out",))
def repeat_bindings(low: int, high: int, chosen: Any, places: Any, rows: Any, new_places: Any, out: Any) -> None:
    """Write the rows of binding ``chosen[m]`` for each match m, from ``out[new_places[m]]`` on.

    Binding b has those from ``places[b]`` on.
    """
    for m in range(low, high):
        copy_rows(rows, places[chosen[m]], new_places[m], new_places[m + 1], new_places[high], out)


@kernel(writes=("numbers", "variables", "places"))
def number_bound(low: int, high: int, given: Any, counts: Any, offsets: Any, numbers: Any, variables: Any, places: Any) -> None:
    """Write, for each bound event, its match's number ``given[m]``, its variable, and its place among that variable's events, from 1 on.

    Match m binds ``counts[m, v]`` events to variable v. All of its events begin at ``offsets[m]``, variable after variable.
    """
    for m in range(low, high):
        e = offsets[m]
        for v in range(counts.shape[1]):
            for k in range(counts[m, v]):
                numbers[e], variables[e], places[e] = given[m], v, k + 1
                e += 1


@kernel(writes=("gathered.counts", "gathered.events"))
def gather_matches(low: int, high: int, order: Any, matches: FlatMatches, gathered: FlatMatches) -> None:
    """Gather matches in a new order: match m of the result is match ``order[m]`` of the given ones.

    The offsets of the result are given.
    """
    offsets, counts, events = matches
    new_offsets, new_counts, new_events = gathered
    for m in range(low, high):
        old = order[m]
        for v in range(counts.shape[1]):
            new_counts[m, v] = counts[old, v]
        for k in range(offsets[old + 1] - offsets[old]):
            new_events[new_offsets[m] + k] = events[offsets[old] + k]


@sequential(writes=("taken",))
def select_disjoint(order: Any, streams: Any, first: Any, last: Any, taken: Any) -> None:
    """``taken[m]``: whether match m begins behind the last event of the match taken before it in its stream.

    Matches are visited in `order`, stream after stream. ``first[m]`` and
    ``last[m]`` are positions in the stream.
    """
    stream, reached = -1, -1
    for k in range(order.size):
        m = order[k]
        if streams[m] != stream:
            stream, reached = streams[m], -1
        taken[m] = first[m] > reached
        if taken[m]:
            reached = last[m]


@sequential(writes=("kept", "final"))
def settle_disjoint(streams: Any, first: Any, last: Any, late: Any, early: Any, kept: Any, final: Any) -> int:
    """Write the matches that may be taken where matches must not overlap, and which of these surely are; return how many.

    ``kept[k]`` is the number of a match, ascending, and ``final[k]`` whether it is taken whatever matches there are beside those
    given. Matches come by stream and first event; ``first[m]`` and ``last[m]`` are positions in the stream. Match m begins behind
    all others that are not given if ``late[m]``, or else some may end behind its beginning. It ends before the rest of those begin
    if ``early[m]``.

    Any match written from place `front` on may be the last one taken. Before, one that is not given
    may be the last (`outside`). A match that begins behind all that may be the last is taken for
    certain, and one that begins behind none of them is not.
    """
    stream, earliest = -1, UNBOUNDED
    for back in range(streams.size):
        m = streams.size - 1 - back
        if streams[m] != stream:
            stream, earliest = streams[m], UNBOUNDED
        # a match that starts later and ends earlier is taken first, or overlaps one that is: so does this one
        kept[m] = last[m] <= earliest
        earliest = min(earliest, last[m])
    count = 0
    stream, front, outside = -1, 0, True
    for m in range(streams.size):
        if streams[m] != stream:
            stream, front, outside = streams[m], count, True
        if kept[m]:
            behind = front
            # one that others may drop leaves those before it the last ones taken
            while behind < count and (early[m] or behind == front) and last[kept[behind]] < first[m]:
                behind += 1
            possible = outside or behind > front
            sure = possible and early[m] and behind == count and (late[m] or not outside)
            if early[m]:
                front, outside = behind, outside and not late[m]
            if possible:
                kept[count], final[count] = m, sure
                count += 1
    return count
