"""Hold matches whose events follow one another: each is a range of ordered events."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from gpu_cep.engine.events.matches import (
    AS_THEY_ARE,
    BoundRows,
    Counts,
    Ends,
    Indices,
    Matches,
    Rows,
    binding_places,
    bound_singles,
    concatenate_arrays,
    ones,
)
from gpu_cep.engine.input.buffers import new_values
from gpu_cep.engine.lowering.lists import offsets
from gpu_cep.records import record
from gpu_cep_kernels.compile.launch import over_slices
from gpu_cep_kernels.labels_decide.runs import Ranges, gather_ranges, list_events, list_rows, pick_rows


@record(slots=False)
class ContiguousMatches:
    """The bindings of M matches of V variables, in the order of the sequence.

    * ``first[m]``, ``last[m]``: the first and the last event of match m, as numbers of ordered events.
    * ``counts[m, v]``: how many events variable v binds in match m. All bind one if the array is repeated in memory.

    The events of a match are all from its first to its last, one variable after the other. They
    are listed only if somebody asks for them.
    """

    first: Indices
    last: Indices
    counts: Counts

    def __len__(self) -> int:
        return len(self.first)

    @property
    def single(self) -> bool:
        """Return whether each match binds one event to every variable."""
        return self.counts.strides == (0, 0)

    @property
    def binds_all(self) -> bool:
        """Return that each match binds an event to every variable."""
        return True

    @cached_property
    def bound(self) -> int:
        """Return how many events all matches bind together."""
        # two sums, so that nothing of their length is written
        return int(np.add.reduce(self.last) - np.add.reduce(self.first)) + len(self)

    @cached_property
    def offsets(self) -> Indices:
        """Return where each match's events begin in `events`, and where the last match's end."""
        return offsets(self.last - self.first + 1)

    @cached_property
    def events(self) -> Indices:
        """Return all bound events, match after match, variable after variable."""
        listed: Indices = new_values(int(self.offsets[-1]), np.int64)
        list_events(0, len(self), 0, self.first, self.offsets, listed)
        return listed

    def bound_rows(self, variables: Indices, rows: Rows, threads: int = 1) -> list[BoundRows]:
        """Return ``rows[e]`` of the events e bound to each of some ascending variables; `threads` gather them."""
        if self.single:
            return bound_singles(self.rows_of_singles(variables, rows, threads))
        places = binding_places(variables, AS_THEY_ARE, len(self), self, threads)
        begins = [*accumulate(places[:, -1].tolist(), initial=0)]
        lists: Indices = new_values(begins[-1], np.int64)
        first, counts = self.first, self.counts
        over_slices(list_rows, len(self), threads, variables, first, counts, rows, places, np.array(begins, np.int64), lists)
        return [(lists[low:high], own) for low, high, own in zip(begins, begins[1:], places, strict=False)]

    def rows_of_ends(self, ends: Ends, rows: Rows, threads: int = 1) -> npt.NDArray[np.int64]:
        """Return ``rows[e]`` of the first or last event e bound to each of some variables, [end, match]."""
        bound: npt.NDArray[np.int64] = new_values((len(ends.variables), len(self)), np.int64)
        first, counts = self.first, self.counts
        over_slices(pick_rows, len(self), threads, *ends, first, counts, rows, bound)
        return bound

    def rows_of_singles(self, variables: Indices, rows: Rows, threads: int = 1) -> npt.NDArray[np.int64]:
        """Return ``rows[e]`` of the event e bound to each of some variables, [variable, match]; each match binds one to every variable."""
        return self.rows_of_ends(Ends(variables, np.zeros(len(variables), np.bool_)), rows, threads)

    def reorder(self, order: Indices, threads: int = 1) -> ContiguousMatches:
        """Return the matches in the order given, gathered by `threads`; some may be left out."""
        if self.single:
            return ContiguousMatches(self.first[order], self.last[order], ones(len(order), self.counts.shape[1]))
        given = Ranges(self.first, self.last, self.counts)
        ends = new_values(len(order), np.int64), new_values(len(order), np.int64)
        gathered = Ranges(*ends, new_values((len(order), self.counts.shape[1]), np.int32))
        over_slices(gather_ranges, len(order), threads, order, given, gathered)
        return ContiguousMatches(*gathered)

    def matches(self) -> Matches:
        """Return the same matches with their events listed."""
        return Matches(self.first, self.counts, self.events)


def concatenate_runs(parts: Sequence[ContiguousMatches], variables: int, threads: int) -> ContiguousMatches:
    """Return the matches of all parts, one part after the other, copied by `threads`."""
    if len(parts) == 1:
        return parts[0]
    nothing = np.empty(0, np.int64)
    first, last = (
        concatenate_arrays([nothing, *ends], threads) for ends in ([part.first for part in parts], [part.last for part in parts])
    )
    single = all(part.single for part in parts)
    counts = ones(len(first), variables) if single else concatenate_arrays([part.counts for part in parts], threads)
    return ContiguousMatches(first, last, counts)
