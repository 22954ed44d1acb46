"""Compute the aggregates of measures over the rows of all matches at once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpu_cep.analysis.bound_expressions import Bound, Field
from gpu_cep.analysis.types import DataType, Kind
from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.input.machine_values import Array
from gpu_cep.engine.lowering.programs import WIDER_IN_ROWS, Column, assemble, evaluate, failure, make_bank, tabulator
from gpu_cep.engine.output.sorted_values import count_distinct, medians, sort_values
from gpu_cep.engine.row_patterns.columns import classifier_codes
from gpu_cep.engine.row_patterns.ordering import OrderedRows
from gpu_cep.engine.row_patterns.places import PlaceFinder, is_sorted, reads_listed_rows
from gpu_cep.errors import EventError
from gpu_cep.plan.properties import compile_over_event
from gpu_cep.plan.row_patterns.borders import rows_of_others
from gpu_cep.plan.row_patterns.places import Total
from gpu_cep.plan.row_patterns.row_plan import RowPlan
from gpu_cep_kernels.compile.launch import slices, spread
from gpu_cep_kernels.row_patterns.totals import MatchEntries, running_medians, total_floats, total_ints
from gpu_cep_kernels.rules.running import AGGREGATIONS, SUM_OVERFLOWED

_NO_NULLS = np.empty(0, np.bool_)
_NO_ROWS = np.empty(0, np.int64)
_NO_STATES = np.empty(0, np.int32)


class Totals(NamedTuple):
    """Values of an aggregate, and of how many values each is; SUM_OVERFLOWED if it does not fit."""

    values: Array
    counts: Indices


def find_totals(total: Total, finder: PlaceFinder, columns: EventColumns, ordered: OrderedRows) -> Totals:
    """Return an aggregate at each result row; text is the code of the column's dictionary.

    Raises
    ------
    EventError
        An integer overflowed.
    """
    if total.argument is None and total.members is None:
        rows = finder.counts(None, total.final) - total.less
        return Totals(rows, rows)
    compute = _of_sorted if is_sorted(total) else _of_entries
    found = compute(total, finder, columns, ordered)
    if (found.counts == SUM_OVERFLOWED).any():
        raise EventError(f"integer overflow in {total.function}() over the rows of a match; {WIDER_IN_ROWS}")
    return found


def with_fixed_counts(plan: RowPlan, columns: EventColumns) -> RowPlan:
    """Return the plan with counts read off the lengths of matches, where they are that less a number which PATTERN fixes."""
    if plan.bound.query.rows != "one":
        return plan
    return replace(plan, totals=tuple(_fixed_count(total, plan, columns) for total in plan.totals))


def _fixed_count(total: Total, plan: RowPlan, columns: EventColumns) -> Total:
    """Return a count of rows, or of the values of a column without NULL, as one of all rows of the match; or else the total."""
    if total.function != "count" or total.members is None or not _counts_rows(total.argument, plan, columns):
        return total
    less = rows_of_others(plan.automaton, total.members)
    return total if less is None else Total("count", None, None, total.final, less)


def _counts_rows(argument: Bound | None, plan: RowPlan, columns: EventColumns) -> bool:
    """Return whether each row has what is counted."""
    if isinstance(argument, Field) and argument.column < plan.columns.classifier:
        return columns.null_mask(argument.column) is None
    return argument is None


def total_values(total: Total, found: Totals) -> tuple[Array, npt.NDArray[np.bool_]]:
    """Return an aggregate at each result row, and where it is NULL; `found` is of the aggregate or of its :func:`kept_total`."""
    if total.function in ("count", "count_distinct"):
        return found.counts, np.zeros(len(found.counts), np.bool_)
    assert total.argument is not None, "only rows are counted without a value"
    unit = _unit(total.argument.type) if total.function == "median" else 1.0
    return found.values if unit == 1.0 else found.values / unit, found.counts == 0


def _of_sorted(total: Total, finder: PlaceFinder, columns: EventColumns, ordered: OrderedRows) -> Totals:
    """Return an aggregate that is read off the values in order, at each result row."""
    assert total.argument is not None, "only rows are counted without a value"
    shown, mapped = finder.shown, finder.mapped(total.members)
    values, nulls = _argument_at(total.argument, mapped.entries, finder, columns, ordered)
    every = not (shown.last or total.final)
    if total.function == "median":
        found = _medians(values.astype(np.float64), nulls, mapped.offsets, every, finder.threads)
    else:
        found = _distinct(values, nulls, mapped.offsets, every)
    if not every:
        return Totals(shown.of_match(found.values), shown.of_match(found.counts))
    counts = finder.counts(total.members, final=False)
    places = shown.of_match(mapped.offsets[:-1]) + counts - 1
    return Totals(_at(found.values, places, counts == 0), _at(found.counts, places, counts == 0))


def _of_entries(total: Total, finder: PlaceFinder, columns: EventColumns, ordered: OrderedRows) -> Totals:
    """Return an aggregate that takes one value after the other, at each result row."""
    shown, matches = finder.shown, finder.shown.matches
    every = not (shown.last or total.final)
    found = _aggregate(total, _given(total, finder, columns, ordered), every, matches.places, finder.threads)
    if not every:
        return Totals(shown.of_match(found.values), shown.of_match(found.counts))
    before = shown.of_match(matches.firsts)
    none = (shown.owners < 0) | (shown.current < before)
    places = shown.of_match(matches.places[:-1]) + shown.current - before
    return Totals(_at(found.values, places, none), _at(found.counts, places, none))


def _at(values: Array, places: Indices, none: npt.NDArray[np.bool_]) -> Array:
    """Return the values at places; 0 where there is `none`."""
    found = np.zeros(len(places), values.dtype)
    found[~none] = values[places[~none]]
    return found


class _Given(NamedTuple):
    """The input of an aggregate: the rows of matches, the values, and which are NULL (empty: none)."""

    entries: MatchEntries
    values: Array
    nulls: npt.NDArray[np.bool_]


def _given(total: Total, finder: PlaceFinder, columns: EventColumns, ordered: OrderedRows) -> _Given:
    """Return the input of an aggregate: a column, or an expression computed at the rows it covers."""
    matches, argument = finder.shown.matches, total.argument
    states, members = _NO_STATES, _NO_NULLS
    if total.members is not None:
        states, members = matches.states, finder.members(total.members)
    rows = _NO_ROWS if ordered.rows is None else ordered.rows
    entries = MatchEntries(matches.places, matches.firsts, rows, states, members)
    if argument is None:
        return _Given(entries, _NO_ROWS, _NO_NULLS)
    if isinstance(argument, Field) and not reads_listed_rows(total, finder.plan.columns):
        nulls = columns.null_mask(argument.column)
        # of what is counted, only whether it is NULL matters
        values = _NO_ROWS if total.function == "count" else columns.values(argument.column)
        return _Given(entries, values, _NO_NULLS if nulls is None else nulls)
    covered = np.arange(matches.places[-1]) if total.members is None else finder.mapped(total.members).entries
    values, nulls = _argument_at(argument, covered, finder, columns, ordered)
    if total.members is not None:
        values, nulls = (_spread(each, covered, int(matches.places[-1])) for each in (values, nulls))
    values = _NO_ROWS if total.function == "count" else values
    return _Given(entries._replace(firsts=matches.places[:-1], rows=_NO_ROWS), values, nulls)


def _spread(values: Array, places: Indices, length: int) -> Array:
    """Return an array of `length` with `values` at `places`, else 0.

    It is empty if there are no values.
    """
    if not values.size:
        return values
    found = np.zeros(length, values.dtype)
    found[places] = values
    return found


def _aggregate(total: Total, given: _Given, every: bool, places: Indices, threads: int) -> Totals:
    """Return an aggregate of each match, or with `every` up to each of its rows."""
    floating = given.values.dtype.kind == "f"
    kernel: Any = total_floats if floating else total_ints
    size = int(places[-1]) if every else len(places) - 1
    totals, counts = np.empty(size, np.float64 if floating else np.int64), np.empty(size, np.int64)
    step = AGGREGATIONS["count_events" if total.function == "count" else f"{total.function}_{'floats' if floating else 'ints'}"]
    values = given.values.astype(totals.dtype, copy=False)

    def work(span: tuple[int, int]) -> None:
        kernel(*span, given.entries, values, given.nulls, step, every, counts, totals)

    spread(work, slices(len(places) - 1, threads), threads)
    return Totals(counts if total.function == "count" else totals, counts)


def _unit(type: DataType) -> float:
    """Return the machine value of 1."""
    return 10.0**type.scale if type.kind is Kind.DECIMAL else 1.0


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


def _argument_at(
    argument: Bound, entries: Indices, finder: PlaceFinder, columns: EventColumns, ordered: OrderedRows
) -> tuple[Array, npt.NDArray[np.bool_]]:  # fmt: skip
    """Return an expression over one row at some rows of matches, and where it is NULL (empty: nowhere)."""
    numbers = ordered.numbers(finder.shown.matches.rows[entries])

    def read(column: int) -> Column:
        if column == finder.plan.columns.classifier:
            variables = np.array(finder.plan.automaton.variable, np.int64)[finder.shown.matches.states[entries]]
            return classifier_codes(finder.plan, columns)[variables], None
        return columns.pick(column, numbers)

    if isinstance(argument, Field):
        values, nulls = read(argument.column)
        return values, _NO_NULLS if nulls is None else nulls
    program, layout = compile_over_event(argument)
    table, _ = assemble([program], tabulator(columns))
    bank = make_bank(np, list(map(read, layout.ints)), list(map(read, layout.floats)), len(numbers))
    values, nulls, failed = evaluate(program, table, bank)
    if failed >= 0:
        row = columns.number_of(int(numbers[failed]))
        raise EventError(f"{failure(program)} in an aggregate of MEASURES at input row {row}; {WIDER_IN_ROWS}")
    return values, nulls
