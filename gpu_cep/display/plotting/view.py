"""Select the events of a match's stream around the match, and the columns to draw of them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gpu_cep.analysis.types import Kind
from gpu_cep.display.plotting.found import Rows
from gpu_cep.display.plotting.scene import Series
from gpu_cep.display.plotting.time_axis import Tick, Ticks
from gpu_cep.engine.events.stream_keys import encode_keys
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.input.readable import readable_texts
from gpu_cep.errors import UnsupportedError
from gpu_cep.plan.columns_read import condition_readers
from gpu_cep.plan.event_plan import Plan

# A text column with more different values is not drawn.
MOST_LABELS = 12

_NUMBERS = (Kind.INTEGER, Kind.FLOAT, Kind.DECIMAL)


@dataclass(frozen=True, slots=True)
class View:
    """The stream's events from time `low` to `high`: their input rows, in stream order, and their times."""

    low: Tick
    high: Tick
    rows: Rows
    ticks: Ticks


def view_around(plan: Plan, columns: EventColumns, times: Ticks, row: int, ends: tuple[Tick, Tick], margin: float) -> View:
    """Return the view around a match from ``ends[0]`` to ``ends[1]`` of the stream of input row `row`.

    It extends before and behind the match by `margin`, a share of the match's length.

    Raises
    ------
    UnsupportedError
        The match begins or ends at infinity.
    """
    first, last = ends
    if not np.isfinite(first) or not np.isfinite(last):
        raise UnsupportedError("a match that begins or ends at infinity cannot be drawn; supported: finite times")
    stream = _stream(plan, columns, row)
    ticks = times[stream]
    low, high = _stretch(first, last, margin * (last - first) if last > first else _nearest(ticks, first))
    seen = np.flatnonzero((ticks >= low) & (ticks <= high))
    order = np.lexsort([*(columns.dense_rank(column, stream[seen]) for column in plan.query.order_by[::-1]), ticks[seen]])
    return View(low, high, stream[seen[order]], ticks[seen[order]])


def _stream(plan: Plan, columns: EventColumns, row: int) -> Rows:
    codes = encode_keys(columns, plan.stream_keys).codes
    return np.arange(len(columns)) if codes is None else np.flatnonzero(codes == codes[row])


def _nearest(ticks: Ticks, tick: Tick) -> Tick:
    """Return the distance to the nearest different time, 1 if there is none."""
    distances = np.abs(ticks - ticks.dtype.type(tick))
    others = distances[(distances > 0) & np.isfinite(distances)]
    return others.min().item() if len(others) else 1


def _stretch(first: Tick, last: Tick, margin: Tick) -> tuple[Tick, Tick]:
    """Return the times `margin` before `first` and behind `last`, integers if these are."""
    if isinstance(first, float):
        return first - margin, last + margin
    limits = np.iinfo(np.int64)
    return max(first - math.ceil(margin), limits.min), min(last + math.ceil(margin), limits.max)


def series_in_view(plan: Plan, columns: EventColumns, view: View, tracks: int, hidden: str | None) -> Iterator[Series]:
    """Yield the columns that the conditions of the first `tracks` variables read and that can be drawn.

    These hold numbers, truth values or text of few different values. The
    streams' keys, the timestamp and the column called `hidden` are left out.
    """
    for column, variables in condition_readers(plan.query).items():
        readers = tuple(variable for variable in variables if variable < tracks)
        if not readers or column in (*plan.stream_keys, plan.query.timestamp) or columns.name(column) == hidden:
            continue
        drawn = _values(columns.type(column).kind, columns.take(column, pa.array(view.rows)))
        if drawn is not None:
            yield Series(columns.name(column), *drawn, readers)


def _values(kind: Kind, values: pa.Array) -> tuple[npt.NDArray[np.float64], tuple[str, ...]] | None:
    """Return the values as floats and the labels that these stand for, None if they cannot be drawn."""
    if kind is Kind.BOOLEAN:
        return _floats(values.cast(pa.int8())), ("false", "true")
    if kind is Kind.STRING:
        # encoded anew: the dictionary may hold values that are not in view
        encoded = (values.dictionary_decode() if pa.types.is_dictionary(values.type) else values).dictionary_encode()
        labels = readable_texts(encoded.dictionary).to_pylist()
        return (_floats(encoded.indices), tuple(labels)) if len(labels) <= MOST_LABELS else None
    return (_floats(values), ()) if kind in _NUMBERS else None


def _floats(values: pa.Array) -> npt.NDArray[np.float64]:
    floats = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return np.where(np.isfinite(floats), floats, np.nan)
