"""What a caller says about a query beside its text."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Options:
    """The keywords of `match` that bear on a query's meaning.

    `partition_by` and `strategy` are None where the caller leaves them to the
    text. `time_unit` is the length of one tick of a bare number timestamp.
    """

    timestamp: str = "ts"
    partition_by: tuple[str, ...] | None = None
    order_by: tuple[str, ...] = ()
    type_column: str = "type"
    strategy: str | None = None
    ties: str = "strict"
    time_unit: str | None = None
