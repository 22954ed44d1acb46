"""Hold what a caller says about a query beside its text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gpu_cep.analysis.bound_expressions import ScalarFunction
from gpu_cep.analysis.types import DataType

ResultType = Callable[[ScalarFunction, tuple[DataType, ...]], DataType]
RegexpFault = Callable[[str], str | None]


def no_result(function: ScalarFunction, parameters: tuple[DataType, ...]) -> DataType:
    """Raise TypeError: this query brings no functions, so that no compiler could tell a result type."""
    raise TypeError("there is no compiler")


def no_fault(pattern: str) -> str | None:
    """Return None: whether text is a regular expression is not known here."""
    return None


@dataclass(frozen=True, slots=True)
class Options:
    """The keywords of `match` that bear on a query's meaning.

    `partition_by`, `strategy`: None where the caller leaves them to the text.
    `time_unit`: what a length without a unit counts; if timestamps are numbers, the length of one tick.
    `nulls`: what an event without a timestamp is, ``error`` or ``drop``.
    `allen`: how ``finishes`` is read, ``paper`` or ``1983``.
    `detect`: when matches of situations are reported, ``final`` or ``early``.
    `gap`: the longest time without events that ends no situation, as a number or as text.
    `functions`: the functions that the caller brings.
    `result_type`: returns the type of a function's result for arguments of given types.
    It raises TypeError with the reason if the function cannot be compiled for them.
    `regexp_fault`: returns why text is no regular expression, None if it is one.
    """

    timestamp: str = "ts"
    partition_by: tuple[str, ...] | None = None
    order_by: tuple[str, ...] = ()
    type_column: str = "type"
    nulls: str = "error"
    strategy: str | None = None
    ties: str = "strict"
    time_unit: str | None = None
    allen: str = "paper"
    detect: str = "final"
    gap: int | float | str | None = None
    functions: tuple[ScalarFunction, ...] = ()
    result_type: ResultType = no_result
    regexp_fault: RegexpFault = no_fault

    @property
    def may_be_kept(self) -> bool:
        """Return whether what is made with these options may be kept for later calls; not with a gap or functions.

        Equal gaps may differ in type, as 1 and 1.0 do, and what is kept must not keep the caller's functions alive.
        """
        return self.gap is None and not self.functions
