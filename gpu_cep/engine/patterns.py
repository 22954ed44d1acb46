"""The plan's pattern and conditions as the tables that kernels read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

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
    minimal: int
    fewest: int


def matcher_tables(plan: Plan, tabulate: Tabulate) -> MatcherTables:
    """The tables of the plan's one branch."""
    query = plan.query
    (branch,) = query.branches
    variables = [query.variables[v] for v in branch.variables]
    precedes = _relation(branch.before)
    # what precedes v, but nothing else that does
    direct = precedes & ~(precedes.astype(np.float32) @ precedes.astype(np.float32) > 0)
    programs, spans = assemble([condition.program for condition in plan.conditions], tabulate)
    return MatcherTables(
        pattern=PatternTable(
            order=np.argsort(precedes.sum(axis=0), kind="stable").astype(np.int64),
            precedes=precedes,
            direct_first=_offsets(direct.sum(axis=0)),
            direct=np.nonzero(direct.T)[1].astype(np.uint16),
            following_first=_offsets(direct.sum(axis=1)),
            following=np.nonzero(direct)[1].astype(np.uint16),
            minimum=np.array([variable.minimum for variable in variables], np.int64),
            maximum=np.array([UNBOUNDED if variable.maximum is None else variable.maximum for variable in variables], np.int64),
        ),
        conditions=_condition_table(plan.conditions, spans, [variable.maximum == 1 for variable in variables]),
        programs=programs,
        minimal=sum(1 << v for v, mask in enumerate(branch.before) if mask == 0),
        fewest=sum(variable.minimum for variable in variables),
    )


def _relation(before: Sequence[int]) -> npt.NDArray[np.bool_]:
    """[u, v]: whether ``before[v]``, a mask of bits, has that of u."""
    size = -(-len(before) // 8)
    masks = np.frombuffer(b"".join(mask.to_bytes(size, "little") for mask in before), np.uint8).reshape(-1, size)
    bits = np.unpackbits(masks, axis=1, count=len(before), bitorder="little")
    return np.ascontiguousarray(bits.T).astype(np.bool_)


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


def _offsets(sizes: Sequence[int] | npt.NDArray[np.int64]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
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
