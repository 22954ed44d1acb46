"""Name a match window and its stream in error messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from gpu_cep.engine.accounting.match_budget import WindowError
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.plan.event_plan import Plan


@contextmanager
def name_windows(plan: Plan, columns: EventColumns, row_of: Callable[[int], int]) -> Iterator[None]:
    """Raise a :class:`WindowError` of the block again, as an error that names the window and its stream.

    Parameters
    ----------
    row_of
        Gives the row of the event at a position, in `columns`.

    Raises
    ------
    MatchLimitExceeded
        The run's budget does not suffice.
    EventError
        The events are at fault.
    """
    try:
        yield
    except WindowError as fault:
        raise fault.error(f"{fault.reason}, in {window_name(plan, columns, row_of(fault.start))}") from None


def window_name(plan: Plan, columns: EventColumns, row: int) -> str:
    """Return the name of the window that starts at a row of `columns`, and of its stream."""
    named = [column for column in plan.stream_keys if column != plan.slice_key]
    keys = ", ".join(f"{columns.name(column)}={columns.value(column, row)!r}" for column in named)
    time = columns.value(plan.query.timestamp, row)
    stream = f"stream {keys}" if keys else "the only stream"
    return f"the window that starts at {columns.name(plan.query.timestamp)}={time} (input row {columns.number_of(row)}) of {stream}"
