"""Hold the matches that decide which later ones ``skip_past_last`` keeps, and tell which of them a run has to look at."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gpu_cep.engine.events.key_hashes import KeyBits
from gpu_cep.engine.events.matches import Flags, Indices
from gpu_cep.engine.input.chunk_dictionaries import take_events

# Of fewer matches, to look for those of some streams costs more than to rank the streams of all.
FEWEST = 1 << 12
# Nor where new matches are many beside those held: then most streams change.
PER_NEW = 8
# Chunks that the table of held matches may have before they are joined.
_MOST_CHUNKS = 32


class HeldMarks(NamedTuple):
    """What stands beside held matches.

    `keys`: the highest bits of the hash of each one's keys.
    `due`: the time of its last event. Once no later match can begin at that time or before, it is decided or given up.
    """

    keys: KeyBits
    due: npt.NDArray[Any]

    def at(self, chosen: Flags | Indices) -> HeldMarks:
        """Return those of some matches."""
        return HeldMarks(self.keys[chosen], self.due[chosen])


@dataclass(frozen=True, slots=True, eq=False)
class HeldRows:
    """Matches that decide which later ones are kept, as rows; those in `given` have been reported."""

    rows: pa.Table
    given: Flags

    def __len__(self) -> int:
        """Return the number of held rows."""
        return int(self.rows.num_rows)

    def marked(self, marks: HeldMarks) -> MarkedRows:
        """Return the same matches with marks beside them."""
        return MarkedRows(self.rows, np.arange(len(self)), self.given, marks)


@dataclass(frozen=True, slots=True, eq=False)
class MarkedRows:
    """Held matches with marks: the rows of a `table` at ascending `places`; its other rows are not held any more."""

    table: pa.Table
    places: Indices
    given: Flags
    marks: HeldMarks

    def __len__(self) -> int:
        """Return the number of held rows."""
        return len(self.places)

    @property
    def rows(self) -> pa.Table:
        """Return the held rows alone."""
        return self.table if len(self.places) == self.table.num_rows else take_events(self.table, self.places)

    def at(self, chosen: Indices) -> MarkedRows:
        """Return some of the held matches; the table stays as it is."""
        return MarkedRows(self.table, self.places[chosen], self.given[chosen], self.marks.at(chosen))

    def with_more(self, others: MarkedRows) -> MarkedRows:
        """Return these matches and others; rows of the tables that are not held are given up if they are many."""
        marks = HeldMarks(*(np.concatenate(pair) for pair in zip(self.marks, others.marks, strict=True)))
        places = np.concatenate([self.places, others.places + self.table.num_rows])
        whole = pa.concat_tables([self.table, others.table])
        both = MarkedRows(whole, places, np.concatenate([self.given, others.given]), marks)
        is_wide = whole.num_columns > 0 and whole.column(0).num_chunks > _MOST_CHUNKS
        if not is_wide and whole.num_rows <= 2 * len(places):
            return both
        return replace(both, table=both.rows.combine_chunks(), places=np.arange(len(places)))


# What is held has marks once a run has looked for them.
Held = HeldRows | MarkedRows
