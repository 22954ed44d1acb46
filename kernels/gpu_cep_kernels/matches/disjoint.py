"""Take the matches that must not overlap: in order of completion, each behind the end of the one taken before it.

Matches come by stream and first event, at most one begins at each event, and events of a later stream have higher
numbers. First those are left out around which no match is ever taken. The others end in the order in which they
begin. So from each match a hop leads to the first one behind its end, and the hops from the first match on lead to
all that are taken.

The CPU makes one hop after the other. On a card many threads make them at once, in blocks of matches, each within
blocks of the next size: where hops from each match leave its block is found from the smallest blocks to the largest.
Then it is known from the largest to the smallest where the hops from the first match enter a block, if they do
(the up-sweep and down-sweep of Blelloch 1990, *Prefix sums and their applications*, over hops for sums).
"""

from __future__ import annotations

from typing import Any

from gpu_cep_kernels.compile.jit import kernel, rule, sequential
from gpu_cep_kernels.rules.scalars import UNBOUNDED

# Where hops from the first match do not enter a block.
NOWHERE = -1


@rule
def _drop_containing(low: int, high: int, earliest: int, last: Any) -> None:
    """Set ``last[w]`` to −1 for w in [low, high) where a later match ends earlier; from `high` on they end at `earliest` or later."""
    for back in range(high - low):
        w = high - 1 - back
        end = last[w]
        # nothing branches on what a processor could not predict
        last[w] = end if end <= earliest else -1
        earliest = min(earliest, end)


@sequential(writes=("last",))
def drop_containing(last: Any) -> None:
    """Set ``last[w]`` to −1 where a match that starts later ends earlier; each w stands for one, in the order of their starts.

    Such a match is never taken where matches must not overlap
    (:mod:`gpu_cep_kernels.rules.cut`). What is left ends in the order of its starts.
    """
    _drop_containing(0, last.size, UNBOUNDED, last)


@sequential(writes=("taken",))
def take_apart(first: Any, last: Any, taken: Any) -> int:
    """Write the numbers of the matches that are taken where matches must not overlap; return how many.

    ``first[m]`` and ``last[m]`` ascend. `taken` has room for one more.
    """
    count = 0
    reached = -1
    for m in range(first.size):
        begin, end = first[m], last[m]
        taken[count] = m
        free = begin > reached
        count += free
        reached = end if free else reached
    return count


@rule
def _end_of_block(block: int, bits: int, size: int) -> int:
    """Return the match behind the last one of a block of 2 ** bits matches, where there are so many matches."""
    return min((block + 1) << bits, size)


@kernel(writes=("earliest",))
def find_first_completions(low: int, high: int, bits: int, last: Any, earliest: Any) -> None:
    """``earliest[b]``: the least of the last events of the matches of block b, which has 2 ** bits."""
    for b in range(low, high):
        found = UNBOUNDED
        for w in range(b << bits, _end_of_block(b, bits, last.size)):
            found = min(found, last[w])
        earliest[b] = found


@kernel(writes=("last",))
def drop_containing_in_blocks(low: int, high: int, bits: int, behind: Any, last: Any) -> None:
    """Do what :func:`drop_containing` does, block by block; the matches behind block b end at ``behind[b]`` or later."""
    for b in range(low, high):
        _drop_containing(b << bits, _end_of_block(b, bits, last.size), behind[b], last)


@kernel(writes=("following",))
def follow_matches(low: int, high: int, first: Any, last: Any, following: Any) -> None:
    """``following[m]``: the first match that begins behind the last event of match m; the number of matches if none does."""
    for m in range(low, high):
        end, behind, step = last[m], m + 1, 1
        # steps are doubled first, and halved then
        while behind + step <= first.size and first[behind + step - 1] <= end:
            behind += step
            step *= 2
        while step > 1:
            step //= 2
            if behind + step <= first.size and first[behind + step - 1] <= end:
                behind += step
        following[m] = behind


@kernel(writes=("exits",))
def leave_blocks(low: int, high: int, bits: int, following: Any, exits: Any) -> None:
    """``exits[m]``: the first match outside of m's block of 2 ** bits matches to which hops from match m lead.

    ``following[m]`` is a later match to which they lead, or the number of matches.
    """
    for m in range(low, high):
        end, at = _end_of_block(m >> bits, bits, following.size), m
        while at < end:
            at = int(following[at])
        exits[m] = at


@kernel(writes=("entries",))
def enter_blocks(low: int, high: int, bits: int, part: int, entered: Any, exits: Any, entries: Any) -> None:
    """``entries[p]``: the match of part p to which hops lead first; NOWHERE if they pass the part over.

    ``entered[b]`` is the same of block b. Blocks have 2 ** bits matches and parts 2 ** part. ``exits[m]``: where hops leave
    the part of match m.
    """
    for b in range(low, high):
        end, at = _end_of_block(b, bits, exits.size), int(entered[b])
        for p in range((b << bits) >> part, ((end - 1) >> part) + 1):
            entries[p] = NOWHERE
        while NOWHERE < at < end:
            entries[at >> part] = at
            at = int(exits[at])
