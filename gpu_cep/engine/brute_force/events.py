"""Answer event patterns by ``algorithm="brute_force"``.

The oracle finds the matches of small input; they are written in each form of output.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from gpu_cep.analysis.bound_expressions import Bound, Operation, ScalarFunction
from gpu_cep.analysis.computed_columns import ComputedExpression
from gpu_cep.analysis.options import Options
from gpu_cep.analysis.ranking import read_ranking
from gpu_cep.engine.events.matches import Indices, Matches
from gpu_cep.engine.events.stream_keys import encode_keys
from gpu_cep.engine.events.tie_ranks import rank_rows
from gpu_cep.engine.input.device.resident import ResidentTable
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.input.read_tables import to_host
from gpu_cep.engine.input.times import load_times
from gpu_cep.engine.output.matched_events import MatchedEvents
from gpu_cep.engine.output.result_tables import match_table
from gpu_cep.engine.phase_one.computed_columns import event_columns
from gpu_cep.errors import MatchLimitExceeded, UnsupportedError
from gpu_cep.lang.ast import Query
from gpu_cep.oracle.events import matches as oracle_matches
from gpu_cep.oracle.expressions import Scalar
from gpu_cep.oracle.meanings import Kind
from gpu_cep.oracle.options import EventOptions
from gpu_cep.plan.event_plan import Plan


def enumerate_by_definition(plan: Plan, query: Query, options: Options, table: pa.Table | ResidentTable) -> pa.Table:
    """Return the result of an event pattern by brute force.

    Raises
    ------
    UnsupportedError
        A stream is too long; the message names the limit.
    MatchLimitExceeded
        There are more than `max_matches`.
    """
    columns = event_columns(plan, to_host(table))
    times = load_times(columns, plan.query.timestamp)
    order = plan.settings.order_matches_by
    ranking = None if order is None else read_ranking(order, [variable.name for variable in plan.query.variables])
    asked = EventOptions(
        timestamp=options.timestamp, partition_by=options.partition_by, order_by=options.order_by, type_column=options.type_column,
        strategy=options.strategy, ties=options.ties, time_unit=options.time_unit, after_match=plan.settings.after_match,
        limit_per_start=plan.settings.limit_per_start, ranking=ranking, functions=scalars(plan, options.functions),
    )  # fmt: skip
    found = oracle_matches(query, columns.table, asked)
    refuse_more(plan, len(found))
    ranks = rank_rows(columns, plan.query.order_by, np.arange(len(columns)))
    rows = np.lexsort([np.arange(len(columns)), *([ranks] if ranks.size else []), times])
    place = np.empty(len(rows), np.int64)
    place[rows] = np.arange(len(rows))
    matches = _flat(plan, found, place)
    streams = _stream_numbers(plan, columns, rows[matches.first])
    return match_table(plan, MatchedEvents(columns, rows, matches), streams)


def refuse_more(plan: Plan, matches: int) -> None:
    """Raise MatchLimitExceeded if brute force has found more than `max_matches`."""
    limit = plan.settings.max_matches
    if limit is not None and matches > limit:
        raise MatchLimitExceeded(f"more than max_matches={limit:,} matches, in a search by brute force")


def scalars(plan: Plan, functions: Iterable[ScalarFunction]) -> dict[str, Scalar]:
    """Return the functions that conditions call, with the kinds of their results, for the oracle."""
    conditions = [condition.expression for condition in plan.query.conditions]
    expressions = [each.expression for each in plan.query.computed if isinstance(each, ComputedExpression)]
    return called_scalars((*conditions, *expressions), functions)


def called_scalars(expressions: Iterable[Bound], functions: Iterable[ScalarFunction]) -> dict[str, Scalar]:
    """Return the functions that expressions call, with the kinds of their results, for the oracle."""
    found: dict[str, Scalar] = {}
    for call in (call for expression in expressions for call in _calls(expression)):
        assert call.function is not None, "a call is a function's"
        kind = Kind(call.type.kind.value)
        if found.setdefault(call.function.name, Scalar(call.function.body, kind)).kind is not kind:
            raise UnsupportedError(f"algorithm='brute_force': {call.function.name}() gives numbers of two types; supported: one type")
    # the oracle reads the query's text, where functions may be called that the plan has simplified away: their results are NULL
    return {function.name: Scalar(function.body, Kind.NULL) for function in functions} | found


def _calls(expression: Bound) -> Iterator[Operation]:
    if isinstance(expression, Operation):
        if expression.function is not None:
            yield expression
        for argument in expression.arguments:
            yield from _calls(argument)


def _flat(plan: Plan, found: list[dict[str, tuple[int, ...]]], place: Indices) -> Matches:
    names = [variable.name for variable in plan.query.positives]
    counts = np.array([[len(match[name]) for name in names] for match in found], np.int32).reshape(-1, len(names))
    bound = np.array([row for match in found for name in names for row in match[name]], np.int64)
    events = place[bound]
    sizes = counts.sum(axis=1)
    begins = (np.cumsum(sizes) - sizes).astype(np.int64)
    first = np.minimum.reduceat(events, begins) if len(begins) else np.empty(0, np.int64)
    return Matches(first, counts, events)


def _stream_numbers(plan: Plan, columns: EventColumns, rows: Indices) -> Indices:
    """Return ascending stream numbers for matches (given by `rows`) that are sorted by stream."""
    codes = encode_keys(columns, plan.query.partition_by).codes
    if codes is None or not len(rows):
        return np.zeros(len(rows), np.int64)
    return np.concatenate([[0], np.cumsum(np.diff(codes[rows]) != 0)]).astype(np.int64)
