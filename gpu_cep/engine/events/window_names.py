"""How messages name a match window."""

from __future__ import annotations

from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.plan.event_plan import Plan


def window_name(plan: Plan, columns: EventColumns, row: int) -> str:
    """The window that starts at an input row, and its stream."""
    keys = ", ".join(f"{columns.name(column)}={columns.value(column, row)!r}" for column in plan.stream_keys)
    time = columns.value(plan.query.timestamp, row)
    stream = f"stream {keys}" if keys else "the only stream"
    return f"the window that starts at {columns.name(plan.query.timestamp)}={time} (input row {row}) of {stream}"
