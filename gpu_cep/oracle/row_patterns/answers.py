"""Answer MATCH_RECOGNIZE over a small table: the matches of each partition, and the rows that the clause returns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from gpu_cep.errors import EventError, PatternError, UnsupportedError
from gpu_cep.lang.row_patterns.ast import Column, RowPatternQuery, SortKey
from gpu_cep.lang.row_patterns.names import folded, spellings
from gpu_cep.oracle.expressions import Scalar, meaning
from gpu_cep.oracle.meanings import Kind, Meaning
from gpu_cep.oracle.options import agreed
from gpu_cep.oracle.problems import window_length
from gpu_cep.oracle.row_patterns.places import MatchedRow, Variables
from gpu_cep.oracle.row_patterns.preference import Fits, PreferenceSearch
from gpu_cep.oracle.row_patterns.rows import Partition, column, partitions
from gpu_cep.oracle.streams import schema_of, tick
from gpu_cep.oracle.values import Value

MOST_ROWS = 200
"""The most rows of a partition."""


@dataclass(frozen=True, slots=True)
class Match:
    """A match: its number in the partition, its first row, and of each row the variable and whether it is excluded."""

    number: int
    first: int
    labels: tuple[str, ...]
    excluded: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class ReturnedRow:
    """A row of the result: the number of the input row whose columns it shows, and the measures, None of which an unmatched row has."""

    number: int
    measures: tuple[Value, ...] | None


@dataclass(frozen=True, slots=True)
class _Question:
    """The clause with its expressions read: variables, conditions by folded name, measures and window."""

    query: RowPatternQuery
    variables: Variables
    conditions: Mapping[str, Meaning]
    measures: tuple[Meaning, ...]
    fits: Fits


def answer(
    query: RowPatternQuery,
    table: pa.Table,
    *,
    partition_by: Sequence[str] | None = None,
    order_by: Sequence[str] = (),
    time_unit: str | None = None,
    functions: Mapping[str, Scalar] | None = None,
) -> list[ReturnedRow]:
    """Return the rows of the result, partition by partition, in the order in which their matches begin.

    `partition_by`, `order_by`: columns that stand for clauses that the text leaves out.

    Raises
    ------
    UnsupportedError
        A partition has more than :data:`MOST_ROWS` rows.
    EventError
        AFTER MATCH SKIP TO leads to the first row of the match, or to a variable that has none.
    """
    query = _with_keywords(query, partition_by or (), order_by)
    question = _read(query, table, time_unit, functions or {})
    keys = [each.name for each in query.partition_by]
    return [row for partition in partitions(table, keys, query.order_by) for row in _rows(question, partition)]


def _with_keywords(query: RowPatternQuery, partition_by: Sequence[str], order_by: Sequence[str]) -> RowPatternQuery:
    keys = agreed("PARTITION BY", query.partition_by, tuple(map(_exactly, partition_by)))
    order = agreed("ORDER BY", query.order_by, tuple(SortKey(_exactly(name)) for name in order_by))
    return replace(query, partition_by=keys or (), order_by=order or ())


def _exactly(name: str) -> Column:
    quoted = name.replace('"', '""')
    return Column(None, f'"{quoted}"')


def _read(query: RowPatternQuery, table: pa.Table, time_unit: str | None, functions: Mapping[str, Scalar]) -> _Question:
    schema = schema_of(table, functions)
    subsets = {folded(each.name): frozenset(map(folded, each.members)) for each in query.subsets}
    conditions = {folded(each.name): meaning(each.condition, schema) for each in query.definitions}
    if any(each.kind not in (Kind.BOOLEAN, Kind.NULL) for each in conditions.values()):
        raise PatternError("a condition is true or false")
    measures = tuple(meaning(each.expression, schema) for each in query.measures)
    return _Question(query, Variables(spellings(query.pattern), subsets), conditions, measures, _window(query, table, time_unit))


def _window(query: RowPatternQuery, table: pa.Table, time_unit: str | None) -> Fits:
    """Return the test whether two rows of a partition, the earlier first, lie in the window."""
    within = query.within
    if within is None:
        return lambda partition, first, last: True
    if within.unit == "events":
        return lambda partition, first, last: last - first < within.amount
    if not query.order_by:
        raise PatternError("WITHIN needs ORDER BY")
    time = column(query.order_by[0].column.name, table.column_names)
    type_ = table.schema.field(time).type
    ticks = window_length(within, type_, time_unit)
    assert ticks is not None, "a length of time has ticks"
    length = ticks * (tick(type_) or 1)

    def fits(partition: Partition, first: int, last: int) -> bool:
        start, end = (partition.rows[position][time] for position in (first, last))
        return start is not None and end is not None and end - start <= length

    return fits


def _rows(question: _Question, partition: Partition) -> Iterator[ReturnedRow]:
    if len(partition.rows) > MOST_ROWS:
        raise UnsupportedError(f"algorithm='brute_force' takes at most {MOST_ROWS} rows of a partition, not {len(partition.rows)}")
    start, number, matched = 0, 1, -1
    while start < len(partition.rows):
        found = _match(question, partition, start, number)
        if found is not None:
            yield from _of_match(question, partition, found)
            number, matched = number + 1, max(matched, start + len(found.labels) - 1)
            start = _next_start(question, partition, found)
            continue
        if question.query.rows == "with unmatched" and start > matched:
            yield ReturnedRow(partition.numbers[start], None)
        start += 1


def _match(question: _Question, partition: Partition, first: int, number: int) -> Match | None:
    place = MatchedRow(partition.rows, first, (), first, number, question.variables)
    mapped = PreferenceSearch(partition, place, question.conditions, question.fits).first(question.query.pattern)
    return None if mapped is None else Match(number, first, mapped.labels, mapped.excluded)


def _of_match(question: _Question, partition: Partition, match: Match) -> Iterator[ReturnedRow]:
    """Yield the rows that a match returns."""
    last = match.first + len(match.labels) - 1
    if question.query.rows == "one" or (not match.labels and question.query.rows != "omit empty"):
        yield ReturnedRow(partition.numbers[match.first], _measures(question, partition, match, last))
    else:
        shown = [match.first + number for number, excluded in enumerate(match.excluded) if not excluded]
        yield from (ReturnedRow(partition.numbers[each], _measures(question, partition, match, each)) for each in shown)


def _measures(question: _Question, partition: Partition, match: Match, current: int) -> tuple[Value, ...]:
    """Return the measures at a row of a match; at the row before the first if it has none."""
    place = MatchedRow(partition.rows, match.first, match.labels, current, match.number, question.variables)
    return tuple(each.value(place) for each in question.measures)


def _next_start(question: _Question, partition: Partition, match: Match) -> int:
    """Return where the search goes on; AFTER MATCH SKIP speaks of matches with rows only."""
    skip = question.query.skip
    if not match.labels or (skip is not None and skip.to == "NEXT ROW"):
        return match.first + 1
    if skip is None or skip.variable is None:
        return match.first + len(match.labels)
    place = MatchedRow(partition.rows, match.first, match.labels, match.first, match.number, question.variables)
    mapped = place.positions(skip.variable, "FINAL")
    begins = f"match {match.number} of its partition, from row {partition.numbers[match.first]} on,"
    where = f"AFTER MATCH SKIP TO {skip.to} {skip.variable}: {begins}"
    if not mapped:
        raise EventError(f"{where} has no row of {skip.variable}")
    target = mapped[0] if skip.to == "FIRST" else mapped[-1]
    if target == match.first:
        raise EventError(f"{where} would be found again, since that is its first row")
    return target
