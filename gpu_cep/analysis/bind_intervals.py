"""Bind a query over situations to a schema: turn its AST into its bound form.

Faults are collected, and one error names all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import get_args

from gpu_cep.analysis.bound import Condition, ConditionKind, EventVariable, TimeWindow
from gpu_cep.analysis.bound_expressions import Bound
from gpu_cep.analysis.bound_intervals import BoundConstraint, BoundIntervals, Duration
from gpu_cep.analysis.coercion import FAULTY
from gpu_cep.analysis.current_event import of_event
from gpu_cep.analysis.expressions import bind_condition, bind_operand
from gpu_cep.analysis.faults import Faults
from gpu_cep.analysis.options import Options
from gpu_cep.analysis.references import ENDPOINTS
from gpu_cep.analysis.returns import bind_returns
from gpu_cep.analysis.scope import Clause, Scope
from gpu_cep.analysis.streams import stream_columns
from gpu_cep.analysis.types import Kind, Schema
from gpu_cep.analysis.windows import EVENTS, bind_length, bind_window, check_time_unit, length_of
from gpu_cep.choices import Allen, Detect
from gpu_cep.lang.ast import Expression, Source
from gpu_cep.lang.ast_intervals import RELATIONS, Constraint, IntervalQuery, Relation, Situation
from gpu_cep.lang.durations import with_durations
from gpu_cep.lang.format import format_constraint, format_expression

# In ticks of the timestamp column; None where there is no length.
_Length = int | float | None

MOST_SITUATIONS = 10
DETECTED_AT = "detected_at"

# Values of allen=: `finishes` is read as in the paper's Table 1 (the left one starts first), or as Allen defined it in 1983.
ALLEN = get_args(Allen)
_OF_1983 = {"finishes": "finished-by", "finished-by": "finishes"}

# Values of detect=: a match is reported when its situations have ended, or when its constraints are decided (section 5.3).
DETECT = get_args(Detect)


def bind_intervals(query: IntervalQuery, schema: Schema, options: Options, text: str | None = None) -> BoundIntervals:
    """Return `query` over events of `schema`, with one constraint for each pair of situations.

    Names are resolved, and types are explicit. Parameters and errors are those of :func:`gpu_cep.analysis.bind.bind`.
    """
    faults = Faults()
    variables = tuple(EventVariable(situation.name, 1, None, quantified=True) for situation in query.situations)
    scope = Scope.of_query(schema, variables, options, faults)
    query = with_durations(query, partial(_is_boolean, source=query.source, scope=scope))
    _check_names(query, faults)
    _check_functions(options, faults)
    _check_options(options, faults)
    check_time_unit(options.time_unit, faults)
    timestamp, drops_untimed, partition_by, order_by = stream_columns(query, options, scope)
    situations = [_bind_situation(number, query, timestamp, options, scope) for number in range(len(query.situations))]
    constraints = tuple(_constraints(query, options, scope))
    returned = replace(scope, clause=Clause.RETURN, time=None if timestamp is None else schema.attributes[timestamp].type)
    keys = [*(schema.names[column] for column in partition_by), DETECTED_AT]
    returns = bind_returns(query.returns, keys, returned)
    window = _window(query, timestamp, options, scope)
    gap = _gap(timestamp, options, scope)
    faults.raise_any(text)
    assert timestamp is not None, "an unknown timestamp is a fault"
    return BoundIntervals(
        schema=schema,
        computed=tuple(scope.computed),
        variables=variables,
        conditions=tuple(condition for condition, _ in situations),
        returns=returns,
        window=window,
        timestamp=timestamp,
        drops_untimed=drops_untimed,
        partition_by=partition_by,
        order_by=order_by,
        durations=tuple(duration for _, duration in situations),
        constraints=constraints,
        early=options.detect == "early",
        gap=gap,
    )


def _is_boolean(situation: str, expression: Expression, source: Source | None, scope: Scope) -> bool:
    """Return whether an expression in the condition of a situation is a truth value; its faults are recorded when it is bound for good."""
    trial = replace(scope, faults=Faults(), computed=list(scope.computed))
    return bind_operand(of_event(expression, situation, _qualifiers(source), "DEFINE", trial), trial).type.kind is Kind.BOOLEAN


def _check_functions(options: Options, faults: Faults) -> None:
    for function in options.functions:
        if function.name in ENDPOINTS:
            faults.error(f"functions: {function.name!r} is the name of a function of situations", hint="give it another name")


def _check_names(query: IntervalQuery, faults: Faults) -> None:
    counts = Counter(situation.name for situation in query.situations)
    for situation in query.situations:
        if counts.pop(situation.name, 0) > 1:
            faults.error(f"two situations are called {situation.name!r}", situation.span)
    if len(query.situations) > MOST_SITUATIONS:
        faults.refuse(f"a query over {len(query.situations)} situations", f"there may be {MOST_SITUATIONS}", query.situations[-1].span)


def _check_options(options: Options, faults: Faults) -> None:
    if options.allen not in ALLEN:
        faults.unknown("value of allen", options.allen, ALLEN)
    if options.detect not in DETECT:
        faults.unknown("value of detect", options.detect, DETECT)
    if options.ties != "strict":
        faults.error(f"ties={options.ties!r} is for event patterns: situations begin and end in the order of their stream")
    if options.strategy is not None:
        faults.error(f"strategy={options.strategy!r} is for event patterns: a situation is a longest run of events")


def _bind_situation(
    number: int, query: IntervalQuery, timestamp: int | None, options: Options, scope: Scope
) -> tuple[Condition, Duration]:  # fmt: skip
    """Return the condition on a situation's events, and the bounds of its duration."""
    situation = query.situations[number]
    expression = _bind_property(situation, query, scope)
    text = format_expression(situation.condition)
    return Condition(expression, ConditionKind.PROPERTY, (number,), text), _bind_duration(situation, timestamp, options, scope)


def _bind_property(situation: Situation, query: IntervalQuery, scope: Scope) -> Bound:
    before = scope.faults.count
    own = of_event(situation.condition, situation.name, _qualifiers(query.source), "DEFINE", scope)
    return FAULTY if scope.faults.count > before else bind_condition(own, scope)


def _qualifiers(source: Source | None) -> tuple[str, ...]:
    """Return the names by which the stream's attributes may be written."""
    return () if source is None else tuple(name for name in (source.name, source.alias) if name is not None)


def _bind_duration(situation: Situation, timestamp: int | None, options: Options, scope: Scope) -> Duration:
    """Return the bounds of a situation's duration, in ticks."""
    if timestamp is None:
        return Duration(None, None)
    # of two bounds the tree does not tell whether they stand behind BETWEEN
    low, high = ("{}", "{}") if situation.at_least and situation.at_most else ("AT LEAST {}", "AT MOST {}")
    bind = partial(bind_length, "duration", timestamp=scope.schema.attributes[timestamp], time_unit=options.time_unit, faults=scope.faults)
    shortest, longest = bind(situation.at_least, form=low, least=True), bind(situation.at_most, form=high)
    if shortest is not None and longest is not None and shortest > longest:
        scope.faults.error(f"no situation {situation.name} lasts so long and no longer", situation.span, "exchange the two durations")
    # every situation lasts AT LEAST 0, and is known from its first event on
    return Duration(shortest or None, longest)


def _window(query: IntervalQuery, timestamp: int | None, options: Options, scope: Scope) -> TimeWindow | None:
    if timestamp is None:
        return None
    if query.within is not None and query.within.unit == EVENTS:
        scope.faults.refuse("a window of events over situations", "their window is a length of time", query.within.span)
        return None
    window = bind_window(query.within, scope.schema.attributes[timestamp], options.time_unit, scope.faults)
    return window if isinstance(window, TimeWindow) else None


def _gap(timestamp: int | None, options: Options, scope: Scope) -> _Length:
    """Return the longest time without events that ends no situation, in ticks."""
    if options.gap is None or timestamp is None:
        return None
    length = length_of(options.gap)
    if length is None:
        scope.faults.error(f"gap={options.gap!r} is no length of time", hint="write a number, or text such as '30 seconds'")
        return None
    bound = bind_length("gap", length, scope.schema.attributes[timestamp], options.time_unit, scope.faults, form="gap='{}'")
    if bound == 0 and options.detect == "early":
        # a situation would be open until the next event, and then turn out to have lasted no time
        scope.faults.refuse(f"gap={options.gap!r}, no tick of the timestamp, with detect='early'", "a gap that lasts some time")
    return bound


def _constraints(query: IntervalQuery, options: Options, scope: Scope) -> Iterator[BoundConstraint]:
    """Yield one constraint for each related pair of situations.

    It allows the relations that all constraints of the query on this pair allow.
    """
    pairs: dict[tuple[int, int], list[tuple[Constraint, frozenset[str]]]] = {}
    for constraint in query.constraints:
        pair = _pair(constraint, scope)
        if pair is not None:
            relations = frozenset(_relation(relation, pair, options, scope) for relation in constraint.alternatives)
            pairs.setdefault(pair, []).append((constraint, relations))
    for (left, right), parts in pairs.items():
        shared = frozenset.intersection(*(relations for _, relations in parts))
        allowed = tuple(relation for relation in RELATIONS if relation in shared)
        text = " AND ".join(format_constraint(constraint) for constraint, _ in parts)
        if not allowed:
            scope.faults.error(f"no relation satisfies all of {text}", parts[-1][0].span)
        yield BoundConstraint(left, right, allowed, text, parts[0][0].span)


def _pair(constraint: Constraint, scope: Scope) -> tuple[int, int] | None:
    """Return the numbers of the two situations that a constraint relates, the smaller first.

    Record a fault and return None if it does not relate two.
    """
    found = set()
    for relation in constraint.alternatives:
        numbers = [scope.variable(name, relation.span) for name in (relation.left, relation.right)]
        known = sorted(number for number in numbers if number is not None)
        if len(known) < len(numbers):
            return None
        if known[0] == known[1]:
            scope.faults.error(f"{relation.left} is related to itself: a match takes one situation of each name", relation.span)
            return None
        found.add((known[0], known[1]))
    if len(found) > 1:
        message = f"the alternatives {format_constraint(constraint)} relate different pairs"
        scope.faults.error(message, constraint.span, "constraints on different pairs are joined by AND")
        return None
    return found.pop()


def _relation(relation: Relation, pair: tuple[int, int], options: Options, scope: Scope) -> str:
    """Return the Table 1 name of the relation of the pair's first situation to its second."""
    name = _OF_1983.get(relation.relation, relation.relation) if options.allen == "1983" else relation.relation
    return name if scope.names[pair[0]] == relation.left else RELATIONS[name]
