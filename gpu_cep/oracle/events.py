"""Find the matches of event patterns by trying everything, as the definitions say.

Nothing is optimised, so streams must be short. A pattern is brought into its normal form
(:mod:`~gpu_cep.oracle.patterns`). Each branch is matched in each stream by itself, in one of two
independent ways.

* All substitutions are tested for being matches (docs/language.md, :mod:`~gpu_cep.oracle.substitutions`).
* The stream is walked event by event (docs/strategies.md, :mod:`~gpu_cep.oracle.selection`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from gpu_cep.lang import ast
from gpu_cep.lang.groups import expand_groups
from gpu_cep.oracle.conditions import value_of
from gpu_cep.oracle.expressions import Schema
from gpu_cep.oracle.options import EventOptions, Ranking, agreed, known, names
from gpu_cep.oracle.patterns import Pattern, pattern_of
from gpu_cep.oracle.problems import Problem, order_test, window_length, window_test
from gpu_cep.oracle.selection import STRATEGIES
from gpu_cep.oracle.streams import Stream, schema_of, streams

Match = dict[str, tuple[int, ...]]
Bindings = tuple[tuple[int, ...], ...]  # for each variable its stream positions; empty if it is absent


def matches(query: ast.Query, events: pa.Table, options: EventOptions | None = None, *, limit: int = 200_000) -> list[Match]:
    """Return all matches of `query` in `events`, in the order of results (docs/semantics.md).

    Parameters
    ----------
    query
        A query over events.
    events
        As in :func:`gpu_cep.match`.
    options
        What the caller says beside the text (None: nothing).
    limit
        The most substitutions that are tried for a stream and branch. Strategies other than
        skip_till_any_match count partial matches. A stream with more is an UnsupportedError.

    Returns
    -------
    list of dict
        For each match, variable → row numbers of the input in stream order, for all variables that
        are not negated. A variable that is absent has no rows.
    """
    options = options or EventOptions()
    select = known("after_match", options.after_match, AFTER_MATCH)
    name, pattern, parts = problems_of(query, events, options)
    find = known("strategy", name, STRATEGIES)
    matched = []
    for stream, problems in parts:
        found = {_bindings(pattern, match) for problem in problems for match in find(problem, limit)}
        selected = sorted(select(sorted(found, key=_completion)), key=_rank)
        if options.limit_per_start is not None:
            ranked = sorted(selected, key=_value_key(pattern, stream, options.ranking, schema_of(events, options.functions)))
            selected = sorted(_first_of_starts(ranked, options.limit_per_start), key=_rank)
        matched += [_rows(pattern, stream, bindings) for bindings in selected]
    return matched


def problems_of(
    query: ast.Query, events: pa.Table, options: EventOptions
) -> tuple[str, Pattern, list[tuple[Stream, list[Problem]]]]:  # fmt: skip
    """Return the strategy, the pattern in normal form, and the streams, each with the problem of every branch in it."""
    query = expand_groups(query)
    name = agreed("strategy", query.strategy, options.strategy) or "skip_till_next_match"
    keys = agreed("partition_by", query.partition_by, names(options.partition_by)) or ()
    pattern = pattern_of(query, schema_of(events, options.functions), options.type_column)
    length = window_length(query.within, events.schema.field(options.timestamp).type, options.time_unit)
    parts = []
    for stream in streams(events, options.timestamp, keys, names(options.order_by)):
        is_within, is_before = window_test(query.within, length, stream), order_test(options.ties, stream)
        parts.append((stream, [Problem(branch, stream, is_within, is_before) for branch in pattern.branches]))
    return name, pattern, parts


def _skip_past_last(completed: Iterable[Bindings]) -> list[Bindings]:
    """Return the matches that start behind the last event of the match taken before them.

    `completed` are all matches, in order of completion.
    """
    taken: list[Bindings] = []
    for bindings in completed:
        if not taken or first_event(bindings) > last_event(taken[-1]):
            taken.append(bindings)
    return taken


def _skip_to_next(completed: Iterable[Bindings]) -> list[Bindings]:
    """Return the first match to be completed for each first event.

    `completed` are all matches, in order of completion.
    """
    earliest: dict[int, Bindings] = {}
    for bindings in completed:
        earliest.setdefault(first_event(bindings), bindings)
    return list(earliest.values())


def _first_of_starts(ranked: Iterable[Bindings], limit: int) -> list[Bindings]:
    """Return the first `limit` matches of each first event."""
    taken: dict[int, list[Bindings]] = {}
    for bindings in ranked:
        taken.setdefault(first_event(bindings), []).append(bindings)
    return [bindings for of_start in taken.values() for bindings in of_start[:limit]]


def _value_key(pattern: Pattern, stream: Stream, ranking: Ranking | None, schema: Schema) -> Callable[[Bindings], tuple[Any, ...]]:
    """Return a sort key by the value of an expression of the match: numbers, then NaN, then NULL."""
    if ranking is None:
        return lambda bindings: ()
    written, descending = ranking

    def key(bindings: Bindings) -> tuple[Any, ...]:
        bound = {name: tuple(stream.rows[i] for i in events) for name, events in zip(pattern.variables, bindings, strict=True)}
        value = value_of(written, bound, schema)
        if value is None or value != value:
            return (1, value is None)
        return (0, _Greatest(value) if descending else value)

    return key


@dataclass(frozen=True, slots=True)
class _Greatest:
    """A value that is less than another if it is greater."""

    value: Any

    def __lt__(self, other: _Greatest) -> bool:
        return bool(self.value > other.value)


AFTER_MATCH: Mapping[str, Callable[[Iterable[Bindings]], list[Bindings]]] = {
    "all": list,
    "skip_past_last": _skip_past_last,
    "skip_to_next": _skip_to_next,
}


def _completion(bindings: Bindings) -> tuple[Any, ...]:
    """Return a sort key for the order of completion: last event, first event, bindings."""
    return last_event(bindings), first_event(bindings), bindings


def _rank(bindings: Bindings) -> tuple[Any, ...]:
    """Return a sort key for the order of results: first event, last event, bindings."""
    return first_event(bindings), last_event(bindings), bindings


def first_event(bindings: Bindings) -> int:
    """Return the first position that is bound."""
    return min(min(bound) for bound in bindings if bound)


def last_event(bindings: Bindings) -> int:
    """Return the last position that is bound."""
    return max(max(bound) for bound in bindings if bound)


def _bindings(pattern: Pattern, match: Mapping[str, tuple[int, ...]]) -> Bindings:
    return tuple(match.get(name, ()) for name in pattern.variables)


def _rows(pattern: Pattern, stream: Stream, bindings: Bindings) -> Match:
    return {name: tuple(stream.numbers[position] for position in bound) for name, bound in zip(pattern.variables, bindings, strict=True)}
