"""Bring rows that many plans share into the order of their streams, without what conditions read."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gpu_cep.analysis.types import Kind
from gpu_cep.engine.accounting.profile import Profile
from gpu_cep.engine.events.label_words import words_for
from gpu_cep.engine.events.ordered_events import OrderedEvents
from gpu_cep.engine.events.stream_keys import SPARSE, StreamKeys, encode_keys
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.input.machine_values import Array
from gpu_cep.engine.input.picked_rows import PickedRows
from gpu_cep.engine.input.pieces import Pieces
from gpu_cep.engine.phase_one.label_events import LabelledRows
from gpu_cep.engine.phase_one.order_events import order_events
from gpu_cep.engine.rule_sets.row_lists import Rows
from gpu_cep.plan.event_plan import EventPlan
from gpu_cep_kernels.compile.launch import slices

# Keys are encoded for all rows, once, if at least this share of them is ordered.
_SHARE = 64


def times_at(columns: EventColumns, column: int, rows: Rows) -> tuple[Array, npt.NDArray[np.bool_]]:
    """Return the timestamps of some rows, and which of them are missing."""
    times, nulls = columns.pieces(column).at(rows), columns.null_mask(column)
    times = times.astype(np.int64 if times.dtype.kind == "i" else np.float64, copy=False)
    return times, np.isnan(times) if nulls is None else nulls[rows] | np.isnan(times)


def order_chosen_rows(
    planned: EventPlan, whole: EventColumns, rows: Rows, labels: npt.NDArray[np.uint64], times: Array, threads: int, profile: Profile
) -> tuple[EventColumns, OrderedEvents]:  # fmt: skip
    """Return the columns of some rows of `whole`, and these rows as events in the order of their streams.

    `labels` and `times` are those of the ascending `rows`. An event's row is its number among them.
    """
    columns = EventColumns(PickedRows(whole, rows), planned.query, threads=threads)
    with profile.stage("keys"):
        keys = _stream_keys(whole, rows, columns, planned.stream_keys)
    with profile.stage("order"):
        (word,), parts = words_for(len(planned.query.variables)), slices(len(labels), threads) or [(0, 0)]
        numbers, words = np.arange(len(labels), dtype=np.int32), labels.astype(word.kind)[np.newaxis]
        labelled = LabelledRows.of([(numbers[low:high], words[:, low:high]) for low, high in parts])
        ordered = order_events(planned, columns, Pieces.of([times]), labelled, keys, threads)
    profile.add("filtered", len(labels))
    return columns, ordered


def _stream_keys(whole: EventColumns, rows: Rows, columns: EventColumns, keys: tuple[int, ...]) -> StreamKeys:
    """Return the stream of each row of `columns`, which are the given rows; where they are many, the streams of all rows are found once."""
    plain = all(columns.type(key).kind is not Kind.STRING or whole.texts.has_dictionary(key) for key in keys)
    if plain and _SHARE * len(rows) >= len(whole):
        shared = encode_keys(whole, keys)
        if shared.pieces is None:
            return shared
        if shared.count <= SPARSE * len(rows):
            return StreamKeys(Pieces.of([shared.pieces.at(rows)]), shared.count, shared.ranks, shared.ascends)
    return encode_keys(columns, keys)
