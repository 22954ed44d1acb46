"""The C++ loops of ``cpp/``, one for each kind of question, compiled on first use and called on the events' own Arrow memory."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.baselines import peers
from benchmarks.baselines.cpp_loops import address, chunk, declare_matches, library_of, vector
from benchmarks.kinds.events import KEY, SECOND, TYPE, VALUE, streams_of
from benchmarks.kinds.questions import KINDS, Kind

SOURCES = Path(__file__).parent / "cpp"
# Loops of the suite that answer some kinds as they are, and what gives their matches out.
SHARED = [peers.SOURCES / f"{name}.cpp" for name in ("matches", "medical", "selective", "stocks")]
HEADERS = [SOURCES / "kinds.hpp", peers.SOURCES / "stream.hpp"]


class _Asked(ctypes.Structure):
    """What a loop is given: ``Asked`` of ``kinds.hpp``."""

    _fields_ = (
        ("ts", ctypes.c_void_p),
        ("key", ctypes.c_void_p),
        ("type", ctypes.c_void_p),
        ("value", ctypes.c_void_p),
        ("second", ctypes.c_void_p),
        ("text_offsets", ctypes.c_void_p),
        ("text", ctypes.c_void_p),
        ("label_of_type", ctypes.c_void_p),
        ("names", ctypes.c_void_p),
        ("types", ctypes.c_int64),
        ("rows", ctypes.c_int64),
        ("streams", ctypes.c_int64),
        ("window", ctypes.c_int64),
    )


@dataclass(frozen=True, slots=True)
class Loop:
    """The loop of one kind over the whole chunks of one table; `kept` is what `asked` points at."""

    kind: Kind
    asked: _Asked
    kept: tuple[object, ...]

    def run(self) -> int:
        """Find all matches and return their address, which :meth:`free` takes."""
        found: int | None = getattr(loops(), self.kind.name)(ctypes.byref(self.asked))
        if found is None:
            raise ValueError("the C++ loops take rows in time order")
        return found

    def free(self, found: int) -> None:
        loops().matches_free(found)

    @contextmanager
    def found(self) -> Iterator[int]:
        """Give the address of all matches inside the block."""
        found = self.run()
        try:
            yield found
        finally:
            self.free(found)

    def count(self) -> int:
        with self.found() as found:
            return int(loops().matches_count(found))

    def rows(self) -> pa.Table:
        """Return the row numbers of all matches, as the library gives them but for their order."""
        with self.found() as found:
            vectors = iter([vector(loops(), found, column) for column in range(loops().matches_columns(found))])
        return pa.table({name: _column(vectors, quantified) for name, quantified in self.kind.variables.items()})


def loop_of(kind: Kind, events: pa.Table) -> Loop:
    """Return the loop of `kind`, ready to run over `events`, whose types may be a dictionary or plain text."""
    asked = _Asked(rows=len(events), streams=streams_of(kind.workload, len(events)), window=kind.ticks(len(events)))
    asked.ts, asked.value = (address(chunk(events, name)) for name in ("ts", VALUE))
    if kind.keyed:
        asked.key = address(chunk(events, KEY).indices)
    if SECOND in events.column_names:
        asked.second = address(chunk(events, SECOND))
    kept = _types(kind, events, asked) if kind.labels else ()
    return Loop(kind, asked, (events, *kept))


def _types(kind: Kind, events: pa.Table, asked: _Asked) -> tuple[object, ...]:
    """Point `asked` at the types and at what they are called; return what must not go away."""
    names = (ctypes.c_char_p * len(kind.labels))(*(name.encode() for name in kind.labels))
    asked.names, asked.types = ctypes.addressof(names), len(kind.labels)
    types = chunk(events, TYPE)
    if not isinstance(types, pa.DictionaryArray):
        asked.text_offsets, asked.text = (buffer.address for buffer in types.buffers()[1:])
        return (names,)
    asked.type = address(types.indices)
    known = {name: label for label, name in enumerate(kind.labels, 1)}
    labels = np.array([known.get(name, 0) for name in types.dictionary.to_pylist()], np.uint8)
    asked.label_of_type = labels.ctypes.data
    return names, labels


def _column(vectors: Iterator[pa.Array], quantified: bool) -> pa.Array:
    if quantified:
        return pa.LargeListArray.from_arrays(next(vectors), next(vectors))
    rows = next(vectors).to_numpy()
    return pa.array(rows, mask=rows < 0)


@cache
def loops() -> ctypes.CDLL:
    """Return the compiled loops, with the types of all that is called."""
    library = library_of("kinds", [*sorted(SOURCES.glob("*.cpp")), *SHARED], HEADERS)
    for name in KINDS:
        getattr(library, name).restype = ctypes.c_void_p
        getattr(library, name).argtypes = (ctypes.c_void_p,)
    declare_matches(library)
    return library
