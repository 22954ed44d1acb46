"""Say of what kind the rows of a result are, when they are certain, and which variables a timeout is missing."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from gpu_cep.analysis.bind_intervals import DETECTED_AT
from gpu_cep.engine.events.matches import Flags
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.input.machine_values import Array
from gpu_cep.engine.output.moments import times_of
from gpu_cep.plan.event_plan import Plan

KIND, MISSING = "kind", "missing"
_NAMES = pa.list_(pa.string())


class Beside(NamedTuple):
    """What stands beside the matches of a result with kinds.

    `detected`: when each is certain. `missing`: which variables each one is missing, [match, variable] (None: none).
    """

    detected: Array
    missing: Flags | None = None


def with_kinds(plan: Plan, schema: pa.Schema, fields: list[pa.Field]) -> list[pa.Field]:
    """Return the fields of a result, with those of its kinds if it has any: `kind` before, and the others behind."""
    if plan.settings.kind is None:
        return fields
    time = schema.field(plan.query.timestamp).type
    return [pa.field(KIND, pa.string()), *fields, pa.field(DETECTED_AT, time), pa.field(MISSING, _NAMES)]


def kind_columns(plan: Plan, columns: EventColumns, matches: int, beside: Beside) -> tuple[Callable[[], pa.Array], ...]:
    """Return functions that make the columns `kind`, `detected_at` and `missing` of so many matches."""
    names = [variable.name for variable in plan.query.positives]
    return (
        partial(pa.repeat, plan.settings.kind, matches),
        partial(times_of, columns, beside.detected, None),
        partial(_name_lists, names, np.zeros((matches, len(names)), np.bool_) if beside.missing is None else beside.missing),
    )


def _name_lists(names: list[str], chosen: Flags) -> pa.Array:
    """Return a list of the chosen names for each row of flags."""
    offsets = np.concatenate([[0], np.cumsum(chosen.sum(axis=1))]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(names).take(pa.array(np.nonzero(chosen)[1])))
