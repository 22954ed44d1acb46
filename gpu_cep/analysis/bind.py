"""Bind an event pattern to a schema: turn its AST into a bound query.

Faults are collected, and one error names all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, get_args

from gpu_cep.analysis.bound import BoundPattern, Branch, Condition, EventVariable
from gpu_cep.analysis.conditions import bind_where, equivalence_columns, event_types
from gpu_cep.analysis.contiguity import PatternWithoutNext, drop_open_gaps, may_move, negate_gaps
from gpu_cep.analysis.faults import Faults
from gpu_cep.analysis.gaps import (
    ANY,
    PatternWithoutGaps,
    check_gaps,
    choose_gaps,
    first_properties,
    with_first_conditions,
    without_firsts_left_out,
)
from gpu_cep.analysis.keys import derived_keys, marked, with_conditions
from gpu_cep.analysis.normalize import Primitive, branches, primitives
from gpu_cep.analysis.options import Options
from gpu_cep.analysis.ranking import bind_ranking
from gpu_cep.analysis.returns import bind_returns
from gpu_cep.analysis.scope import Clause, Scope
from gpu_cep.analysis.streams import stream_columns
from gpu_cep.analysis.types import Schema
from gpu_cep.analysis.until import end_variable, ending_variables, until_conditions
from gpu_cep.analysis.windows import bind_window, check_time_unit
from gpu_cep.choices import Ties
from gpu_cep.lang.ast import STRATEGIES, Query

DEFAULT_STRATEGY = "skip_till_next_match"
TIES = get_args(Ties)
_MOVING = "its end is not known when the next event is taken: write robust_skip_till_next_match, skip_till_any_match or a contiguity"


def bind(query: Query, schema: Schema, options: Options, text: str | None = None, *, ranking: str | None = None) -> BoundPattern:
    """Return `query` over events of `schema`, with names resolved, types explicit and conditions split.

    Parameters
    ----------
    query
        What the parser or a builder gives.
    schema
        The columns of the events.
    options
        What the caller says beside the text; it must not contradict it.
    text
        The query's text, for errors to quote.
    ranking
        By what the matches of one first event are kept, as text (None: in the order of results).

    Raises
    ------
    PatternError
        The query means nothing over these events; it carries all faults found.
    UnsupportedError
        The query is sound but uses what is not supported; it names every such construct.
    """
    faults = Faults()
    chosen = choose_gaps(query.pattern, query.strategy or options.strategy or DEFAULT_STRATEGY, faults)
    written = negate_gaps(chosen.pattern, faults)
    found = primitives(written.pattern, faults, text, frozenset(chosen.firsts.values()))
    ends = ending_variables(found)
    named = (*_variables(found), *map(end_variable, ends))
    scope = Scope.of_query(schema, named, options, faults, hidden=frozenset({*written.gaps, *chosen.firsts.values(), *ends}))
    timestamp, drops_untimed, partition_by, order_by = stream_columns(query, options, scope)
    strategy = _strategy(query, options, scope)
    _check_options(options, faults)
    equivalences = equivalence_columns(query.where, scope)
    conditions = (
        *event_types(found, options.type_column, scope),
        *bind_where(query.where, scope),
        *until_conditions(ends, tuple(dict.fromkeys((*partition_by, *equivalences))), scope),
    )
    shape = _shape(chosen, written, strategy, conditions, scope)
    keys = derived_keys(shape.branches, partition_by, scope)
    returns = bind_returns(query.returns, [schema.names[column] for column in partition_by], replace(scope, clause=Clause.RETURN))
    window = None if timestamp is None else bind_window(query.within, schema.attributes[timestamp], options.time_unit, faults)
    if query.within is None:
        _check_negations(shape.branches, found, scope)
    faults.raise_any(text)
    assert timestamp is not None, "an unknown timestamp is a fault"
    ranked = None if ranking is None else bind_ranking(ranking, scope)
    return BoundPattern(
        schema=schema,
        computed=tuple(scope.computed),
        variables=scope.variables,
        branches=tuple(marked(branch, keys) for branch in shape.branches),
        conditions=shape.conditions,
        returns=returns,
        window=window,
        strategy=shape.strategy,
        ties=options.ties,
        timestamp=timestamp,
        drops_untimed=drops_untimed,
        equivalences=equivalences,
        partition_by=partition_by,
        order_by=order_by,
        derived_keys=keys,
        ranking=ranked,
    )


def _variables(found: Sequence[Primitive]) -> tuple[EventVariable, ...]:
    """Return each variable once: the positive ones in order of first appearance, then the negated ones."""
    named = {primitive.variable.name: primitive.variable for primitive in found}
    return tuple(sorted(named.values(), key=lambda variable: variable.negated))


class _Shape(NamedTuple):
    """A pattern whose gaps all have one strategy.

    `conditions`: all of them. `branches`: each with those that it decides.
    """

    conditions: tuple[Condition, ...]
    branches: tuple[Branch, ...]
    strategy: str


def _shape(
    chosen: PatternWithoutGaps, written: PatternWithoutNext, strategy: str, conditions: tuple[Condition, ...], scope: Scope
) -> _Shape:
    """Return the pattern with its conditions; gaps of another strategy are negations."""
    firsts = {scope.names.index(name): scope.names.index(earlier) for name, earlier in chosen.firsts.items()}
    parts = _parts(written, firsts, strategy, scope)
    check_gaps(chosen, strategy, parts, scope.variables, scope.faults)
    branches = tuple(with_conditions(branch, conditions, scope) for branch in parts)
    if not chosen.has_gaps or scope.faults.count:
        return _Shape(conditions, branches, strategy)
    related = tuple(with_first_conditions(branch, firsts) for branch in branches)
    return _Shape((*conditions, *first_properties(firsts, conditions)), related, ANY)


def _parts(written: PatternWithoutNext, firsts: Mapping[int, int], strategy: str, scope: Scope) -> list[Branch]:
    """Return the branches of the pattern; refuse a gap without events whose begin is not known when it is judged."""
    gaps = {scope.names.index(name): name for name in written.gaps}
    hidden = {*gaps, *firsts.values()}
    found = (without_firsts_left_out(branch, firsts) for branch in branches(written.pattern, scope.variables, scope.faults))
    parts = [drop_open_gaps(branch, hidden) for branch in found]
    if strategy == DEFAULT_STRATEGY:
        for number, name in gaps.items():
            if any(may_move(branch, number, scope.variables) for branch in parts):
                span, node = written.gaps[name]
                scope.faults.refuse(f"{node} behind a variable that may bind more, under {strategy}", _MOVING, span)
    return parts


def _check_negations(branches: Sequence[Branch], found: Sequence[Primitive], scope: Scope) -> None:
    """Refuse open negations in a query without a window.

    A negation is open if no variable precedes it, or none follows it.
    """
    spans = {primitive.variable.name: primitive.span for primitive in found}
    untyped = {primitive.variable.name for primitive in found if primitive.event_type is None}
    open_sided = {negation.variable for branch in branches for negation in branch.negations if not (negation.after and negation.before)}
    for number in sorted(open_sided):
        name = scope.names[number]
        message = f"NOT({name}) is not bounded on both sides by other variables, and the query has no window"
        quoted = f'; an event type of this name is quoted: "Not" {name}' if name in untyped else ""
        scope.faults.error(message, spans[name], f"add WITHIN{quoted}")


def _strategy(query: Query, options: Options, scope: Scope) -> str:
    if options.strategy is not None and options.strategy not in STRATEGIES:
        scope.faults.unknown("strategy", options.strategy, STRATEGIES)
        return DEFAULT_STRATEGY
    if options.strategy is not None and query.strategy not in (None, options.strategy):
        scope.faults.error(f"strategy={options.strategy!r} contradicts {query.strategy} in the text", query.span, "leave one of them out")
    strategy = query.strategy or options.strategy or DEFAULT_STRATEGY
    _check_strategy_variables(query, strategy, scope)
    return strategy


def _check_strategy_variables(query: Query, strategy: str, scope: Scope) -> None:
    listed = query.strategy_variables
    for name in (name for name, times in Counter(listed).items() if times > 1):
        scope.faults.error(f"{strategy}({', '.join(listed)}) names {name!r} twice", query.span)
    known = [name for name in listed if scope.variable(name, query.span) is not None]
    missing = [variable.name for variable in scope.variables if variable.name not in listed and not variable.negated]
    if listed and missing and len(known) == len(listed):
        construct = f"{strategy}({', '.join(listed)}) without {', '.join(missing)}"
        scope.faults.refuse(construct, "a strategy holds for all variables of the pattern", query.span)


def _check_options(options: Options, faults: Faults) -> None:
    """Record unknown ties and units, and options that concern situations; event patterns have none."""
    if options.ties not in TIES:
        faults.unknown("value of ties", options.ties, TIES)
    check_time_unit(options.time_unit, faults)
    for name, plain in (("allen", "paper"), ("detect", "final"), ("gap", None)):
        value = getattr(options, name)
        if value != plain:
            faults.error(f"{name}={value!r} is for interval patterns (DEFINE … PATTERN A before B)")
