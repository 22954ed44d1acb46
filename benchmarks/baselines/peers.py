"""The hand-written C++ loops of ``cpp/``, compiled on first use and called on the workload's own Arrow memory."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.baselines.cpp_loops import address, chunk, declare_matches, library_of, vector
from benchmarks.workloads.questions import Workload, window_ticks

SOURCES = Path(__file__).parent / "cpp"

# Workload -> the C++ function that answers it and whether its conditions on pairs are checked.
FUNCTIONS = {
    "medical": ("medical", False),
    "medical_dense": ("medical", False),
    "medical_pair": ("medical", True),
    "stocks": ("stocks", False),
    "selective": ("selective", True),
    "selective_plain": ("selective", True),
}

# C++ function -> event types in the order of its labels 1, 2, …; and the pattern's variables, True if quantified.
LABELS = {"medical": ["C", "P", "D", "B"], "stocks": ["A", "B", "C"], "selective": ["Quote", "Trade", "Halt"]}
VARIABLES = {
    "medical": {"c": False, "p": True, "d": False, "b": False},
    "stocks": {"a": False, "b": True, "c": False},
    "selective": {"q": False, "t": False, "h": False},
}


class _Events(ctypes.Structure):
    _fields_ = (
        ("ts", ctypes.c_void_p),
        ("key", ctypes.c_void_p),
        ("type", ctypes.c_void_p),
        ("value", ctypes.c_void_p),
        ("text_offsets", ctypes.c_void_p),
        ("text", ctypes.c_void_p),
        ("rows", ctypes.c_int64),
        ("streams", ctypes.c_int64),
    )


@dataclass(frozen=True, slots=True)
class PeerMatches:
    """What a C++ loop found: the number of matches, and the row numbers per variable if they were asked for."""

    count: int
    rows: pa.Table | None


def peer_matches(workload: Workload, events: pa.Table, streams: int, *, rows: bool, factor: int = 1) -> PeerMatches:
    """Return the matches of `workload` in `events` as its C++ loop finds them, on one thread."""
    function, pairs = FUNCTIONS[workload.name]
    library = loops()
    codes, arguments = _events(workload, events, streams)
    labels = _label_of_type(function, codes)
    window = ctypes.c_int64(window_ticks(workload, streams, factor))
    found = getattr(library, function)(ctypes.byref(arguments), labels.ctypes.data_as(ctypes.c_void_p), window, rows, pairs)
    if not found:
        raise ValueError("the C++ loops take rows in time order")
    try:
        return PeerMatches(library.matches_count(found), _rows(library, found, function) if rows else None)
    finally:
        library.matches_free(found)


@cache
def loops() -> ctypes.CDLL:
    """Return the compiled loops, with the types of those that a workload names and of what reads their matches."""
    library = library_of("peers", sorted(SOURCES.glob("*.cpp")), sorted(SOURCES.glob("*.hpp")))
    for function in LABELS:
        getattr(library, function).restype = ctypes.c_void_p
        getattr(library, function).argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_bool, ctypes.c_bool)
    declare_matches(library)
    return library


def _events(workload: Workload, events: pa.Table, streams: int) -> tuple[list[str], _Events]:
    """Return the names of the type codes, and the addresses of the columns' buffers."""
    key = chunk(events, workload.key) if workload.key is not None else None
    codes = key.indices if isinstance(key, pa.DictionaryArray) else key
    kind = chunk(events, "type")
    arguments = _Events(
        ts=address(chunk(events, "ts")),
        key=None if codes is None else address(codes),
        value=address(chunk(events, workload.value)),
        rows=events.num_rows,
        streams=streams,
    )
    if isinstance(kind, pa.DictionaryArray):
        arguments.type = address(kind.indices)
        return kind.dictionary.to_pylist(), arguments
    arguments.text_offsets, arguments.text = (buffer.address for buffer in kind.buffers()[1:])
    return [], arguments


def _label_of_type(function: str, codes: list[str]) -> np.ndarray:
    names = LABELS[function]
    return np.array([names.index(code) + 1 if code in names else 0 for code in codes], dtype=np.uint8)


def _rows(library: ctypes.CDLL, found: int, function: str) -> pa.Table:
    vectors = iter([vector(library, found, column) for column in range(library.matches_columns(found))])
    return pa.table(
        {
            name: pa.LargeListArray.from_arrays(next(vectors), next(vectors)) if quantified else next(vectors)
            for name, quantified in VARIABLES[function].items()
        }
    )
