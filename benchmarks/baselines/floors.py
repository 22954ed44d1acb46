"""What no engine on this machine gets below: copying the columns, ordering by a library sort, encoding the text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from benchmarks.record.clocks import least
from benchmarks.workloads.questions import Workload

PATIENCE = 10.0  # seconds
COPY = "copy of the columns"
# All else is told in multiples of it.
COPIES = 15


@dataclass(frozen=True, slots=True)
class Floor:
    """The seconds of one elementary operation on a workload's columns."""

    workload: str
    operation: str
    seconds: float


def best_seconds(action: Callable[[], object], repeats: int) -> float:
    """Return the shortest of `repeats` runs of `action`, or of as many as fit into `PATIENCE`."""
    return least(action, repeats, PATIENCE)[0].clock


def best_in_turn(actions: Sequence[Callable[[], object]], repeats: int) -> list[float]:
    """Return the shortest of `repeats` runs of each action, or of as many rounds as fit into so many times `PATIENCE`.

    They take turns, so that what a machine does meanwhile befalls all of them.
    """
    seconds: list[list[float]] = [[] for _ in actions]
    patience = PATIENCE * len(actions)
    while len(seconds[0]) < repeats and sum(map(sum, seconds)) < patience:
        for own, action in zip(seconds, actions, strict=True):
            own.append(best_seconds(action, 1))
    return [min(own) for own in seconds]


def measure_floors(workload: Workload, events: pa.Table, repeats: int) -> list[Floor]:
    buffers = [np.frombuffer(buffer, dtype=np.uint8) for column in events.columns for buffer in column.chunk(0).buffers() if buffer]
    text = events["type"].cast(pa.string())
    floors = [
        Floor(workload.name, COPY, best_seconds(lambda: [buffer.copy() for buffer in buffers], COPIES)),
        Floor(workload.name, "dictionary_encode of the types as text", best_seconds(text.dictionary_encode, repeats)),
    ]
    if workload.key is not None:
        packed = _packed_keys(events[workload.key], events["ts"])
        floors.append(Floor(workload.name, "argsort of packed (key, ts)", best_seconds(lambda: np.argsort(packed), repeats)))
    return floors


def _packed_keys(key: pa.ChunkedArray, ts: pa.ChunkedArray) -> np.ndarray:
    chunk = key.chunk(0)
    codes = chunk.indices if isinstance(chunk, pa.DictionaryArray) else chunk
    packed: np.ndarray = (codes.to_numpy().astype(np.int64) << 32) | ts.to_numpy()
    return packed
