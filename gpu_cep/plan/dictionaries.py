"""Let text columns that are compared share one ordered dictionary (a rule of the planner).

Precondition: streams are split. Conditions that derived keys imply are not judged.
Rewrite: `dictionaries` become the groups of such columns, so that their codes compare as their
values do. Codes of a column's own dictionary suffice to tell its values apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from gpu_cep.analysis.bound_expressions import Aggregation, Bound
from gpu_cep.analysis.computed_columns import Computed, ComputedExpression
from gpu_cep.analysis.conditions import reads
from gpu_cep.analysis.keys import equated_column
from gpu_cep.analysis.types import Kind
from gpu_cep.plan.event_plan import PlanT
from gpu_cep.plan.programs import string_comparisons


def share_dictionaries(plan: PlanT) -> PlanT:
    """Return the plan with the groups of text columns that expressions compare with each other.

    Examples
    --------
    >>> before = draft("PATTERN SEQ(a, b) WHERE a.s < b.type")
    >>> before.dictionaries
    ()
    >>> after = share_dictionaries(before)
    >>> [[after.query.column_name(column) for column in group] for group in after.dictionaries]
    [['type', 's']]
    """
    query = plan.query
    judged = (condition.expression for condition in query.conditions if equated_column(condition) not in plan.derived)
    shown = [
        group for expression in (*(item.expression for item in query.returns), *query.ranked) for group in string_comparisons(expression)
    ]
    return replace(plan, dictionaries=merge_groups([*_compared(judged), *shown, *compared_ahead(query.computed)]))


def compared_ahead(computed: Iterable[Computed]) -> tuple[tuple[int, ...], ...]:
    """Return the groups of text columns that computed columns compare."""
    expressions = (each.expression for each in computed if isinstance(each, ComputedExpression))
    return merge_groups([group for expression in expressions for group in string_comparisons(expression)])


def _compared(expressions: Iterable[Bound]) -> Iterator[tuple[int, ...]]:
    """Yield the groups of text columns that expressions compare.

    A column whose least or greatest value is sought is a group, too.
    """
    for expression in expressions:
        yield from string_comparisons(expression)
        for read in reads(expression):
            if isinstance(read, Aggregation) and read.type.kind is Kind.STRING and read.column is not None:
                yield (read.column,)


def merge_groups(groups: list[tuple[int, ...]]) -> tuple[tuple[int, ...], ...]:
    """Return the groups, with those that share a column merged."""
    merged: list[set[int]] = []
    for group in groups:
        touching = [other for other in merged if other & set(group)]
        merged = [other for other in merged if not other & set(group)] + [set(group).union(*touching)]
    return tuple(tuple(sorted(group)) for group in merged)
