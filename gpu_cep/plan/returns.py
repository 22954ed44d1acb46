"""Turn computed items of RETURN into programs over one row per match (a rule of the planner).

Precondition: the item is an operation, or a constant that is not text.
Rewrite: the fields and aggregates that it reads become columns of a bank, at role 0.
"""

from __future__ import annotations

from dataclasses import replace

from gpu_cep.analysis.bound import Bound, Constant, Operation
from gpu_cep.plan.event_plan import PlanT, ReturnProgram
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


def plan_return(expression: Bound) -> ReturnProgram | None:
    """Return the program of an item of RETURN, or None if its values are read as they stand.

    Raises
    ------
    UnsupportedError
        No program can compute it.
    """
    if not isinstance(expression, Operation) and not (isinstance(expression, Constant) and not isinstance(expression.value, str)):
        return None
    found = leaves(expression)
    vectors = tuple(leaf for leaf in found if leaf.type.length)
    floats = tuple(leaf for leaf in found if is_float(leaf.type))
    ints = tuple(leaf for leaf in found if leaf not in floats + vectors)

    def place(leaf: Leaf) -> Slot:
        if leaf in vectors:
            return Slot(False, vectors.index(leaf), 0, is_vector=True)
        return Slot(is_float(leaf.type), (floats if is_float(leaf.type) else ints).index(leaf), 0)

    return ReturnProgram(ints, floats, vectors, compile_program(expression, place))
