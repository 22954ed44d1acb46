"""Robust skip-till-next-match by post-processing: of all matches, those that conform to it.

The set of all matches says which of them conform, without the events (thesis Theorem 6.2).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def conforming(matches: pa.Table) -> pa.Table:
    """Return those of `matches` that conform to robust skip-till-next-match, each to its end (thesis Def. 6.2).

    `matches` are all matches of a pattern without branches, as
    ``output="indices"`` gives them, over events whose rows are in time order.
    """
    if not matches.num_rows:
        return matches
    walks = _walks(matches)
    return matches.take(pa.array(_not_passed_over(walks, matches.num_columns)))


def most_of_one_window(matches: pa.Table) -> int:
    """Return how many matches start at the event at which most do."""
    if not matches.num_rows:
        return 0
    return int(np.bincount(_walks(matches)[:, 0] // matches.num_columns).max())


def _walks(matches: pa.Table) -> np.ndarray:
    """Return for each match (row) its steps in stream order.

    A step is ``event · number of variables + variable``. Behind its last
    step a match has steps to an event that is later than any.
    """
    columns = [_bindings(matches[name]) for name in matches.column_names]
    lengths = np.sum([length for length, _ in columns], axis=0)
    end = 1 + max(int(events.max(initial=0)) for _, events in columns)
    walks = np.full((len(lengths), int(lengths.max())), end * len(columns), dtype=np.int64)
    filled = np.zeros(len(lengths), dtype=np.int64)
    for variable, (length, events) in enumerate(columns):
        steps = np.arange(len(events)) - np.repeat(np.cumsum(length) - length, length)
        rows = np.repeat(np.arange(len(length)), length)
        walks[rows, filled[rows] + steps] = events * len(columns) + variable
        filled += length
    walks.sort(axis=1)
    return walks


def _bindings(column: pa.ChunkedArray) -> tuple[np.ndarray, np.ndarray]:
    """Return how many events each match binds to a variable, and these events of all matches."""
    if not pa.types.is_integer(column.type):
        return pc.list_value_length(column).to_numpy().astype(np.int64), pc.list_flatten(column).to_numpy()
    return np.ones(len(column), dtype=np.int64), column.to_numpy()


def _not_passed_over(walks: np.ndarray, variables: int) -> np.ndarray:
    """Return the rows of the walks that take, at each step, the earliest event that any walk with the same steps before it takes."""
    kept = np.arange(len(walks))
    prefixes = _numbered(walks[:, 0])
    for step in walks.T[1:]:
        events = step[kept] // variables
        earliest = np.full(prefixes.max() + 1, np.iinfo(np.int64).max)
        np.minimum.at(earliest, prefixes, events)
        follows = events == earliest[prefixes]
        kept = kept[follows]
        prefixes = _numbered(prefixes[follows] * (int(walks.max()) + 1) + step[kept])
    return kept


def _numbered(values: np.ndarray) -> np.ndarray:
    """Return the values, numbered from 0 in their order."""
    return np.unique(values, return_inverse=True)[1]
