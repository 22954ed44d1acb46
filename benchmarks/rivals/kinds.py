"""The kinds of questions that SQL answers without recursion: those of ``benchmarks.kinds``, each in the SQL of ``sql/``.

A match is compared by its first and its last event, and by further events where the SQL has them at hand. An event stands for
itself by its time, or by its row number where two events of a key may have the same time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.kinds.events import integer_keys, make, through_parquet
from benchmarks.kinds.forms import Form
from benchmarks.kinds.questions import KINDS, Kind
from benchmarks.workloads.questions import Workload

TEXTS = Path(__file__).parent / "sql"
IN_SQL = tuple(name for name in KINDS if (TEXTS / f"{name}.sql").exists())
# Further variables that are compared, by kind: the SQL has a column of each one's name.
FURTHER = {"selective_prices": ("t",), "robust": ("b",)}
FIRST, LAST = "first", "last"


@dataclass(frozen=True, slots=True)
class KindInSql:
    """A kind of question over `count` events, on whose number the length of its window depends."""

    kind: Kind
    count: int

    @property
    def name(self) -> str:
        return self.kind.name

    @property
    def workload(self) -> Workload:
        return self.kind.workload

    @property
    def window(self) -> int:
        return self.kind.ticks(self.count)

    @property
    def query(self) -> str:
        return self.kind.text(self.count)

    def hand_written(self, engine: str = "") -> str:
        """Return the SQL with the window filled in: the text for the engine where it has one of its own, else that for all."""
        own = TEXTS / engine / f"{self.name}.sql"
        path = own if own.exists() else TEXTS / f"{self.name}.sql"
        return path.read_text(encoding="utf-8").replace("{window}", str(self.window))

    def events(self, count: int) -> pa.Table:
        """Return the events in the chunks of a Parquet file, keys and types in dictionaries."""
        return through_parquet(make(self.workload, self.kind.shape, count))

    def stored(self, events: pa.Table) -> pa.Table:
        """Return the events with numbers for keys, which a rival groups by at least as fast as by an ENUM."""
        whole = events.unify_dictionaries().combine_chunks()
        return integer_keys(whole) if self.kind.keyed else whole

    def answer(self, events: pa.Table, threads: int) -> pa.Table:
        """Return the library's matches as row numbers, the key in the query's text."""
        return Form("", threads=threads).answer(self.kind, events)

    def comparable(self, events: pa.Table, rows: pa.Table) -> pa.Table:
        """Return the first and the last event of each match, and further ones, in the columns of the SQL's answer."""
        columns = {name: rows[name].combine_chunks() for name in self.kind.variables}
        found = {
            FIRST: reduce(_earlier, (_edge(column, FIRST) for column in columns.values())),
            LAST: reduce(_later, (_edge(column, LAST) for column in columns.values())),
            **{name: columns[name].cast(pa.int64()) for name in FURTHER.get(self.name, ())},
        }
        if self.workload.smallest_gap == 0:
            return pa.table(found)
        times = events["ts"].combine_chunks()
        return pa.table({name: times.take(numbers) for name, numbers in found.items()})


def _edge(rows: pa.Array, edge: str) -> pa.Array:
    """Return the first or the last row of each binding, NULL where the variable is absent."""
    if not (pa.types.is_list(rows.type) or pa.types.is_large_list(rows.type)):
        return rows.cast(pa.int64())
    places = rows.offsets.slice(0, len(rows)) if edge == FIRST else pc.subtract(rows.offsets.slice(1), 1)
    return rows.values.take(places).cast(pa.int64())


def _earlier(one: pa.Array, other: pa.Array) -> pa.Array:
    return pc.min_element_wise(one, other, skip_nulls=True)


def _later(one: pa.Array, other: pa.Array) -> pa.Array:
    return pc.max_element_wise(one, other, skip_nulls=True)
