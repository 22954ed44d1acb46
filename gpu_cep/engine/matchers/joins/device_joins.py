"""Take a batch's joins to a device: what it holds of the batch, and how much one call may do there."""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Lock
from typing import TypeVar

import numpy as np

from gpu_cep.analysis.bound import CountWindow
from gpu_cep.engine.accounting.match_budget import Meter
from gpu_cep.engine.events.batches import Batch
from gpu_cep.engine.matchers.joins.workplace import DeviceWorkplace, WorkBounds
from gpu_cep.engine.matchers.search import Search
from gpu_cep.engine.phase_one.device.card_memory import memory_of
from gpu_cep_kernels.device.failures import DeviceLost, told_apart
from gpu_cep_kernels.device.interface import Device
from gpu_cep_kernels.device.packing import to_device
from gpu_cep_kernels.device.selection import give_up_device
from gpu_cep_kernels.phase_one.input_buffers import Streams
from gpu_cep_kernels.rules.tables import ColumnBank, Conditions

Result = TypeVar("Result")

# What one call tests at most: enough to keep a card busy. Fewer than the least are not worth a launch.
_MOST_CANDIDATES, _LEAST_CANDIDATES = 1 << 22, 1 << 10
# Bytes per event: time and clock. Per candidate of each join: itself, its row of the left table with range, places and numbers, and the
# sort of its table.
_EVENT = 2 * 8
_CANDIDATE = 4 + 7 * 8 + 4 * 8
# A batch is joined at a time.
_joining = Lock()
_log = logging.getLogger("gpu_cep")


def joined_on_device(search: Search, batch: Batch, join: Callable[[Search], Result]) -> Result | None:
    """Return what `join` gives with the search's device current; None if the joins are left to the CPU.

    The CPU judges negations, and conditions that call functions. It also joins if the device has too little memory, or is lost. What was
    accounted for is then taken back.
    """
    device, branch = search.device, search.tables.branch
    calls = any(condition.program.calls for condition in branch.conditions)
    if device is None or branch.negations or calls or _candidates(search, device, batch) < _LEAST_CANDIDATES:
        return None
    meter = Meter(search.budget)
    try:
        with _joining, told_apart():
            device.use()
            with device.lane(None):
                return join(search._replace(budget=meter))
    except (MemoryError, DeviceLost) as fault:
        if isinstance(fault, DeviceLost):
            give_up_device(str(fault))
        _log.warning("joins run on the CPU: %s", fault or "the device's memory does not suffice")
        meter.take_back()
        search.profile.add("pairs", -meter.steps)
        return None


def device_workplace(search: Search, batch: Batch, device: Device) -> DeviceWorkplace:
    """Return the device as the workplace of a batch's joins."""
    candidates = _candidates(search, device, batch)
    return DeviceWorkplace(device, WorkBounds(candidates, candidates, candidates // 4, candidates))


def _candidates(search: Search, device: Device, batch: Batch) -> int:
    """Return the most candidates of a call, of each of the joins, beside what the device holds of the batch."""
    variables, inputs, events = search.variable_count, search.inputs, batch.high - batch.low
    beside = 0 if inputs is None else int(inputs.times.nbytes)
    if inputs is not None and inputs.bank is not None:
        beside += _nbytes(inputs.bank)
    else:
        beside += events * _nbytes(search.ordered.bank) // max(1, len(search.ordered.rows))
    held = beside + events * (_EVENT + 4 * variables)
    row = _CANDIDATE + 4 * (variables + 2)
    return max(0, min(_MOST_CANDIDATES, (memory_of(device, search.plan).bytes - held) // 2 // (variables * row)))


def _nbytes(bank: ColumnBank) -> int:
    """Return the bytes of all columns."""
    return sum(int(column.nbytes) for column in bank)


def inputs_on_device(search: Search, device: Device, batch: Batch, streams: Streams) -> tuple[Conditions, Streams]:
    """Return on the device a batch's conditions, with the values of its events alone, and its streams.

    Times and values that are there already are not copied. The clock is the times, unless windows are of a number of events.
    """
    events, conditions, inputs = slice(batch.low, batch.high), search.conditions(batch), search.inputs
    bank, xp = (conditions.bank, np) if inputs is None or inputs.bank is None else (inputs.bank, device.xp)
    bank = ColumnBank(
        ints=xp.ascontiguousarray(bank.ints[:, events]),
        floats=xp.ascontiguousarray(bank.floats[:, events]),
        int_nulls=bank.int_nulls[events],
        float_nulls=bank.float_nulls[events],
        vectors=xp.ascontiguousarray(bank.vectors[:, events]),
    )
    first, last = np.searchsorted(streams.offsets, [batch.low, batch.high - 1], side="right")
    times = device.upload(streams.times) if inputs is None else inputs.times[events]
    clock = device.upload(streams.clock) if isinstance(search.plan.query.window, CountWindow) else times
    offsets = device.upload(streams.offsets[first - 1 : last + 1] - batch.low)
    placed = to_device(device, conditions._replace(bank=bank, base=0))
    return placed, streams._replace(offsets=offsets, times=times, clock=clock)
