"""Refuse files of events without a timestamp, unless the query leaves these out."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from gpu_cep.engine.input.device.resident import AnyColumn, ResidentNumbers, ResidentTable
from gpu_cep.engine.input.grouped_files import GroupedFiles
from gpu_cep.engine.input.times import missing_times
from gpu_cep.plan.event_plan import Plan
from gpu_cep_kernels.device.primitives import any_set


def refuse_known_missing(plan: Plan, files: GroupedFiles) -> None:
    """Raise EventError if footers tell that timestamps are NULL, and the query does not leave such events out."""
    if not plan.query.drops_untimed and (files.all.missing > 0).any():
        refuse_missing(plan, files)


def refuse_missing_of(plan: Plan, files: GroupedFiles, part: pa.Table | ResidentTable) -> None:
    """Raise EventError if timestamps in a part of the files are NULL or NaN, and the query does not leave such events out."""
    if plan.query.drops_untimed:
        return
    times = part.column(part.schema.names.index(plan.query.column_name(plan.query.timestamp)))
    if are_missing(times):
        refuse_missing(plan, files)


def are_missing(times: AnyColumn) -> bool:
    """Return whether some of the times, on the host or on a device, are NULL or NaN."""
    if isinstance(times, ResidentNumbers):
        return _are_missing_there(times)
    assert isinstance(times, pa.ChunkedArray), "times on a card are numbers"
    return bool(times.null_count or (pa.types.is_floating(times.type) and pc.any(pc.is_nan(times)).as_py()))


def _are_missing_there(times: ResidentNumbers) -> bool:
    """Return whether some of the times on a device are NULL or NaN."""
    values, present = times.array.values, times.present
    return any_set(values != values) or (present is not None and any_set(present.load(0, len(times)) == 0))


def refuse_missing(plan: Plan, files: GroupedFiles) -> None:
    """Raise EventError for the timestamps of all files that are NULL, or else NaN."""
    name = plan.query.column_name(plan.query.timestamp)
    nulls, nans, events = files.count_missing(name)
    raise missing_times(name, "NULL" if nulls else "NaN", nulls or nans, events)
