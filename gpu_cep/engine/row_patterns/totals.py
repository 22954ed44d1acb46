"""Compute the aggregates of measures over the rows of all matches at once."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpu_cep.analysis.bound import Bound, Field
from gpu_cep.analysis.types import DataType, Kind
from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.input.machine_values import Array
from gpu_cep.engine.lowering.programs import Column, assemble, evaluate, failure, make_bank, tabulator
from gpu_cep.engine.output.sorted_values import count_distinct, medians, sort_values
from gpu_cep.engine.row_patterns.columns import classifier_codes
from gpu_cep.engine.row_patterns.ordering import OrderedRows
from gpu_cep.engine.row_patterns.places import MappedRows, PlaceFinder
from gpu_cep.errors import EventError
from gpu_cep.plan.programs import compile_program, leaves
from gpu_cep.plan.properties import place_leaves
from gpu_cep.plan.row_patterns.places import Total
from gpu_cep_kernels.compile.launch import slices, spread
from gpu_cep_kernels.row_patterns.totals import running_medians, total_floats, total_ints
from gpu_cep_kernels.rules.running import AGGREGATIONS, SUM_OVERFLOWED

_NO_NULLS = np.empty(0, np.bool_)


class Totals(NamedTuple):
    """Values of an aggregate, and of how many values each is; SUM_OVERFLOWED if it does not fit."""

    values: Array
    counts: Indices


def total_values(total: Total, finder: PlaceFinder, columns: EventColumns, ordered: OrderedRows) -> tuple[Array, npt.NDArray[np.bool_]]:
    """Return an aggregate at each result row, and where it is NULL; text is the code of the column's dictionary.

    Raises
    ------
    EventError
        An integer overflowed.
    """
    shown = finder.shown
    if total.argument is None:
        return finder.counts(total.members, total.final), np.zeros(len(shown), np.bool_)
    mapped = finder.mapped(total.members)
    values, nulls = _arguments(total.argument, mapped, finder, columns, ordered)
    every = not (shown.last or total.final)
    found = _aggregate(total, values, nulls, mapped.offsets, every, finder.threads)
    if every:
        counts = finder.counts(total.members, final=False)
        places = shown.of_match(mapped.offsets[:-1]) + counts - 1
        none = counts == 0
        found = Totals(_at(found.values, places, none), _at(found.counts, places, none))
    else:
        found = Totals(shown.of_match(found.values), shown.of_match(found.counts))
        none = np.zeros(len(shown), np.bool_)
    if (found.counts == SUM_OVERFLOWED).any():
        raise EventError(f"integer overflow in {total.function}() over the rows of a match")
    if total.function in ("count", "count_distinct"):
        return np.where(none, 0, found.values), np.zeros(len(shown), np.bool_)
    unit = _unit(total.argument.type) if total.function == "median" else 1.0
    return found.values if unit == 1.0 else found.values / unit, none | (found.counts == 0)


def _at(values: Array, places: Indices, none: npt.NDArray[np.bool_]) -> Array:
    """Return the values at places; 0 where there is `none`."""
    found = np.zeros(len(places), values.dtype)
    found[~none] = values[places[~none]]
    return found


def _unit(type: DataType) -> float:
    """Return the machine value of 1."""
    return 10.0**type.scale if type.kind is Kind.DECIMAL else 1.0


def _aggregate(total: Total, values: Array, nulls: npt.NDArray[np.bool_], offsets: Indices, every: bool, threads: int) -> Totals:
    """Return an aggregate of each match, or with `every` up to each of its rows."""
    if total.function == "median":
        return _medians(values.astype(np.float64), nulls, offsets, every, threads)
    if total.function == "count_distinct":
        return _distinct(values, nulls, offsets, every)
    floating = values.dtype.kind == "f"
    function = "sum" if total.function == "count" else total.function
    size = len(values) if every else len(offsets) - 1
    totals, counts = np.empty(size, np.float64 if floating else np.int64), np.empty(size, np.int64)
    if total.function == "count":
        # of what is counted, only whether it is NULL matters
        values, floating = np.zeros(len(values), np.int64), False
        totals = np.empty(size, np.int64)
    step = AGGREGATIONS[f"{function}_{'floats' if floating else 'ints'}"]
    kernel: Any = total_floats if floating else total_ints
    values = values.astype(np.float64 if floating else np.int64, copy=False)

    def work(span: tuple[int, int]) -> None:
        kernel(*span, offsets, values, nulls, step, every, counts, totals)

    spread(work, slices(len(offsets) - 1, threads), threads)
    return Totals(counts if total.function == "count" else totals, counts)


def _medians(values: Array, nulls: npt.NDArray[np.bool_], offsets: Indices, every: bool, threads: int) -> Totals:
    if not every:
        given = sort_values(values, nulls if nulls.size else np.zeros(len(values), np.bool_), offsets)
        return Totals(medians(given), np.diff(given.offsets))
    found, counts, room = np.empty(len(values)), np.empty(len(values), np.int64), np.empty(len(values))

    def work(span: tuple[int, int]) -> None:
        running_medians(*span, offsets, values, nulls, room, counts, found)

    spread(work, slices(len(offsets) - 1, threads), threads)
    return Totals(found, counts)


def _distinct(values: Array, nulls: npt.NDArray[np.bool_], offsets: Indices, every: bool) -> Totals:
    missing = nulls if nulls.size else np.zeros(len(values), np.bool_)
    if not every:
        found = count_distinct(sort_values(values, missing, offsets))
        return Totals(found, found)
    owners = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    order = np.lexsort((values, owners))
    order = order[~missing[order]]
    new = np.ones(len(order), np.int64)
    before, after, own = values[order][:-1], values[order][1:], owners[order]
    same = (after == before) | ((after != after) & (before != before))
    new[1:] = ~(same & (own[1:] == own[:-1]))
    first = np.zeros(len(values) + 1, np.int64)
    first[order + 1] = new
    running = np.cumsum(first)
    found = running[1:] - np.repeat(running[offsets[:-1]], np.diff(offsets))
    return Totals(found, found)


def _arguments(
    argument: Bound, mapped: MappedRows, finder: PlaceFinder, columns: EventColumns, ordered: OrderedRows
) -> tuple[Array, npt.NDArray[np.bool_]]:  # fmt: skip
    """Return an expression over one row at the rows that are mapped, and where it is NULL (empty: nowhere)."""
    numbers = ordered.numbers(finder.shown.matches.rows[mapped.entries])

    def read(column: int) -> Column:
        if column == finder.plan.columns.classifier:
            variables = np.array(finder.plan.automaton.variable, np.int64)[finder.shown.matches.states[mapped.entries]]
            return classifier_codes(finder.plan, columns)[variables], None
        return columns.pick(column, numbers)

    if isinstance(argument, Field):
        values, nulls = read(argument.column)
        return values, _NO_NULLS if nulls is None else nulls
    layout, slots = place_leaves(leaves(argument))
    program = compile_program(argument, slots.__getitem__)
    table, _ = assemble([program], tabulator(columns))
    bank = make_bank(np, list(map(read, layout.ints)), list(map(read, layout.floats)), len(numbers))
    values, nulls, failed = evaluate(program, table, bank)
    if failed >= 0:
        raise EventError(f"{failure(program)} in an aggregate of MEASURES at input row {columns.number_of(int(numbers[failed]))}")
    return values, nulls
