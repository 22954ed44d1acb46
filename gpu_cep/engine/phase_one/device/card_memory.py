"""Bound the memory that a run takes on a device, and the sizes of the pieces that it works on.

Shares of the memory:

* tables: an eighth;
* while rows are labelled: a half for chunks, the rest for the kept events;
* while the kept events are ordered: three quarters;
* while windows are judged: three quarters for the ordered events and the batch, an eighth for events being
  downloaded;
* while situations are derived: three quarters. The ordered events lie there. A half of the rest is for events
  searched for borders, a half for the borders found;
* while situations are joined: three quarters for the events and the join.

The bytes per event are the peak, including the scratch of CuPy's functions.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpu_cep.engine.events.label_words import words_for
from gpu_cep.engine.lowering.pattern_tables import MatcherTables
from gpu_cep.plan.event_plan import EventPlan, Plan
from gpu_cep_kernels.device.interface import Device

# Share of the free memory that a run takes; the rest is for what allocators lose between arrays.
MEMORY_SHARE = 0.8
# Rows of a chunk. Threads that copy wait for each other where one ends: many chunks take longer than overlapping kernels save.
LARGEST_CHUNK, SMALLEST_CHUNK = 1 << 26, 1 << 8
# Rows of a chunk of events that lie on the card: kernels number them in 32 bits.
_MOST_ROWS = 1 << 30
SMALLEST_BATCH = 1 << 8
# Allocators give out memory in pieces of so many bytes; of arrays that do not grow with the events there are a dozen.
PIECE = 512
_SMALL_ARRAYS = 16 * PIECE
# Of each branch but one: two arrays of tables, and the numbers of held events, whether they are used, and where the last slice stands.
_ARRAYS_OF_BRANCH = 6
# Small arrays travel together, each from a place that so many bytes divide.
_ALIGNED = 8

# Bytes per kept event: time and row, and while it is ordered also streams, a second copy, ranks, and an order sorted in scratch.
_KEPT = 8 + 4
_ORDERING = _KEPT + 2 * 8 + 4 + _KEPT + 7 * 8
# Bytes per ordered event: time, row and the code of its stream.
_PLACED = _KEPT + 4
# The same per key while events are ordered: value and whether it is NULL, twice while chunks are joined.
_ORDERING_KEY = 2 * (8 + 1)
# Bytes per event of a batch: time, stream, its end, what follows, start, kept start, and scratch; and the places of one match of all.
_WINDOWS = 8 + 4 + 4 + 4 + 8 + 8 + 6 * 8 + 2 * 8
# Bytes per event and branch but the last: whether it is held, and its number in the batch.
_HELD_OF_BRANCH = 8 + 1
# Bytes per event and variable: next occurrence, earliest event, that of kept starts, count or slice of it.
_PER_VARIABLE = 4 * 4
# Bytes per event that a match binds, or that comes back: its place twice, or its place, time, row and stream.
_BOUND = 8 + _PLACED
# Bytes per border: its columns.
_COLUMNS = 8 + 3 * 4 + 2 * 2
# Bytes per event among which borders are sought: its time, its stream's beginning, flags; and as a border its place, its stream, with
# scratch, and its columns, twice while the last ones of streams are added.
_SEEKING = 8 + 8 + 2 * 1 + 2 * 8 + 3 * 8 + 2 * _COLUMNS
# Bytes per border, twice while parts are joined; its place by stream, sorted in scratch, and both labels in that order.
_BORDER = 2 * _COLUMNS + 8 + 24 + 2 * 2
# Bytes per run, before and after those that do not last are left out: both borders, twice, times, ends, lengths, and all that comes back.
_RUN = 4 * 8 + 3 * 8 + 4 + 3 * 1 + 8 + 2 * 8 + 4 * 4 + 2 * 8
# Bytes per event and situation that stay while situations are joined: time, row and moment; endpoints and clocks.
_SEQUENCE, _SITUATION = 8 + 4 + 8, 6 * 8
# The same as a row to be joined, and as a candidate of a step, which may become a row of the next: members come on top.
_ROW = 4 + 4 * 8 + 3 * 2 * 8 + 5 * 8
_CANDIDATE = 4 + _ROW
_LARGEST = 1 << 62


class TooLittleMemory(Exception):
    """The device's memory does not hold the smallest pieces; the message says which."""


@dataclass(frozen=True, slots=True)
class Labelling:
    """The memory that labelling takes.

    `row_bytes` are the bytes per row of a chunk. `tables` are the bytes of tables. `arrays` is the
    number of arrays that hold rows, and `rows` the number of all rows. `travels`: whether rows are copied to the device.
    """

    row_bytes: int
    tables: int
    arrays: int
    rows: int
    travels: bool = True


@dataclass(frozen=True, slots=True)
class DeviceMemory:
    """The bytes that a run may take, and how many rows or events it may work on at a time.

    `label` is the bytes of an event's label. `variables`, `keys` and `branches` are the numbers of the
    query's variables, stream keys and branches.
    """

    bytes: int
    label: int = 8
    variables: int = 1
    keys: int = 0
    branches: int = 1

    def chunk_rows(self, labelling: Labelling) -> int:
        """Return the rows of a chunk to be labelled; two chunks, one of them being copied, take a half.

        Raises
        ------
        TooLittleMemory
            It is too little for chunks, tables or batches of the smallest size.
        """
        if not self._suffices(labelling):
            least = bisect_left(range(_LARGEST), True, key=lambda size: replace(self, bytes=size)._suffices(labelling))
            raise TooLittleMemory(f"the query takes {least:,} bytes at least, and {self.bytes:,} may be taken")
        return self._rows(labelling)

    def _rows(self, labelling: Labelling) -> int:
        """Return the rows of a chunk; where none travels, no copy is to overlap with kernels."""
        return min(LARGEST_CHUNK if labelling.travels else _MOST_ROWS, self.bytes // 4 // max(1, labelling.row_bytes))

    def _suffices(self, labelling: Labelling) -> bool:
        """Return whether tables, and chunks and batches of the smallest size, fit."""
        return (
            self._tables(labelling) <= self.bytes // 8
            and self._rows(labelling) >= min(SMALLEST_CHUNK, labelling.rows)
            and self._batch_of(labelling.rows) >= min(SMALLEST_BATCH, labelling.rows)
        )

    def _tables(self, labelling: Labelling) -> int:
        """Return the bytes of the pattern's and labelling's tables, and of the allocator's rounding."""
        return labelling.tables + PIECE * labelling.arrays + _SMALL_ARRAYS + 8 * self.variables * (self.variables + 8)

    @property
    def ranked_values(self) -> int:
        """Return the most distinct values of a key whose ranks fit the share of tables."""
        return self.bytes // 8 // 8

    @property
    def kept_events(self) -> int:
        """Return the most events that can be kept and ordered on the device."""
        return self.bytes * 3 // 4 // (_ORDERING + 2 * self.label + _ORDERING_KEY * self.keys)

    def batch_events(self, resident: int) -> int:
        """Return the most events of a batch, while `resident` ordered events lie on the device.

        The events that only the batch's last windows reach count, too.
        """
        others = self.branches - 1
        of_branches = others * _HELD_OF_BRANCH + (self.label if others else 0)
        event = _WINDOWS + 3 * self.label + _PER_VARIABLE * self.variables + of_branches
        return self._beside(resident * (_PLACED + self.label)) // event

    def _beside(self, held: int) -> int:
        """Return the bytes left for work while `held` bytes are in use."""
        return max(0, self.bytes * 3 // 4 - held)

    def sought_events(self, resident: int) -> int:
        """Return how many events are searched for borders at a time.

        Meanwhile `resident` ordered events lie on the device.
        """
        return max(1, self._beside(resident * (_PLACED + self.label)) // 2 // (_SEEKING + self.label))

    def paired_borders(self, resident: int) -> int:
        """Return the most borders that can be paired to runs, two to each run.

        Meanwhile `resident` ordered events lie on the device.
        """
        runs = -(-self.variables // 2)
        return self._beside(resident * (_PLACED + self.label)) // 2 // (_BORDER + _RUN * runs)

    def joined_candidates(self, resident: int, situations: int) -> int:
        """Return the most candidates of one join call; 0 if events and situations alone do not fit.

        `resident` events and `situations` lie on the device.
        """
        member = 4 * self.variables
        held = resident * _SEQUENCE + situations * (_SITUATION + 16 * self.variables + _ROW + member)
        return self._beside(held) // max(1, self.variables - 1) // (_CANDIDATE + member)

    def _batch_of(self, total: int) -> int:
        """Return the most events of a batch while all `total` events lie on the device.

        If only some of them can be kept there, these count in place of all.
        """
        return self.batch_events(min(self.kept_events, total))

    def for_batch(self, events: int, total: int) -> int:
        """Return the least memory in bytes with which a batch can have `events` of `total` events."""
        return bisect_left(range(_LARGEST), events, key=lambda size: replace(self, bytes=size)._batch_of(total))

    @property
    def bound_events(self) -> int:
        """Return the most events that a slice of matches may bind, or that may be picked at a time.

        It is at least 1.
        """
        return max(1, self.bytes // 8 // (_BOUND + self.label))

    def walked_windows(self, fixed: int, window: int, held: int, batch: int) -> int:
        """Return how many candidate windows are walked at a time; 0 if there is no room for a walk.

        Whatever is walked takes `fixed` bytes, a window `window` bytes, and the events of the candidate
        windows `held` bytes. They lie where the windows of the whole `batch` lay before.
        """
        fits = held <= batch * (_WINDOWS + 3 * self.label + _PER_VARIABLE * self.variables)
        return max(0, (self.bytes // 16 - fixed) // window) if fits else 0

    def lifted_events(self, resident: int, event: int) -> int:
        """Return the most events of a batch whose labels are lifted, which takes `event` bytes each beside its labels.

        Meanwhile `resident` ordered events lie on the device.
        """
        return self._beside(resident * (_PLACED + self.label)) // (event + 3 * self.label)

    def holds(self, taken: int, rows: int) -> bool:
        """Return whether there is room for arrays of `taken` bytes beside the labels of so many rows."""
        return taken + rows * self.label <= self._beside(0)

    def halve(self) -> DeviceMemory:
        """Return the same with half of the bytes, for another attempt."""
        return replace(self, bytes=self.bytes // 2)


def memory_of(device: Device, plan: Plan) -> DeviceMemory:
    """Return the memory that a run of `plan` may take: ``gpu_memory=``, or a share of what is free."""
    free = int(device.free_memory() * MEMORY_SHARE)
    wanted = plan.settings.gpu_memory
    variables = len(plan.query.variables)
    words = words_for(variables)
    label = sum(word.all().nbytes for word in words)
    branches = len(plan.branches) if isinstance(plan, EventPlan) else 1
    return DeviceMemory(free if wanted is None else min(wanted, free), label, variables, len(plan.stream_keys), branches)


def bytes_of_branches(branches: Sequence[MatcherTables]) -> int:
    """Return the bytes of the tables of all branches but the first, and of what a batch finds of them while others are searched.

    The first one's are counted with the pattern's tables, and with its walk.
    """
    read = ((own.pattern, own.conditions, own.aggregates, own.programs, own.walked_chain) for own in branches[1:])
    return sum(_bytes_of_arrays(tables) + _ARRAYS_OF_BRANCH * PIECE for tables in read)


def _bytes_of_arrays(value: Any) -> int:
    """Return the bytes of the arrays in (named) tuples, each up to where the next may begin."""
    if isinstance(value, tuple):
        return sum(map(_bytes_of_arrays, value))
    return -(-value.nbytes // _ALIGNED) * _ALIGNED if isinstance(value, np.ndarray) else 0


def allocated_bytes(*sizes: int) -> int:
    """Return the bytes that an allocator gives out for arrays of these sizes."""
    return sum(-(-size // PIECE) * PIECE for size in sizes)
