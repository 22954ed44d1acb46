"""Gather on a card what conditions read of some events."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from gpu_cep.engine.input.device.resident import ResidentNumbers
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.lowering.programs import Column, load_bank, make_bank
from gpu_cep.plan.event_plan import BankLayout
from gpu_cep_kernels.device.interface import Array, Device, to_device
from gpu_cep_kernels.rules.tables import ColumnBank


def bank_on_device(columns: EventColumns, layout: BankLayout, rows: Array, device: Device) -> ColumnBank:
    """Return the bank of the columns of `layout` at some rows of the input, on the card.

    Numbers that lie there are gathered there. If there are others, or columns computed of them, all are gathered on the host.
    """
    there = resident_bank(columns, layout, rows, device)
    if there is not None:
        return there
    bank: ColumnBank = to_device(device, load_bank(columns, layout, device.download(rows)))
    return bank


def resident_bank(columns: EventColumns, layout: BankLayout, rows: Array, device: Device) -> ColumnBank | None:
    """Return the bank of the columns of `layout` at some rows, gathered on the card; None if not all are numbers that lie there."""
    ints, floats = ([columns.resident(column) for column in own] for own in (layout.ints, layout.floats))
    if layout.derived or layout.vectors or not all(isinstance(column, ResidentNumbers) for column in (*ints, *floats)):
        return None
    return make_bank(device.xp, _gather(ints, rows, np.int64), _gather(floats, rows, np.float64), int(rows.size))


def _gather(columns: Sequence[object], rows: Array, kind: npt.DTypeLike) -> list[Column]:
    """Return the values of numbers on the card at some rows as `kind`, and where they are NULL."""
    return [
        (column.values.at(rows).astype(kind, copy=False), None if column.present is None else column.present.at(rows) == 0)
        for column in columns
        if isinstance(column, ResidentNumbers)
    ]
