"""Read the events of matched situations for RETURN.

A situation's events are read once, however many matches it is in.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gpu_cep.analysis.bound import Endpoint
from gpu_cep.engine.events.event_sequence import EventSequence
from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.input.arrow_arrays import arrow_array
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.input.machine_values import Array
from gpu_cep.engine.output.returns import BoundEvents, too_many_rows
from gpu_cep.errors import EventError
from gpu_cep.plan.programs import Leaf
from gpu_cep_kernels.compile.launch import slices, spread
from gpu_cep_kernels.intervals.situations import NEVER, Awaited, Wanted, collect
from gpu_cep_kernels.matches.flat_matches import repeat_bindings
from gpu_cep_kernels.matches.groups import order_by_group


@dataclass
class SituationEvents(BoundEvents):
    """The events of some situations of one name, in order of stream and time.

    `stream`, `first`, `last`: the stream of each situation, and the positions of its first and last events.
    `start`, `end`: from when to when it lasts.
    `is_open`: whether it is open at detection, so that its end is unknown (None: none is open).

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
    threads: int

    def __len__(self) -> int:
        return len(self.first)

    def binding(self, v: int) -> tuple[Indices, Indices]:
        return self._rows

    def event_row(self, v: int, index: int = 0) -> pa.Array:
        return pa.array(self.events.input_rows(self.first if index == 0 else self.last))

    def leaf(self, leaf: Leaf) -> pa.Array:
        if not isinstance(leaf, Endpoint):
            return super().leaf(leaf)
        if leaf.function == "start":
            return times_of(self.columns, self.start, None)
        return times_of(self.columns, self.end, self.is_open)

    @cached_property
    def _rows(self) -> tuple[Indices, Indices]:
        """Return the input rows of all events, situation after situation, and the offset of each situation in them."""
        contiguous = self.events.streams is None or self.events.offsets is not None
        positions, places = self._collect_ranges() if contiguous else self._collect_interleaved(self.events.streams)
        # as results have them: few situations are widened here, and not the many that matches repeat
        return self.events.input_rows(positions).astype(np.int64, copy=False), places

    def _collect_ranges(self) -> tuple[Indices, Indices]:
        sizes = self.last.astype(np.int64) - self.first + 1
        places = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        return np.repeat(self.first - places[:-1], sizes) + np.arange(places[-1]), places

    def _collect_interleaved(self, streams: Array | None) -> tuple[Array, Indices]:
        """Return the events' positions, situation after situation, and offsets, where streams are interleaved.

        It reads once all events between the first and the last of any situation.
        """
        offsets = np.concatenate([[0], np.cumsum(np.bincount(self.stream, minlength=self.events.count))]).astype(np.int64)
        wanted = Wanted(offsets, self.first, self.last)
        begins, ends = _spans(self.first, self.last)

        def collect_slice(span: tuple[int, int]) -> tuple[Array, Array]:
            begin, end = np.maximum(begins, span[0]), np.minimum(ends, span[1])
            begin, end = begin[begin < end], end[begin < end]
            runs, positions = (np.empty(int((end - begin).sum()), np.int32) for _ in range(2))
            found = collect(begin, end, streams, wanted, self._awaited_at(wanted, span[0]), runs, positions)
            return runs[:found], positions[:found]

        parts = spread(collect_slice, slices(len(self.events), self.threads), self.threads)
        runs, positions = (np.concatenate(arrays) for arrays in zip(*parts, strict=True)) if parts else (self.first, self.first)
        order, places = order_by_group(runs, len(self))
        return positions[order], places

    def _awaited_at(self, wanted: Wanted, low: int) -> Awaited:
        """Return, for each stream, the first situation that does not end before event `low`, and its first event."""
        run = wanted.offsets[:-1] + np.bincount(self.stream[self.last < low], minlength=self.events.count)
        due = np.full(self.events.count, NEVER, np.int32)
        left = np.flatnonzero(run < wanted.offsets[1:])
        due[left] = wanted.first[run[left]]
        return Awaited(run, due)


def _spans(first: Array, last: Array) -> tuple[Indices, Indices]:
    """Return the positions between first and last events, merged to disjoint ranges [begin, end)."""
    order = np.argsort(first, kind="stable")
    begins, ends = first[order].astype(np.int64), np.maximum.accumulate(last[order].astype(np.int64)) + 1
    apart = np.flatnonzero(begins[1:] > ends[:-1]) + 1
    firsts = np.concatenate([[0], apart]) if len(begins) else apart
    return begins[firsts], np.maximum.reduceat(ends, firsts) if len(begins) else ends


def times_of(columns: EventColumns, values: Array, missing: npt.NDArray[np.bool_] | None) -> pa.Array:
    """Return machine times as an array of the timestamp column's type, NULL where `missing`.

    Raises
    ------
    EventError
        The end of a situation that a gap ended lies outside the type.
    """
    query = columns.query
    name, data_type = columns.name(query.timestamp), query.schema.attributes[query.timestamp].type
    nulls = np.zeros(len(values), np.bool_) if missing is None else missing
    try:
        return arrow_array(values, nulls, data_type).cast(columns.table.schema.field(query.timestamp).type)
    except pa.ArrowInvalid as fault:
        raise EventError(f"column {name!r}: {fault}") from fault


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
        own, chosen = self.names[v], self.places[v]
        rows, places = own.binding(v)
        repeated: Indices = np.zeros(len(chosen) + 1, np.int64)
        np.cumsum((places[1:] - places[:-1])[chosen], out=repeated[1:])
        if repeated[-1] > np.iinfo(np.int32).max:
            raise EventError(too_many_rows(int(repeated[-1])))
        found = np.empty(int(repeated[-1]), np.int64)
        spread(lambda span: repeat_bindings(*span, chosen, places, rows, repeated, found), slices(len(chosen), own.threads), own.threads)
        return pa.ListArray.from_arrays(pa.array(repeated.astype(np.int32)), pa.array(found))

    def leaf(self, leaf: Leaf) -> pa.Array:
        """Return, for each match, an aggregate over a situation's events, its start or its end."""
        return self.of_match(leaf.variable, self.names[leaf.variable].leaf(leaf))

    def codes(self, leaf: Leaf, column: int) -> tuple[Array, npt.NDArray[np.bool_]]:
        """Return a text leaf as codes of its column's dictionary, and where it is NULL."""
        codes, nulls = self.names[leaf.variable].codes(leaf, column)
        places = self.places[leaf.variable]
        return codes[places], nulls[places]
