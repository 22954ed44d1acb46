"""Hold the kept events: stream after stream, each in stream order."""

from __future__ import annotations

from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.input.machine_values import Array
from gpu_cep.records import record
from gpu_cep_kernels.rules.tables import ColumnBank


@record()
class Starts:
    """The events that begin the candidate windows that are still to be searched.

    They ascend, for each branch of a plan. `are_all`: whether all matches begin at them; else a
    device has found those that begin elsewhere, and no other search may count them.
    """

    of_branch: tuple[Indices, ...]
    are_all: bool


@record()
class OrderedEvents:
    """The kept events, stream after stream, each in stream order.

    * ``offsets[s]``: where stream s begins, with one more entry for the end; streams may be empty.
    * `times`: float64, or uint64 (int64 held so that differences cannot overflow).
    * `rows`: the input row numbers. `labels`: [word, event], of the narrowest type that holds the variables.
    * `keys_ordered`: whether the streams ascend with their keys.
    * `rows_ascend`: whether row numbers are known to ascend with time, whatever the streams.

    If windows were judged before, only the events of candidate windows are here.
    `starts` are then the events that begin one (None: not judged yet).
    `positions` are the positions that the events had among all (None: their own).
    """

    offsets: Indices
    times: Array
    labels: Array
    rows: Array
    bank: ColumnBank
    keys_ordered: bool
    starts: Starts | None = None
    positions: Array | None = None
    rows_ascend: bool = False
