"""Read the events of matched situations for RETURN.

A situation's events are read once, however many matches it is in.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gpu_cep.analysis.bound_expressions import Endpoint
from gpu_cep.engine.events.event_sequence import EventSequence
from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.input.arrow_arrays import list_array, masked_array
from gpu_cep.engine.input.buffers import new_values
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.input.machine_values import Array
from gpu_cep.engine.intervals.stream_order import StreamOrder
from gpu_cep.engine.lowering.lists import offsets
from gpu_cep.engine.output.moments import times_of
from gpu_cep.engine.output.returns import BoundEvents, too_many_rows
from gpu_cep.errors import EventError
from gpu_cep.plan.programs import Leaf
from gpu_cep_kernels.compile.launch import slices, spread
from gpu_cep_kernels.matches.flat_matches import repeat_bindings


class RowRanges(NamedTuple):
    """Input rows, and where those of each situation begin and end among them."""

    rows: Array
    begins: Indices
    ends: Indices


@dataclass
class SituationEvents(BoundEvents):
    """The events of some situations of one name, in order of stream and time.

    `stream`, `first`, `last`: the stream of each situation, and the positions of its first and last events.
    `start`, `end`: from when to when it lasts.
    `is_open`: whether it is open at detection, so that its end is unknown (None: none is open).
    `by_stream`: their events in the order of streams; None if a situation's events follow one another.

    Methods take a variable, as those of the base class do, and ignore it.
    """

    columns: EventColumns
    events: EventSequence
    stream: Array
    first: Array
    last: Array
    start: Array
    end: Array
    is_open: npt.NDArray[np.bool_] | None
    by_stream: StreamOrder | None
    threads: int

    def __len__(self) -> int:
        return len(self.first)

    def binding(self, v: int) -> tuple[Indices, Indices]:
        """Return the input rows of all situations, and where those of each begin, with the end."""
        return self._rows

    def event_row(self, v: int, index: int = 0) -> pa.Array:
        """Return the input row of the first event of each situation, or of the last one for another `index`."""
        return pa.array(self.events.input_rows(self.first if index == 0 else self.last))

    def leaf(self, leaf: Leaf) -> pa.Array:
        """Return an aggregate over each situation's events, its start or its end."""
        if not isinstance(leaf, Endpoint):
            return super().leaf(leaf)
        if leaf.function == "start":
            return times_of(self.columns, self.start, None)
        return times_of(self.columns, self.end, self.is_open)

    @cached_property
    def ranges(self) -> RowRanges:
        """Return the input rows of all situations."""
        if self.by_stream is not None:
            rows, places = self.by_stream.rows, self.by_stream.places
            return RowRanges(rows, places[self.first].astype(np.int64), places[self.last] + np.int64(1))
        sizes = self.last.astype(np.int64) - self.first + 1
        places = offsets(sizes)
        positions = np.repeat(self.first - places[:-1], sizes) + np.arange(places[-1])
        return RowRanges(self.events.input_rows(positions), places[:-1], places[1:])

    @cached_property
    def sizes(self) -> Indices:
        """Return how many events each situation has."""
        return self.ranges.ends - self.ranges.begins

    @cached_property
    def _rows(self) -> tuple[Indices, Indices]:
        """Return the input rows of all events, situation after situation, and the offset of each situation in them."""
        return self.repeat(np.arange(len(self)))

    def repeat(self, chosen: Indices) -> tuple[Indices, Indices]:
        """Return the input rows of the situations `chosen`, one after the other, and where each one's begin, with the end."""
        rows, begins, _ = self.ranges
        places = offsets(self.sizes[chosen])
        repeated: Indices = new_values(int(places[-1]), np.int64)
        spread(
            lambda span: repeat_bindings(*span, chosen, begins, rows, places, repeated), slices(len(chosen), self.threads), self.threads
        )  # fmt: skip
        return repeated, places


@dataclass
class MatchedSituations:
    """The matched situations, as RETURN reads them.

    `names`: the situations of each name.
    `places`: match m takes situation ``places[v][m]`` of ``names[v]``.
    """

    columns: EventColumns
    names: tuple[SituationEvents, ...]
    places: tuple[Indices, ...]

    def __len__(self) -> int:
        return len(self.places[0])

    def of_match(self, v: int, values: pa.Array) -> pa.Array:
        """Return, for each match, the entry of `values` that belongs to its situation of name v."""
        return values.take(pa.array(self.places[v]))

    def whole(self, v: int, names: tuple[str, ...]) -> pa.Array:
        """Return the events of each match's situation of name v, as a list of structs with the named columns."""
        return self.of_match(v, self.names[v].whole(v, names))

    def attribute(self, v: int, column: int) -> pa.Array:
        """Return the values of a column at the events of each match's situation of name v, as a list."""
        return self.of_match(v, self.names[v].attribute(v, column))

    def indices(self, v: int) -> pa.Array:
        """Return the input rows of the events of each match's situation of name v, as a list."""
        rows, places = self.names[v].repeat(self.places[v])
        if places[-1] > np.iinfo(np.int32).max:
            raise EventError(too_many_rows(int(places[-1])))
        return list_array(places.astype(np.int32), masked_array(rows))

    def leaf(self, leaf: Leaf) -> pa.Array:
        """Return, for each match, an aggregate over a situation's events, its start or its end."""
        return self.of_match(leaf.variable, self.names[leaf.variable].leaf(leaf))

    def codes(self, leaf: Leaf, column: int) -> tuple[Array, npt.NDArray[np.bool_]]:
        """Return a text leaf as codes of its column's dictionary, and where it is NULL."""
        codes, nulls = self.names[leaf.variable].codes(leaf, column)
        places = self.places[leaf.variable]
        return codes[places], nulls[places]
