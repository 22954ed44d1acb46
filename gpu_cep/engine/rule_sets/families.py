"""Find plans that differ only in the constants with which their properties compare columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from gpu_cep.analysis.bound import BoundPattern, Condition, ConditionKind
from gpu_cep.analysis.bound_expressions import Bound, Field
from gpu_cep.analysis.types import Schema
from gpu_cep.engine.rule_sets.bound_values import Values, tested_values
from gpu_cep.plan.event_plan import EventPlan
from gpu_cep.plan.properties import comparison_of, property_conjuncts
from gpu_cep.plan.settings import Settings

# The comparison of a slot whose constants are a set of values.
ONE_OF = "in"
# Labels of events have at most so many variables.
_MOST_VARIABLES = 63
# A plan that compares with more constants is in no family: each of them is looked at.
_MOST_VALUES = 256
_NO_COLUMNS = Schema(())


@dataclass(frozen=True, slots=True)
class PropertySlot:
    """A property ``column φ constant`` of the variables in `bits`; each plan of a family has a constant of its own."""

    column: int
    comparison: str
    bits: int


@dataclass(frozen=True, slots=True)
class Family:
    """Plans that are equal but for the constants of their properties.

    `plan`: that of the first member. `column`: the column in which each variable must have one of some values.
    `slots`: the properties with constants. `fixed`: the other properties, each with the bits of its variables.
    `members`: the numbers of the plans. `constants`: those of each member, one for each slot; a set for :data:`ONE_OF`.
    """

    plan: EventPlan
    column: int
    slots: tuple[PropertySlot, ...]
    fixed: tuple[tuple[int, Bound], ...]
    members: tuple[int, ...]
    constants: tuple[tuple[Values | int | float, ...], ...]

    def values(self, member: int) -> Iterator[tuple[int, Values]]:
        """Yield the bits of each slot with a set of values, and the values that a member has there."""
        for slot, constant in zip(self.slots, self.constants[member], strict=True):
            if isinstance(constant, frozenset):
                yield slot.bits, constant


@dataclass(frozen=True, slots=True)
class _Form:
    """What all plans of a family have in common."""

    slots: tuple[PropertySlot, ...]
    fixed: tuple[tuple[int, Bound], ...]
    query: BoundPattern
    settings: Settings


def find_families(plans: Sequence[EventPlan], column: int) -> list[Family]:
    """Return the families of plans, all variables of which must have one of some values in `column`.

    A family may have one member. Plans that are in no family are left out.
    """
    found: dict[_Form, tuple[list[int], list[tuple[Values | int | float, ...]]]] = {}
    for number, plan in enumerate(plans):
        slots, fixed, constants = _take_apart(plan, column)
        # it takes long to hash, and is left out of the form
        assert plan.query.schema == plans[0].query.schema, "all plans are over the same events"
        if len(plan.query.variables) > _MOST_VARIABLES or _count_values(constants) > _MOST_VALUES or plan.query.computed:
            continue
        form = _Form(tuple(slots), tuple(fixed), _without_properties(plan.query), plan.settings)
        members, theirs = found.setdefault(form, ([], []))
        members.append(number)
        theirs.append(tuple(constants))
    return [
        Family(plans[members[0]], column, form.slots, form.fixed, tuple(members), tuple(theirs))
        for form, (members, theirs) in found.items()
    ]


def _take_apart(plan: EventPlan, column: int) -> tuple[list[PropertySlot], list[tuple[int, Bound]], list[Values | int | float]]:
    """Return the slots of a plan's properties, the properties without a slot, and the constants of the slots."""
    slots, fixed, constants = [], [], []
    for _, conjunct, bits in property_conjuncts(plan.query):
        found = _slot_of(conjunct, bits, column)
        if found is None:
            fixed.append((bits, conjunct))
        else:
            slots.append(found[0])
            constants.append(found[1])
    return slots, fixed, constants


def _slot_of(conjunct: Bound, bits: int, column: int) -> tuple[PropertySlot, Values | int | float] | None:
    """Return the slot of a property, and its constant; None if it has none."""
    for tested, values in tested_values(conjunct):
        if tested == column:
            return PropertySlot(column, ONE_OF, bits), values
    comparison = None if isinstance(conjunct, Field) else comparison_of(conjunct)
    if comparison is None:
        return None
    compared, operator, constant = comparison
    return PropertySlot(compared, operator, bits), constant


def _count_values(constants: Iterable[Values | int | float]) -> int:
    return sum(len(each) for each in constants if isinstance(each, frozenset))


def _without_properties(query: BoundPattern) -> BoundPattern:
    """Return the query without its properties and columns, and without what depends on how it is written."""
    branches = tuple(replace(branch, conditions=_anonymous(branch.conditions)) for branch in query.branches)
    return replace(query, schema=_NO_COLUMNS, conditions=_anonymous(query.conditions), branches=branches)


def _anonymous(conditions: Iterable[Condition]) -> tuple[Condition, ...]:
    """Return the conditions that relate events, without their texts."""
    return tuple(replace(each, text="", span=None) for each in conditions if each.kind is not ConditionKind.PROPERTY)
