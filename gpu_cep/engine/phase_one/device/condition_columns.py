"""Gather on a card what conditions read of some events."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from gpu_cep.engine.input.device.resident import ResidentNumbers
from gpu_cep.engine.input.device.uploads import Input, load
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.lowering.programs import Column, load_bank, make_bank
from gpu_cep.engine.phase_one.device.columns import DeviceColumns
from gpu_cep.plan.event_plan import BankLayout
from gpu_cep_kernels.compile.launch import blocks
from gpu_cep_kernels.device.interface import Array, Device
from gpu_cep_kernels.device.packing import to_device
from gpu_cep_kernels.phase_one.ordering import gather_there
from gpu_cep_kernels.rules.tables import ColumnBank

# Columns travel if one of so many rows is read: threads gather one from anywhere in as long as a card receives several.
_TRAVELS = 4
# Rows that travel together in any case.
_FEW = 1 << 14
_INTS, _FLOATS = np.int64, np.float64


def bank_on_device(columns: EventColumns, layout: BankLayout, rows: Array, device: Device, threads: int = 1) -> ColumnBank:
    """Return the bank of the columns of `layout` at some rows of the input, on the card.

    Numbers that lie there are gathered there. Where many rows are read, all other columns travel whole, and are gathered there,
    too. Else, or if columns are computed of them, `threads` gather on the host.
    """
    there = resident_bank(columns, layout, rows, device)
    if there is not None:
        return there
    if not layout.derived and not layout.vectors and int(rows.size) * _TRAVELS >= len(columns):
        return _travelled_bank(DeviceColumns(columns, device), layout, rows)
    bank: ColumnBank = to_device(device, load_bank(columns, layout, device.download(rows), threads))
    return bank


def _travelled_bank(columns: DeviceColumns, layout: BankLayout, rows: Array) -> ColumnBank:
    """Return the bank of columns of the host, which travel whole."""
    ints = [_travelled(columns, column, rows, _INTS) for column in layout.ints]
    floats = [_travelled(columns, column, rows, _FLOATS) for column in layout.floats]
    return make_bank(columns.device.xp, ints, floats, int(rows.size))


def _travelled(columns: DeviceColumns, column: int, rows: Array, kind: npt.DTypeLike) -> Column:
    """Return a column's values at some rows as `kind`, and where they are NULL."""
    values, present = _gather_loaded(columns, columns.values(column), rows), columns.present(column)
    return values.astype(kind, copy=False), None if present is None else _gather_loaded(columns, present, rows) == 0


def _gather_loaded(columns: DeviceColumns, source: Input, rows: Array) -> Array:
    """Return some rows of an input, of which no more are on the card at a time than are asked for, or few."""
    device, size = columns.device, int(rows.size)
    # a part of no row tells the type
    (picked,) = load(device, [source], 0, 0)
    picked = device.xp.empty(size, picked.dtype)
    for low, high in blocks(0, len(columns.columns), max(size, _FEW)):
        (part,) = load(device, [source], low, high)
        device.launch(gather_there, size, rows, low, part, picked)
    return picked


def resident_bank(columns: EventColumns, layout: BankLayout, rows: Array, device: Device) -> ColumnBank | None:
    """Return the bank of the columns of `layout` at some rows, gathered on the card; None if not all are numbers that lie there."""
    ints, floats = ([columns.resident(column) for column in own] for own in (layout.ints, layout.floats))
    if layout.derived or layout.vectors or not all(isinstance(column, ResidentNumbers) for column in (*ints, *floats)):
        return None
    return make_bank(device.xp, _gather(ints, rows, _INTS), _gather(floats, rows, _FLOATS), int(rows.size))


def _gather(columns: Sequence[object], rows: Array, kind: npt.DTypeLike) -> list[Column]:
    """Return the values of numbers on the card at some rows as `kind`, and where they are NULL."""
    return [
        (column.values.at(rows).astype(kind, copy=False), None if column.present is None else column.present.at(rows) == 0)
        for column in columns
        if isinstance(column, ResidentNumbers)
    ]
