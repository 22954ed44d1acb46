"""Name a match window and its stream in error messages."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from gpu_cep.engine.accounting.match_budget import WindowError
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.plan.event_plan import Plan


def name_windows(plan: Plan, columns: EventColumns, row_of: Callable[[int], int]) -> AbstractContextManager[None]:
    """Return a context that raises a :class:`WindowError` of the block again, as an error that names the window and its stream.

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
    return _NamedWindows(plan, columns, row_of)


class _NamedWindows(AbstractContextManager[None]):
    """The context of :func:`name_windows`; over few events a generator would cost more."""

    __slots__ = ("columns", "plan", "row_of")

    def __init__(self, plan: Plan, columns: EventColumns, row_of: Callable[[int], int]) -> None:
        self.plan, self.columns, self.row_of = plan, columns, row_of

    def __exit__(self, kind: object, fault: BaseException | None, traceback: object) -> None:
        if isinstance(fault, WindowError):
            named = window_name(self.plan, self.columns, self.row_of(fault.start))
            remedy = "" if fault.remedy is None else f"; {fault.remedy}"
            raise fault.error(f"{fault.reason}, in {named}{remedy}") from None


def window_name(plan: Plan, columns: EventColumns, row: int) -> str:
    """Return the name of the window that starts at a row of `columns`, and of its stream."""
    named = [column for column in plan.stream_keys if column != plan.slice_key]
    keys = ", ".join(f"{columns.name(column)}={columns.value(column, row)!r}" for column in named)
    time = columns.value(plan.query.timestamp, row)
    stream = f"stream {keys}" if keys else "the only stream"
    return f"the window that starts at {columns.name(plan.query.timestamp)}={time} (input row {columns.number_of(row)}) of {stream}"
