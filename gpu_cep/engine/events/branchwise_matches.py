"""Hold matches branch by branch, as they were found: rows are read from there, and no match is copied before."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from gpu_cep.engine.events.batches import Batch
from gpu_cep.engine.events.matches import BoundRows, Counts, Ends, Indices, Matches, Rows, concatenate_matches, order_placed_rows
from gpu_cep.engine.events.merged_matches import BranchMatches
from gpu_cep.engine.input.buffers import new_values
from gpu_cep.records import record
from gpu_cep_kernels.compile.launch import spread


@record(slots=False)
class BranchwiseMatches:
    """Matches of a query with so many `variables`, each of a branch that binds one event to every variable of its own.

    No two begin with one event. They stand part after part, so that their first events ascend in each part only.
    """

    parts: tuple[BranchMatches, ...]
    variables: int

    def __len__(self) -> int:
        return len(self.first)

    @cached_property
    def first(self) -> Indices:
        """Return the first event of each match."""
        return np.concatenate([part.matches.first for part in self.parts])

    @cached_property
    def last(self) -> Indices:
        """Return the last event of each match."""
        return np.concatenate([part.matches.last for part in self.parts])

    @property
    def single(self) -> bool:
        """Return False: no match binds an event to the variables of another branch."""
        return False

    @property
    def binds_all(self) -> bool:
        """Return False, as :attr:`single`."""
        return False

    @property
    def bound(self) -> int:
        """Return how many events all matches bind together."""
        return sum(part.matches.bound for part in self.parts)

    @property
    def counts(self) -> Counts:
        """Return how many events each variable binds in each match, [match, variable]."""
        return self.joined.counts

    @cached_property
    def joined(self) -> Matches:
        """Return the same matches in one part."""
        return concatenate_matches([matches.widen(own, self.variables) for matches, own in self.parts], self.variables)

    def reorder(self, order: Indices) -> Matches:
        """Return the matches in the order given; some may be left out, none is taken twice."""
        return self.joined.reorder(order)

    def singles_in_order(self, variables: Indices, rows: Rows, order: Indices, number: int, threads: int) -> npt.NDArray[np.int64]:
        """Raise TypeError: no match binds an event to every variable."""
        raise TypeError("matches of alternatives bind no event to some variables")

    def bound_in_order(self, variables: Indices, rows: Rows, order: Indices, number: int, threads: int) -> list[BoundRows]:
        """Return ``rows[e]`` of the events e bound to each of some ascending variables, for so many matches in the given order."""
        return self.joined.bound_in_order(variables, rows, order, number, threads)

    def ends_in_order(self, ends: Ends, rows: Rows, order: Indices, number: int, threads: int) -> npt.NDArray[np.int64]:
        """Return ``rows[e]`` of the one event e bound to each of some variables, [end, match]; −1 where it binds none.

        They are those of so many matches in the given order (empty: as they are).
        """
        placed = new_values((len(self), len(ends.variables)), rows.dtype)
        targets = np.split(placed, np.cumsum([len(part.matches) for part in self.parts])[:-1])

        def place(part: BranchMatches, target: Rows) -> None:
            matches, own = part
            bound = matches.events.reshape(len(matches), len(own))
            for end, v in enumerate(ends.variables.tolist()):
                target[:, end] = rows[bound[:, own.index(v)]] if v in own else -1

        spread(lambda own: place(*own), list(zip(self.parts, targets, strict=True)), threads)
        return order_placed_rows(order, number, placed, threads)


def may_stay_apart(parts: Sequence[BranchMatches], batch: Batch) -> bool:
    """Return whether matches that start in a batch can be held as :class:`BranchwiseMatches`."""
    if not all(part.matches.of_singles for part in parts):
        return False
    begun = np.zeros(batch.own - batch.low, np.bool_)
    for part in parts:
        begun[part.matches.first - batch.low] = True
    return int(np.count_nonzero(begun)) == sum(len(part.matches) for part in parts)
