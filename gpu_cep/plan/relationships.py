"""Turn branches into tables of conditions, aggregates and negations (a rule of the planner).

Precondition: conditions that relate events; properties are planned elsewhere.
Rewrite: conditions become programs. Each variable that a condition reads becomes a part, with a
role for each event that it reads. Averages become the quotient of a sum and a count. Equalities
that partitioning by a derived key implies are dropped. What a condition computes from one event
becomes a column of the bank.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from gpu_cep.analysis.bound import BoundPattern, Branch, Condition, ConditionKind
from gpu_cep.analysis.bound_expressions import Aggregation, Bound, Constant, Field, Operation, Place
from gpu_cep.analysis.conditions import reads
from gpu_cep.analysis.types import FLOAT, INTEGER, DataType, Kind
from gpu_cep.plan.derived_columns import DerivedColumns
from gpu_cep.plan.event_plan import BankLayout, EventPlan, Part, PlannedBranch, PlannedCondition, PlannedNegation, RunningAggregate, Spread
from gpu_cep.plan.programs import BANK_COLUMNS, Leaf, Slot, compile_program, is_float, leaves
from gpu_cep.plan.properties import layout_of, slot_of


def plan_branches(plan: EventPlan) -> EventPlan:
    """Return the plan with its branches, and the bank of columns that their conditions read.

    Examples
    --------
    >>> before = draft("PATTERN SEQ(a, b+) WHERE a.x < b.x AND a.y < 1")
    >>> before.branches, before.layout
    ((), BankLayout(ints=(), floats=(), vectors=(), derived=()))
    >>> after = plan_branches(before)
    >>> [condition.text for branch in after.branches for condition in branch.conditions], after.layout
    (['a.x < b.x'], BankLayout(ints=(3,), floats=(), vectors=(), derived=()))
    """
    query = plan.query
    needed = [[each for each in branch.conditions if each.key is None or each.key not in plan.derived] for branch in query.branches]
    expanded = [tuple(replace(each, expression=_without_averages(each.expression, query)) for each in conditions) for conditions in needed]
    derived = DerivedColumns(BANK_COLUMNS - len(_read_floats(expanded, query)))
    kept = [tuple(replace(each, expression=derived.put_fields(each.expression)) for each in conditions) for conditions in expanded]
    layout = _layout(kept, derived, query)
    planned = (_plan_branch(branch, conditions, query, layout) for branch, conditions in zip(query.branches, kept, strict=True))
    return replace(plan, branches=tuple(planned), layout=layout)


def _layout(kept: Sequence[Sequence[Condition]], derived: DerivedColumns, query: BoundPattern) -> BankLayout:
    """Return the bank of the columns that conditions read, and that derived columns are computed from."""
    expressions = (*(condition.expression for conditions in kept for condition in conditions), *derived.numbers)
    layout = layout_of(typed for expression in expressions for typed in _typed_columns(expression, query))
    found = (leaf for expression in derived.numbers for leaf in leaves(expression) if isinstance(leaf, Field))
    slots: dict[Leaf, Slot] = {leaf: slot_of(leaf, layout, 0) for leaf in found}
    return replace(layout, derived=tuple(compile_program(each, slots.__getitem__) for each in derived.numbers))


def _read_floats(kept: Sequence[Sequence[Condition]], query: BoundPattern) -> set[int]:
    """Return the columns of floats that conditions read."""
    read = {column for conditions in kept for condition in conditions for column in _columns(condition.expression)}
    return {column for column in read if is_float(query.column_type(column))}


def _columns(expression: Bound) -> Iterator[int]:
    return (read.column for read in reads(expression) if read.column is not None)


def _typed_columns(expression: Bound, query: BoundPattern) -> Iterator[tuple[int, DataType]]:
    """Yield the columns of the events that an expression reads, each with its type; a list has no length where no number is read."""
    for read in reads(expression):
        if read.column is not None and read.column >= 0:
            yield read.column, replace(query.column_type(read.column), length=read.type.length)


def _without_averages(expression: Bound, query: BoundPattern) -> Bound:
    """Return the expression with each average replaced by sum divided by count, as floats."""
    match expression:
        case Operation(arguments=arguments):
            return replace(expression, arguments=tuple(_without_averages(argument, query) for argument in arguments))
        case Aggregation(function="avg", variable=variable, column=int() as column, running=running):
            source = query.column_type(column)
            # of decimals the unscaled values are summed, and the mean is scaled last, as in RETURN
            total: Bound = Aggregation("sum", variable, column, FLOAT if is_float(source) else INTEGER, running)
            count = Operation("cast", (Aggregation("count", variable, column, INTEGER, running),), FLOAT)
            total = total if is_float(source) else Operation("cast", (total,), FLOAT)
            mean = Operation("div", (total, count), FLOAT)
            scaled = source.kind is Kind.DECIMAL and source.scale > 0
            return Operation("div", (mean, Constant(10.0**source.scale, FLOAT)), FLOAT) if scaled else mean
    return expression


def _plan_branch(branch: Branch, conditions: tuple[Condition, ...], query: BoundPattern, layout: BankLayout) -> PlannedBranch:
    """Return a branch with its conditions as programs, and the aggregates that they read, each kept once."""
    variables = (*branch.variables, *(negation.variable for negation in branch.negations))
    places = {variable: place for place, variable in enumerate(variables)}
    aggregations = dict.fromkeys(read for c in conditions for read in reads(c.expression) if isinstance(read, Aggregation))
    growing = {read: _aggregate(read, places, query, layout) for read in aggregations}
    kept = {read: _counted_along(own, growing.values()) for read, own in growing.items()}
    aggregates = sorted(dict.fromkeys(kept.values()), key=lambda aggregate: aggregate.variable)
    numbers = {read: aggregates.index(own) for read, own in kept.items()}
    return PlannedBranch(
        variables=variables,
        before=tuple(sum(1 << place for place in _members(mask, places)) for mask in branch.before),
        conditions=tuple(_condition(condition, places, numbers, layout) for condition in conditions),
        aggregates=tuple(aggregates),
        negations=tuple(
            PlannedNegation(places[negation.variable], _members(negation.after, places), _members(negation.before, places))
            for negation in branch.negations
        ),
        agreed=branch.agreed,
    )


def _members(mask: int, places: Mapping[int, int]) -> tuple[int, ...]:
    return tuple(place for variable, place in places.items() if mask >> variable & 1)


def _aggregate(read: Aggregation, places: Mapping[int, int], query: BoundPattern, layout: BankLayout) -> RunningAggregate:
    if read.column is None:
        return RunningAggregate(places[read.variable], "count_events", 0)
    floating = is_float(query.column_type(read.column))
    column = (layout.floats if floating else layout.ints).index(read.column)
    return RunningAggregate(places[read.variable], f"{read.function}_{'floats' if floating else 'ints'}", column)


def _counted_along(aggregate: RunningAggregate, others: Iterable[RunningAggregate]) -> RunningAggregate:
    """Return the sum of floats in which a count of floats is kept, too; else the aggregate itself.

    A sum knows how many values it has. (One of integers may forget that, when it overflows.)
    """
    total = replace(aggregate, step="sum_floats")
    return total if aggregate.step == "count_floats" and total in others else aggregate


def _condition(condition: Condition, places: Mapping[int, int], numbers: Mapping[Aggregation, int], layout: BankLayout) -> PlannedCondition:
    """Return a condition as a program, whose roles stand for the events that it reads; `numbers` are those of aggregates."""
    roles: dict[tuple[int, Place], int] = {}
    slots: dict[Leaf, Slot] = {}
    for leaf in leaves(condition.expression):
        match leaf:
            case Field(variable=variable, place=Place.FIRST_BEFORE):
                # a PREVIOUS role makes the condition be tested for all events but the first
                roles.setdefault((variable, Place.PREVIOUS), len(roles))
                slots[leaf] = slot_of(leaf, layout, roles.setdefault((variable, Place.FIRST), len(roles)))
            case Field(variable=variable, place=place):
                slots[leaf] = slot_of(leaf, layout, roles.setdefault((variable, place), len(roles)))
            case Aggregation(variable=variable):
                # an aggregate is read at the last event that it counts
                role = roles.setdefault((variable, Place.PREVIOUS if leaf.running else Place.LAST), len(roles))
                slots[leaf] = Slot(is_float(leaf.type), numbers[leaf], role, is_aggregate=True)
            case _:
                raise TypeError(f"a condition cannot read {type(leaf).__name__}")
    pairwise = condition.kind is ConditionKind.WITHIN
    parts = tuple(_part(variable, places[variable], roles, pairwise) for variable in condition.variables)
    closing = tuple(places[variable] for variable in condition.closing)
    return PlannedCondition(parts, closing, compile_program(condition.expression, slots.__getitem__), len(roles), condition.text)


def _part(variable: int, number: int, roles: Mapping[tuple[int, Place], int], pairwise: bool) -> Part:
    each, previous, first, last = (roles.get((variable, place), -1) for place in (Place.EACH, Place.PREVIOUS, Place.FIRST, Place.LAST))
    if pairwise:
        spread = Spread.PAIRWISE
    elif previous >= 0:
        spread = Spread.CONSECUTIVELY
    else:
        spread = Spread.SINGLY if each >= 0 else Spread.ONCE
    return Part(number, spread, each, previous, first, last)
