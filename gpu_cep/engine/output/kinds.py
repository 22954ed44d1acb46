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
from gpu_cep.plan.event_plan import EventPlan, Plan

KIND, MISSING = "kind", "missing"
_NAMES = pa.list_(pa.string())


class Beside(NamedTuple):
    """What stands beside the matches of a result that says when they are certain.

    `detected`: when each is certain. `missing`: which variables each one is missing, [match, variable] (None: none).
    """

    detected: Array
    missing: Flags | None = None


def with_kinds(plan: Plan, schema: pa.Schema, fields: list[pa.Field]) -> list[pa.Field]:
    """Return the fields of a result, with those that stand beside matches: `kind` before, and the others behind."""
    if not says_when_certain(plan):
        return fields
    detected = pa.field(DETECTED_AT, schema.field(plan.query.timestamp).type)
    if plan.settings.kind is None:
        return [*fields, detected]
    return [pa.field(KIND, pa.string()), *fields, detected, pa.field(MISSING, _NAMES)]


def says_when_certain(plan: Plan) -> bool:
    """Return whether the matches of an event pattern say when they are certain."""
    return isinstance(plan, EventPlan) and (plan.settings.kind is not None or plan.settings.detected_at)


def with_kind_columns(
    plan: Plan, columns: EventColumns, matches: int, made: list[Callable[[], pa.Array]], beside: Beside
) -> list[Callable[[], pa.Array]]:  # fmt: skip
    """Return functions that make the columns of so many matches, with the columns of :func:`with_kinds`."""
    detected = partial(times_of, columns, beside.detected, None)
    if plan.settings.kind is None:
        return [*made, detected]
    names = [variable.name for variable in plan.query.positives]
    missing = np.zeros((matches, len(names)), np.bool_) if beside.missing is None else beside.missing
    return [partial(pa.repeat, plan.settings.kind, matches), *made, detected, partial(_name_lists, names, missing)]


def _name_lists(names: list[str], chosen: Flags) -> pa.Array:
    """Return a list of the chosen names for each row of flags."""
    offsets = np.concatenate([[0], np.cumsum(chosen.sum(axis=1))]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(names).take(pa.array(np.nonzero(chosen)[1])))
