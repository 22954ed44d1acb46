"""Make, select and concatenate the tables of partial matches that joins read and write."""

from __future__ import annotations

import numpy as np

from gpu_cep.engine.events.matches import Indices
from gpu_cep_kernels.matches.hashing import PartialMatches
from gpu_cep_kernels.rules.tables import Places


def new_table(variables: int, rows: int) -> PartialMatches:
    """Return room for so many rows of so many variables."""
    return PartialMatches(np.empty((variables, rows), np.int32), np.empty(rows, np.int32), np.empty(rows, np.int32))


def table_of_events(events: Places) -> PartialMatches:
    """Return a table of one variable with a row for each of its events."""
    return PartialMatches(events[np.newaxis], events, events)


def take_rows(table: PartialMatches, rows: Indices) -> PartialMatches:
    """Return some rows of a table, in the given order."""
    # `column[..., rows]` would lay the arrays out by column, and kernels would be compiled once more
    return PartialMatches(*(np.take(column, rows, axis=-1) for column in table))


def concatenate(tables: list[PartialMatches]) -> PartialMatches:
    """Return the rows of all tables, one table after the other."""
    return tables[0] if len(tables) == 1 else PartialMatches(*(np.concatenate(parts, axis=-1) for parts in zip(*tables, strict=True)))
