"""Plan a row pattern: which conditions are label bits, which read the match, and what measures read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from gpu_cep.analysis.bound import BoundPattern, Condition, ConditionKind, EventVariable
from gpu_cep.analysis.bound_expressions import Aggregation, Bound, Field, Operation
from gpu_cep.analysis.computed_columns import ComputedExpression
from gpu_cep.analysis.row_patterns.bound import BoundRowPattern
from gpu_cep.analysis.types import STRING, DataType, Kind
from gpu_cep.errors import Diagnostic, UnsupportedError
from gpu_cep.lang.ast import Connective, Expression
from gpu_cep.lang.row_patterns.format import format_row_expression
from gpu_cep.lang.row_patterns.names import folded, spellings
from gpu_cep.plan.dictionaries import merge_groups
from gpu_cep.plan.event_plan import BankLayout, EventPlan
from gpu_cep.plan.programs import Leaf, Slot, compile_program, is_float, leaves, string_comparisons
from gpu_cep.plan.properties import layout_of, plan_properties, split_conjunction
from gpu_cep.plan.returns import plan_return
from gpu_cep.plan.row_patterns.automaton import RowAutomaton, row_automaton
from gpu_cep.plan.row_patterns.borders import at_borders
from gpu_cep.plan.row_patterns.distances import fixed_distances
from gpu_cep.plan.row_patterns.lifting import lifted
from gpu_cep.plan.row_patterns.places import Placement, kept_total, row_columns
from gpu_cep.plan.row_patterns.row_plan import (
    Judged,
    JudgedCondition,
    MatchCondition,
    MatchConditions,
    NeighbourCondition,
    PlannedMeasure,
    RowPlan,
)
from gpu_cep.plan.settings import DEFAULT_SETTINGS, Settings

MOST_VARIABLES = 64
"""The most variables of a row pattern, each of which has a bit in the label of a row."""

_SEARCHED = ("count", "count_distinct", "sum", "min", "max")


@dataclass(frozen=True, slots=True)
class _Conjunct:
    """An operand of the top-level AND of what DEFINE says of a variable: as it is bound, placed, and written.

    `text` is all that DEFINE says, for errors.
    """

    variable: int
    bound: Bound
    placed: Bound
    written: str
    text: str


def plan_row_pattern(bound: BoundRowPattern, settings: Settings = DEFAULT_SETTINGS) -> RowPlan:
    """Return the plan of a row pattern; `settings` say where rows are labelled: on a card where ``engine="gpu"`` asks for one.

    Raises
    ------
    UnsupportedError
        The pattern has too many states or variables, or a condition reads what a search cannot keep; the message names it.
    """
    columns = row_columns(bound)
    defined, measured = Placement(bound, columns), Placement(bound, columns)
    automaton = row_automaton(bound.query.pattern)
    conjuncts = _lift(list(_conjuncts(bound, defined)), automaton, defined)
    measures = tuple(_measure(measured.place(each.expression)) for each in bound.measures)
    fixed = [fixed_distances(automaton, place) for place in defined.places]
    near = [_distances(each, fixed) for each in conjuncts]
    alone = [replace(each, placed=defined.here(each.placed)) for each, read in zip(conjuncts, near, strict=True) if read == {0}]
    beside = [each for each, read in zip(conjuncts, near, strict=True) if read not in (None, {0})]
    searched = Placement(bound, columns)
    reading = [replace(each, placed=searched.place(each.bound)) for each, read in zip(conjuncts, near, strict=True) if read is None]
    groups = _compared([*(each.placed for each in conjuncts), *(each.expression for each in measures)], defined, measured)
    layout = layout_of(_columns_of(each.placed for each in beside))
    return RowPlan(
        bound=bound,
        automaton=automaton,
        columns=columns,
        labels=_label_plan(bound, alone, groups, settings),
        neighbours=tuple(_neighbour(each, fixed, layout) for each in beside),
        layout=layout,
        search=_search(reading, searched) if reading else None,
        measures=measures,
        places=tuple(at_borders(automaton, place, at_end=bound.query.rows == "one") for place in measured.places),
        totals=tuple(measured.totals),
        judged=tuple(dict.fromkeys(_judged(each, read) for each, read in zip(conjuncts, near, strict=True))),
    )


def _conjuncts(bound: BoundRowPattern, placement: Placement) -> Iterator[_Conjunct]:
    """Yield the operands of the top-level ANDs of all conditions."""
    names = spellings(bound.query.pattern)
    if len(names) > MOST_VARIABLES:
        raise UnsupportedError(f"the pattern has {len(names)} variables; at most {MOST_VARIABLES} are supported")
    defined = {folded(each.name): each.condition for each in bound.query.definitions}
    conditions = [defined.get(name) for name in names]
    for variable, condition in bound.conditions:
        expression = conditions[variable]
        assert expression is not None, "what is bound was written"
        text = format_row_expression(expression)
        for operand, written in _operands(condition, expression):
            for conjunct in split_conjunction(operand):
                yield _Conjunct(variable, conjunct, placement.place(conjunct), written, text)


def _lift(conjuncts: Sequence[_Conjunct], automaton: RowAutomaton, placement: Placement) -> list[_Conjunct]:
    """Return the conjuncts with those placed at fixed distances that are such on every way, though one of their places is not."""
    fixed = [fixed_distances(automaton, place) for place in placement.places]
    satisfied: dict[int, list[Bound]] = {}
    for each in conjuncts:
        satisfied.setdefault(each.variable, []).append(each.placed)
    found = []
    for each in conjuncts:
        near = None if _distances(each, fixed) is not None else lifted(each.placed, each.variable, automaton, placement, satisfied)
        found.append(each if near is None else replace(each, placed=near))
    return found


def _operands(condition: Bound, expression: Expression) -> Iterator[tuple[Bound, str]]:
    """Yield the operands of the AND that a condition is, or the condition itself, each as it is bound and written."""
    if isinstance(expression, Connective) and expression.operator == "AND" and isinstance(condition, Operation):
        for bound, operand in zip(condition.arguments, expression.operands, strict=True):
            yield from _operands(bound, operand)
    else:
        yield condition, format_row_expression(expression)


def _judged(conjunct: _Conjunct, read: set[int] | None) -> JudgedCondition:
    how = Judged.MATCH if read is None else Judged.ROW if read == {0} else Judged.BESIDE
    return JudgedCondition(conjunct.variable, conjunct.written, how, tuple(sorted(read or ())))


def _distances(conjunct: _Conjunct, fixed: Sequence[Mapping[int, int]]) -> set[int] | None:
    """Return how far from the current row a condition reads; None if that depends on the match so far."""
    found = set()
    for leaf in leaves(conjunct.placed):
        distance = fixed[leaf.variable].get(conjunct.variable) if isinstance(leaf, Field) else None
        if distance is None:
            return None
        found.add(distance)
    return found or {0}


def _label_plan(
    bound: BoundRowPattern, conjuncts: Sequence[_Conjunct], groups: tuple[tuple[int, ...], ...], settings: Settings
) -> EventPlan:  # fmt: skip
    """Return a plan whose properties are the conditions on one row."""
    count = len(bound.variables) - 1 - len(bound.subsets)
    properties = tuple(
        Condition(_of_variable(each.placed, each.variable), ConditionKind.PROPERTY, (each.variable,), each.text) for each in conjuncts
    )
    # CLASSIFIER() is a text column like others where dictionaries are concerned
    classifier = ComputedExpression(Operation("classifier", (), STRING), (), "CLASSIFIER()")
    query = BoundPattern(
        schema=bound.schema,
        computed=(*bound.computed, classifier),
        variables=tuple(EventVariable(name, 1, 1, False) for name in bound.variables[:count]),
        conditions=properties,
        returns=(),
        window=None,
        timestamp=bound.order_by[0].column if bound.order_by else 0,
        partition_by=bound.partition_by,
        order_by=(),
        branches=(),
        strategy="strict_contiguity",
        ties="position",
    )
    own = Settings(engine=settings.engine, gpu_memory=settings.gpu_memory)
    return plan_properties(EventPlan(query=query, settings=own, contenders=(), strategy=query.strategy, dictionaries=groups))


def _of_variable(expression: Bound, variable: int) -> Bound:
    match expression:
        case Operation(arguments=arguments):
            return replace(expression, arguments=tuple(_of_variable(argument, variable) for argument in arguments))
        case Field():
            return replace(expression, variable=variable)
    return expression


def _neighbour(conjunct: _Conjunct, fixed: Sequence[Mapping[int, int]], layout: BankLayout) -> NeighbourCondition:
    _refuse_lists(conjunct)
    distance = {leaf: fixed[leaf.variable][conjunct.variable] for leaf in leaves(conjunct.placed) if isinstance(leaf, Field)}
    distances = tuple(dict.fromkeys(distance.values()))
    slots = {leaf: _slot(leaf, layout, distances.index(far)) for leaf, far in distance.items()}
    program = compile_program(conjunct.placed, lambda leaf: slots[leaf])  # type: ignore[index]
    return NeighbourCondition(conjunct.variable, program, distances, conjunct.text)


def _slot(leaf: Field, layout: BankLayout, role: int) -> Slot:
    floating = is_float(leaf.type)
    return Slot(floating, (layout.floats if floating else layout.ints).index(leaf.column), role)


def _search(conjuncts: Sequence[_Conjunct], placement: Placement) -> MatchConditions:
    """Return the conditions that read other rows of the match, ordered by variable.

    With them come the columns, places and totals that they read.
    """
    for each in conjuncts:
        _refuse_lists(each)
        for leaf in leaves(each.placed):
            if isinstance(leaf, Aggregation) and leaf.function not in _SEARCHED:
                _refuse(each, f"{leaf.function}()", "conditions read count, sum, avg, min and max, MEASURES read all aggregates")
    layout = layout_of(_columns_of(each.placed for each in conjuncts))
    kept = [kept_total(each, placement.totals) for each in placement.totals]
    totals = tuple(dict.fromkeys(kept))

    def place(leaf: Leaf) -> Slot:
        if isinstance(leaf, Aggregation):
            number = totals.index(kept[leaf.variable])
            may_fail = isinstance(totals[number].argument, Operation)
            return Slot(is_float(leaf.type), number, number, is_aggregate=True, may_fail=may_fail)
        assert isinstance(leaf, Field), "conditions read fields and aggregates"
        return _slot(leaf, layout, leaf.variable)

    in_order = sorted(conjuncts, key=lambda each: each.variable)
    conditions = tuple(MatchCondition(each.variable, compile_program(each.placed, place), each.text) for each in in_order)
    return MatchConditions(conditions, layout, tuple(placement.places), totals)


def _refuse_lists(conjunct: _Conjunct) -> None:
    if any(leaf.type.length for leaf in leaves(conjunct.placed)):
        _refuse(conjunct, "lists of numbers", "lists are read on one row in DEFINE, and anywhere in MEASURES")


def _refuse(conjunct: _Conjunct, what: str, supported: str) -> None:
    raise UnsupportedError([Diagnostic(f"DEFINE … AS {conjunct.text}: {what} of the rows mapped so far; {supported}")])


def _measure(placed: Bound) -> PlannedMeasure:
    return PlannedMeasure(placed, plan_return(placed))


def _columns_of(expressions: Iterable[Bound]) -> Iterator[tuple[int, DataType]]:
    return ((leaf.column, leaf.type) for expression in expressions for leaf in leaves(expression) if isinstance(leaf, Field))


def _compared(expressions: Iterable[Bound], *placements: Placement) -> tuple[tuple[int, ...], ...]:
    """Return the groups of text columns that expressions compare, or of which they take the least or greatest value."""
    arguments = [total.argument for each in placements for total in each.totals if total.argument is not None]
    groups = [group for expression in (*expressions, *arguments) for group in string_comparisons(expression)]
    groups += [(each.column,) for each in arguments if isinstance(each, Field) and each.type.kind is Kind.STRING]
    return merge_groups(groups)
