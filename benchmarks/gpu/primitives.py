"""The array primitives that stand on the device for the CPU's sequential passes: their time against their floors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.gpu.clock import device_seconds
from benchmarks.gpu.findings import Check, Finding, row
from benchmarks.gpu.floors import Timed
from gpu_cep_kernels.device import primitives
from gpu_cep_kernels.device.packing import to_device

VARIABLES = 4
EVENTS_PER_STREAM = 100
SIZE, QUICK_SIZE = 20_000_000, 500
REPEATS = 5

Arrays = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class PrimitiveCase:
    """A primitive: ``inputs(size, random)`` makes its arrays, ``act(xp, *arrays)`` calls it and returns what it wrote."""

    name: str
    inputs: Callable[[int, np.random.Generator], Arrays]
    act: Callable[..., Arrays]


def time_primitive(check: Check, speed: float, case: PrimitiveCase) -> Iterator[Finding]:
    """Yield the time of a case, as a row; `speed` is a copy's."""
    device, size = check.device, QUICK_SIZE if check.quick else SIZE
    inputs = case.inputs(size, np.random.default_rng(size))
    arrays = to_device(device, inputs)
    written = case.act(device.xp, *arrays)
    moved = sum(int(array.nbytes) for array in (*inputs, *written))
    del written
    seconds = device_seconds(device, lambda: case.act(device.xp, *arrays), 1 if check.quick else REPEATS)
    yield row("Primitives against their floors", Timed(case.name, size, moved, seconds, speed, None))


def _labels(size: int, random: np.random.Generator) -> Arrays:
    """Return one word of labels: one event in five has one of the variables' bits."""
    bits = np.array([1 << v for v in range(VARIABLES)], np.uint8)
    return (np.where(random.random(size) < 0.2, random.choice(bits, size), np.uint8(0)).reshape(1, -1),)


def _streams(size: int, random: np.random.Generator) -> Arrays:
    """Return ascending numbers of streams."""
    return (np.sort(random.integers(0, size // EVENTS_PER_STREAM + 1, size, np.int32)),)


def _borders(size: int, random: np.random.Generator) -> Arrays:
    return (np.flatnonzero(np.diff(*_streams(size, random))) + 1,)


def _windows(size: int, random: np.random.Generator) -> Arrays:
    starts = np.flatnonzero(random.random(size) < 0.05)
    return starts, np.minimum(starts + 20, size).astype(np.int32)


def _codes(size: int, random: np.random.Generator) -> Arrays:
    return (random.integers(0, size // EVENTS_PER_STREAM + 1, size, np.int32),)


def _disordered(size: int, random: np.random.Generator) -> Arrays:
    return *_codes(size, random), random.integers(0, size, size)


def _sparse_keys(size: int, random: np.random.Generator) -> Arrays:
    return (random.integers(0, size // EVENTS_PER_STREAM + 1, size) * 1_000_003,)


def _paired_borders(size: int, random: np.random.Generator) -> Arrays:
    """Return borders that open and close names by turns; one event in twenty is one."""
    (streams,) = _codes(size // 20, random)
    opened = random.integers(0, 1 << VARIABLES, len(streams)).astype(np.uint16)
    return streams, opened, ~opened & np.uint16((1 << VARIABLES) - 1)


def _paired(xp: Any, streams: Any, opened: Any, closed: Any) -> Arrays:
    opening, closing, _ = primitives.paired_borders(xp, streams, opened, closed, VARIABLES)
    return opening, closing


PRIMITIVES = (
    PrimitiveCase("prefix_counts", _labels, lambda xp, labels: (primitives.prefix_counts(xp, labels, VARIABLES),)),
    PrimitiveCase("stream_numbers", _borders, lambda xp, borders: (primitives.stream_numbers(xp, borders, int(borders[-1]) + 1),)),
    PrimitiveCase("covered_events", _windows, lambda xp, starts, ends: (primitives.covered_events(xp, starts, ends, int(ends[-1])),)),
    PrimitiveCase("stable_order by stream", _codes, lambda xp, codes: (primitives.stable_order(xp, [codes]),)),
    PrimitiveCase("stable_order by stream and time", _disordered, lambda xp, codes, times: (primitives.stable_order(xp, [codes, times]),)),
    PrimitiveCase("paired_borders", _paired_borders, _paired),
    PrimitiveCase("dense_codes", _sparse_keys, lambda xp, values: (primitives.dense_codes(xp, values)[0],)),
)
