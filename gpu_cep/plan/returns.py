"""Turn computed items of RETURN into programs over one row per match (a rule of the planner).

Precondition: the item is an operation, or a constant that is not text.
Rewrite: the fields and aggregates that it reads become columns of a bank, at role 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from gpu_cep.analysis.bound_expressions import Bound, Constant, Constants, Operation, split_case
from gpu_cep.analysis.types import INTEGER, Kind
from gpu_cep.plan.event_plan import EventPlan, PlanT, ReturnProgram
from gpu_cep.plan.programs import Leaf, Slot, compile_program, is_float, leaves


def plan_returns(plan: PlanT) -> PlanT:
    """Return the plan with a program for each item of RETURN that is computed.

    Examples
    --------
    >>> before = draft("PATTERN SEQ(a, b) RETURN a.x, b.x - a.x AS rise")
    >>> before.returns
    ()
    >>> [program and [step[0] for step in program.program.code] for program in plan_returns(before).returns]
    [None, ['load_int', 'load_int', 'sub_int']]
    """
    return replace(plan, returns=tuple(plan_return(item.expression) for item in plan.query.returns))


def plan_ranking(plan: EventPlan) -> EventPlan:
    """Return the plan with a program for the expression by which matches are kept, if it is computed.

    Examples
    --------
    >>> plan_ranking(draft("PATTERN SEQ(a, b)")).ranking
    """
    ranking = plan.query.ranking
    return plan if ranking is None else replace(plan, ranking=plan_return(ranking.expression))


def plan_return(expression: Bound) -> ReturnProgram | None:
    """Return the program of an item of RETURN, or None if its values are read as they stand.

    Raises
    ------
    UnsupportedError
        No program can compute it.
    """
    if not isinstance(expression, Operation) and not (isinstance(expression, Constant) and not isinstance(expression.value, str)):
        return None
    expression, texts = _number_texts(expression)
    found = leaves(expression)
    vectors = tuple(leaf for leaf in found if leaf.type.length)
    floats = tuple(leaf for leaf in found if is_float(leaf.type))
    ints = tuple(leaf for leaf in found if leaf not in floats + vectors)

    def place(leaf: Leaf) -> Slot:
        if leaf in vectors:
            return Slot(is_float=False, column=vectors.index(leaf), role=0, is_vector=True)
        return Slot(is_float(leaf.type), (floats if is_float(leaf.type) else ints).index(leaf), 0)

    return ReturnProgram(ints, floats, vectors, compile_program(expression, place), texts)


def _number_texts(expression: Bound) -> tuple[Bound, tuple[Constant | Leaf, ...]]:
    """Return a CASE of texts as a CASE of their numbers, and the texts; another expression as it is, and none."""
    if expression.type.kind is not Kind.STRING:
        return expression, ()
    texts = tuple(dict.fromkeys(_texts(expression)))
    return _with_numbers(expression, {text: number for number, text in enumerate(texts)}), texts


def _texts(expression: Bound) -> Iterator[Constant | Leaf]:
    """Yield the texts among which a CASE chooses, NULL left out."""
    match expression:
        case Operation():
            for value in split_case(expression)[1]:
                yield from _texts(value)
        case Constant(value=None) | Constants():
            return
        case _:
            yield expression


def _with_numbers(expression: Bound, numbers: Mapping[Bound, int]) -> Bound:
    match expression:
        case Operation():
            conditions, values = split_case(expression)
            return Operation("case", (*conditions, *(_with_numbers(value, numbers) for value in values)), INTEGER)
        case Constant(value=None):
            return Constant(None, INTEGER)
    return Constant(numbers[expression], INTEGER)
