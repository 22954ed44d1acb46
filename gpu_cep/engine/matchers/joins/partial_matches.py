"""Make, select and concatenate the tables of partial matches that joins read and write."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_cep_kernels.device.interface import Array
from gpu_cep_kernels.matches.hashing import PartialMatches

# Arrays are of an array module, `xp`.


def new_table(xp: Any, variables: int, rows: int) -> PartialMatches:
    """Return room for so many rows of so many variables."""
    return PartialMatches(xp.empty((variables, rows), np.int32), xp.empty(rows, np.int32), xp.empty(rows, np.int32))


def table_of_events(events: Array) -> PartialMatches:
    """Return a table of one variable with a row for each of its events."""
    return PartialMatches(events[np.newaxis], events, events)


def take_partial_matches(xp: Any, table: PartialMatches, rows: Array) -> PartialMatches:
    """Return some rows of a table, in the given order."""
    # `column[..., rows]` would lay the arrays out by column, and kernels would be compiled once more
    return PartialMatches(*(xp.take(column, rows, axis=-1) for column in table))


def join_tables(xp: Any, tables: list[PartialMatches]) -> PartialMatches:
    """Return the rows of all tables, one table after the other."""
    return tables[0] if len(tables) == 1 else PartialMatches(*(xp.concatenate(parts, axis=-1) for parts in zip(*tables, strict=True)))
