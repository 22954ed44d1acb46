"""Hold the kept events: stream after stream, each in stream order."""

from __future__ import annotations

from dataclasses import dataclass

from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.input.event_columns import Array
from gpu_cep_kernels.rules.tables import ColumnBank


@dataclass(frozen=True, slots=True)
class OrderedEvents:
    """The kept events, stream after stream, each in stream order.

    ``offsets[s]`` is where stream s begins (one more entry than streams,
    empty streams among them), `times` float64 or uint64 (int64 seen so that
    differences cannot overflow), `rows` the input row numbers, `labels` [word,
    event] with as few bits as hold the variables.
    `keys_ordered`: the streams ascend with their keys.

    Where windows were judged before, only the events of candidate windows are
    here: `starts` are the events that begin one (None: not judged yet), and
    `positions` those that the events had among all (None: their own).
    """

    offsets: Indices
    times: Array
    labels: Array
    rows: Array
    bank: ColumnBank
    keys_ordered: bool
    starts: Indices | None = None
    positions: Array | None = None
