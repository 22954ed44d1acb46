"""List the rows of each value of a column, by one counting sort for all values that are asked for.

Values that the same plans ask for are one group: a plan whose values are in one group finds its rows
in one piece.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from gpu_cep.analysis.types import Kind
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.lowering.text_predicates import find_texts
from gpu_cep.engine.phase_one.order_events import sort_by_stream
from gpu_cep.engine.rule_sets.bound_values import Values
from gpu_cep_kernels.compile.launch import slices, spread

Rows = npt.NDArray[np.int32]

# Rows of several groups are marked among all rows, and not sorted, if they are at least this share of them.
_MARKED = 100


@dataclass(frozen=True, slots=True)
class RowLists:
    """The rows of each group of values, ascending, one group behind the other.

    ``rows[offsets[g]:offsets[g + 1]]`` are those of group g. `groups` are the groups of each plan, `of_value` is the
    group of each value. ``places[row]`` is the place of the row's value among these values, or their number or more
    if it is none of them.
    """

    rows: Rows
    offsets: npt.NDArray[np.int64]
    groups: Sequence[tuple[int, ...]]
    of_value: Mapping[int | str, int]
    places: Rows

    def count(self, groups: tuple[int, ...]) -> int:
        """Return the number of rows of some groups."""
        return int(sum(self.offsets[group + 1] - self.offsets[group] for group in groups))

    def of(self, groups: tuple[int, ...]) -> Rows:
        """Return the rows of some groups, ascending."""
        parts = [self.rows[self.offsets[group] : self.offsets[group + 1]] for group in groups]
        if len(parts) == 1:
            return parts[0]
        if _MARKED * self.count(groups) < len(self.places):
            return np.sort(np.concatenate([np.empty(0, np.int32), *parts]))
        marked = np.zeros(len(self.places), np.bool_)
        for rows in parts:
            marked[rows] = True
        return np.flatnonzero(marked).astype(np.int32)

    def found(self) -> set[int | str]:
        """Return the wanted values that at least one row has."""
        counts = np.bincount(self.places, minlength=len(self.of_value))
        return {value for value, count in zip(self.of_value, counts.tolist(), strict=False) if count}

    def keep(self, marks: npt.NDArray[np.bool_]) -> RowLists:
        """Return the lists without the rows that have no mark; ``marks[row]`` is that of a row."""
        kept = np.flatnonzero(marks[self.rows])
        return replace(self, rows=self.rows[kept], offsets=np.searchsorted(kept, self.offsets))


def list_rows(columns: EventColumns, column: int, wanted: Sequence[Values], threads: int) -> RowLists:
    """Return the rows that have one of the values that each plan wants in a column.

    Parameters
    ----------
    columns
        All events.
    column
        A column of text or of integers.
    wanted
        The values of each plan.
    threads
        How many threads to use.
    """
    of_value = _group_values(wanted)
    count = len(set(of_value.values()))
    # two more places, for other values and for NULL
    group_of = np.array([*of_value.values(), count, count], np.int32)
    places_in = _find_places(columns, column, list(of_value))
    places, codes = np.empty(len(columns), np.int32), np.empty(len(columns), np.int32)

    def find(span: tuple[int, int]) -> Rows:
        places[slice(*span)] = places_in(*span)
        codes[slice(*span)] = group_of[places[slice(*span)]]
        rows = np.flatnonzero(codes[slice(*span)] != count).astype(np.int32)
        rows += np.int32(span[0])
        return rows

    parts = spread(find, slices(len(codes), threads), threads)
    offsets, rows = sort_by_stream(parts, codes, count + 1, np.empty(0, np.int64), threads)
    groups = [tuple(sorted({of_value[value] for value in values})) for values in wanted]
    return RowLists(rows, offsets, groups, of_value, places)


def _group_values(wanted: Sequence[Values]) -> dict[int | str, int]:
    """Return a group for each value; values that the same plans want share one."""
    plans: dict[int | str, list[int]] = {}
    for number, values in enumerate(wanted):
        for value in values:
            plans.setdefault(value, []).append(number)
    numbers: dict[tuple[int, ...], int] = {}
    return {value: numbers.setdefault(tuple(own), len(numbers)) for value, own in plans.items()}


def _find_places(columns: EventColumns, column: int, values: Sequence[int | str]) -> Callable[[int, int], Rows]:
    """Return a function that gives, for a range of rows, the place of each row's value among `values`, as :class:`RowLists` has it."""
    array = columns.arrow(column)
    if columns.type(column).kind is not Kind.STRING:
        numbers = pa.array([value for value in values if isinstance(value, int)], pa.int64())
        return lambda low, high: _places_of(array.slice(low, high - low), numbers)
    texts = [value for value in values if isinstance(value, str)]
    if not pa.types.is_dictionary(array.type):
        return find_texts(array, texts)
    codes, dictionary = columns.texts.label_codes(column)
    place_of_code = np.append(_places_of(dictionary, pa.array(texts, pa.large_string())), np.int32(len(texts)))
    return lambda low, high: place_of_code[codes.between(low, high)]


def _places_of(array: pa.Array, values: pa.Array) -> Rows:
    """Return the place of each element among `values`; their number for other elements, and for NULL."""
    found = pc.index_in(array.cast(values.type), values)
    places: Rows = pc.fill_null(found, len(values)).to_numpy(zero_copy_only=False)
    return places
