"""The kept events of a batch, stream after stream, each in stream order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gpu_cep.engine.input.event_columns import Array, EventColumns
from gpu_cep_kernels.rules.tables import ColumnBank

Indices = npt.NDArray[np.int64]


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


def tie_ranks(columns: EventColumns, order_by: tuple[int, ...], rows: Indices) -> Indices:
    """For each of `rows` its place among them by the `order_by` columns, NULLs first, equal rows alike; empty without such columns."""
    ranks = np.empty(0, np.int64)
    for column in order_by:
        rank = columns.dense_rank(column, rows)
        if not ranks.size:
            ranks = rank
            continue
        width = int(rank.max(initial=0)) + 1
        _, dense = np.unique(ranks, return_inverse=True)
        ranks = dense * width + rank
    return ranks
