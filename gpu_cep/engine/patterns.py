"""The plan's pattern and conditions as the tables that kernels read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

import numpy as np

from gpu_cep.engine.programs import Tabulate, assemble
from gpu_cep.plan.plan import Part, Plan, PlannedCondition
from gpu_cep.plan.programs import Instruction
from gpu_cep_kernels.rules import COMPARISONS, UNBOUNDED
from gpu_cep_kernels.tables import (
    BY_FLOATS,
    BY_INTS,
    BY_PROGRAM,
    CONSECUTIVELY,
    PAIRWISE,
    SINGLY,
    ConditionTable,
    PatternTable,
    ProgramTable,
)


@dataclass(frozen=True, slots=True)
class MatcherTables:
    """A pattern as kernels see it.

    `minimal` is the label mask of the variables a match can start with,
    `fewest` the least number of events in a match.
    """

    pattern: PatternTable
    conditions: ConditionTable
    programs: ProgramTable
    minimal: np.uint64
    fewest: int


def matcher_tables(plan: Plan, tabulate: Tabulate) -> MatcherTables:
    """The tables of the plan's one branch."""
    query = plan.query
    (branch,) = query.branches
    before = branch.before
    variables = [query.variables[v] for v in branch.variables]
    behind = _transposed(before)
    direct = [mask & ~_union([before[u] for u in members(mask)]) for mask in before]
    following = _transposed(direct)
    programs, spans = assemble([condition.program for condition in plan.conditions], tabulate)
    return MatcherTables(
        pattern=PatternTable(
            order=np.argsort([mask.bit_count() for mask in before], kind="stable").astype(np.int64),
            before=np.array(before, np.uint64),
            behind=np.array(behind, np.uint64),
            direct_first=_offsets([mask.bit_count() for mask in direct]),
            direct=np.array([u for mask in direct for u in members(mask)], np.int64),
            following_first=_offsets([mask.bit_count() for mask in following]),
            following=np.array([u for mask in following for u in members(mask)], np.int64),
            minimum=np.array([variable.minimum for variable in variables], np.int64),
            maximum=np.array([UNBOUNDED if variable.maximum is None else variable.maximum for variable in variables], np.int64),
            everyone=np.uint64((1 << len(variables)) - 1),
        ),
        conditions=_condition_table(plan.conditions, spans, [variable.maximum == 1 for variable in variables]),
        programs=programs,
        minimal=np.uint64(sum(1 << v for v, mask in enumerate(before) if mask == 0)),
        fewest=sum(variable.minimum for variable in variables),
    )


def members(mask: int) -> list[int]:
    """The variables in a label mask."""
    return [v for v in range(mask.bit_length()) if mask >> v & 1]


def _union(masks: Sequence[int]) -> int:
    return reduce(or_, masks, 0)


def _transposed(masks: Sequence[int]) -> list[int]:
    """Of a relation given as "mask of those before each" the "mask of those behind each"."""
    return [sum(1 << w for w, mask in enumerate(masks) if mask >> v & 1) for v in range(len(masks))]


def _condition_table(conditions: Sequence[PlannedCondition], spans: Sequence[tuple[int, int]], single: Sequence[bool]) -> ConditionTable:
    listed = [[c for c, condition in enumerate(conditions) if condition.needs >> v & 1] for v in range(len(single))]
    parts = [part for condition in conditions for part in condition.parts]
    compared = [_single_comparison(condition) for condition in conditions]
    columns = np.array([comparison or (BY_PROGRAM, 0, 0, 0, 0, 0) for comparison in compared], np.int64).reshape(-1, 6)
    pairs = [_single_pair(condition, comparison, single) for condition, comparison in zip(conditions, compared, strict=True)]
    related = np.array(pairs, np.int64).reshape(-1, 2)
    return ConditionTable(
        first=_offsets([len(own) for own in listed]),
        listed=np.array([c for own in listed for c in own], np.int64),
        needs=np.array([condition.needs for condition in conditions], np.uint64),
        part_first=_offsets([len(condition.parts) for condition in conditions]),
        variable=np.array([part.variable for part in parts], np.int64),
        each=np.array([part.each for part in parts], np.int64),
        previous=np.array([part.previous for part in parts], np.int64),
        spread=np.array([_spread(part) for part in parts], np.int64),
        means=columns[:, 0].copy(),
        comparison=columns[:, 1].copy(),
        left_column=columns[:, 2].copy(),
        left_role=columns[:, 3].copy(),
        right_column=columns[:, 4].copy(),
        right_role=columns[:, 5].copy(),
        left_variable=related[:, 0].copy(),
        right_variable=related[:, 1].copy(),
        code_first=np.array([first for first, _ in spans], np.int64),
        code_last=np.array([last for _, last in spans], np.int64),
        result=np.array([condition.program.result for condition in conditions], np.int64),
        roles=max((condition.roles for condition in conditions), default=1),
    )


def _offsets(sizes: Sequence[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64)


def _spread(part: Part) -> int:
    if part.pairwise:
        return PAIRWISE
    return CONSECUTIVELY if part.previous >= 0 else SINGLY


Comparison = tuple[int, int, int, int, int, int]


def _single_comparison(condition: PlannedCondition) -> Comparison | None:
    """(means, comparison, left column and role, right column and role) of a program that only compares two loaded columns."""
    code: tuple[Instruction, ...] = condition.program.code
    if len(code) != 3:
        return None
    (load_left, left, left_column, left_role), (load_right, right, right_column, right_role), (name, _, first, second) = code
    comparison, _, suffix = name.partition("_")
    kinds = {("load_int", "load_int", "int"): BY_INTS, ("load_float", "load_float", "float"): BY_FLOATS}
    means = kinds.get((load_left, load_right, suffix))
    if means is None or comparison not in COMPARISONS or (first, second) != (left, right):
        return None
    return means, COMPARISONS[comparison], left_column, left_role, right_column, right_role


def _single_pair(condition: PlannedCondition, comparison: Comparison | None, single: Sequence[bool]) -> tuple[int, int]:
    """The two single variables whose events a comparison compares; −1 twice if it is not of that kind."""
    by_role = {part.each: part.variable for part in condition.parts if part.previous < 0 and single[part.variable]}
    if comparison is None or len(by_role) < 2:
        return -1, -1
    _, _, _, left_role, _, right_role = comparison
    return by_role[left_role], by_role[right_role]
