"""Measure the mean share of a batch's events that a window holds."""

from __future__ import annotations

import numpy as np

from gpu_cep.engine.events.batches import Batch
from gpu_cep.engine.events.matches import Indices
from gpu_cep_kernels.phase_one.input_buffers import InputBuffers, Streams
from gpu_cep_kernels.phase_one.rare_events import Nearness, find_spans

# Events whose windows are measured, and events of each variable whose values are compared.
_SAMPLE = 64


def sample_places(size: int) -> Indices:
    """Return at most :data:`_SAMPLE` places among `size`, evenly spread and ascending."""
    return np.unique(np.linspace(0, size - 1, min(size, _SAMPLE)).astype(np.int64))


def measure_window_share(batch: Batch, buffers: InputBuffers, streams: Streams, before: tuple[int, ...]) -> float:
    """Return the mean share of a batch's events in a window to one side of the rarest variable's events.

    Events may be denser on one side of rare events. Only sides on which the pattern has other
    variables are measured. ``before[v]`` is the bit mask of the variables before v.
    """
    size = len(streams.times)
    v = int(np.argmin(np.diff(buffers.first)))
    events = buffers.events[buffers.first[v] : buffers.first[v + 1]].astype(np.int64)
    events = events[sample_places(len(events))]
    stream = np.searchsorted(streams.offsets, batch.low + events, side="right")
    first, last = np.maximum(streams.offsets[stream - 1] - batch.low, 0), np.minimum(streams.offsets[stream] - batch.low, size)
    others = len(before) - 1
    looks_back, looks_on = sum(mask >> v & 1 for mask in before) < others, before[v].bit_count() < others
    nothing, begins, ends = type(streams.length)(0), np.empty_like(first), np.empty_like(last)
    reach = Nearness(streams.clock, streams.length if looks_back else nothing, streams.length if looks_on else nothing)
    find_spans(0, len(events), events, first, last, reach, begins, ends)
    return float((ends - begins).mean()) / size / max(1, looks_back + looks_on)
