"""Rule: conditions between bindings become programs over roles.

Precondition: a PAIR, CONSECUTIVE or WITHIN condition. Rewrite: each variable
it reads becomes a part with a role for its current event and, where read, one
for the event bound before. Equalities that partitioning by a derived key
makes redundant are dropped.
"""

from __future__ import annotations

from gpu_cep.analysis.bound import BoundQuery, Condition, ConditionKind, Field, Place
from gpu_cep.plan.plan import BankLayout, Part, PlannedCondition
from gpu_cep.plan.programs import Leaf, Slot, compile_program, is_float, leaves, mapped, string_comparisons
from gpu_cep.plan.properties import slot_of


def plan_relationships(query: BoundQuery, derived: tuple[int, ...]) -> tuple[tuple[PlannedCondition, ...], BankLayout]:
    """The conditions between bindings and the bank they read."""
    kept = [c for c in query.conditions if c.kind is not ConditionKind.PROPERTY and (c.key is None or c.key not in derived)]
    fields = [leaf for condition in kept for leaf in leaves(condition.expression) if isinstance(leaf, Field)]
    layout = BankLayout(
        ints=tuple(dict.fromkeys(field.column for field in fields if not is_float(field.type))),
        floats=tuple(dict.fromkeys(field.column for field in fields if is_float(field.type))),
    )
    return tuple(_planned(condition, layout) for condition in kept), layout


def _planned(condition: Condition, layout: BankLayout) -> PlannedCondition:
    roles: dict[tuple[int, Place], int] = {}
    slots: dict[Leaf, Slot] = {}
    for leaf in leaves(condition.expression):
        if not isinstance(leaf, Field):
            raise TypeError(f"a condition cannot read {type(leaf).__name__}")
        role = roles.setdefault((leaf.variable, leaf.place), len(roles))
        slots[leaf] = slot_of(leaf, layout, role)
    parts = tuple(
        Part(
            variable=variable,
            each=roles.get((variable, Place.EACH), -1),
            previous=roles.get((variable, Place.PREVIOUS), -1),
            pairwise=condition.kind is ConditionKind.WITHIN,
        )
        for variable in condition.variables
    )
    needs = sum(1 << variable for variable in condition.variables)
    program = compile_program(condition.expression, mapped(slots))
    return PlannedCondition(parts, needs, program, len(roles), condition.text)


def plan_dictionaries(query: BoundQuery) -> tuple[tuple[int, ...], ...]:
    """The groups of text columns that some expression compares with each other: each needs one ordered dictionary."""
    expressions = [condition.expression for condition in query.conditions] + [item.expression for item in query.returns]
    return _joined([group for expression in expressions for group in string_comparisons(expression)])


def _joined(groups: list[tuple[int, ...]]) -> tuple[tuple[int, ...], ...]:
    """The groups, merged where they share a column."""
    merged: list[set[int]] = []
    for group in groups:
        touching = [other for other in merged if other & set(group)]
        merged = [other for other in merged if not other & set(group)] + [set(group).union(*touching)]
    return tuple(tuple(sorted(group)) for group in merged)
