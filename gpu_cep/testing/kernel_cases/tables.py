"""Pattern, condition and program tables for the kernels' tests, built by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu_cep_kernels.expressions import CODE
from gpu_cep_kernels.rules import COMPARISONS, UNBOUNDED
from gpu_cep_kernels.tables import BY_FLOATS, BY_INTS, BY_PROGRAM, CONSECUTIVELY, SINGLY, ConditionTable, PatternTable, ProgramTable

Array = npt.NDArray[Any]
Instruction = tuple[str, int, int, int]


def pattern_table(sizes: Sequence[int], quantifiers: Sequence[tuple[int, int | None]]) -> PatternTable:
    """⟨B1, …, Bk⟩: the size of each set, and (minimum, maximum) of each variable in turn; the maximum may be None."""
    level = [place for place, size in enumerate(sizes) for _ in range(size)]
    variables = range(len(level))
    direct = [[u for u in variables if level[u] == level[v] - 1] for v in variables]
    following = [[w for w in variables if v in direct[w]] for v in variables]
    return PatternTable(
        order=np.arange(len(level)),
        precedes=np.array([[level[u] < level[v] for v in variables] for u in variables], np.bool_),
        direct_first=_offsets(direct),
        direct=np.array([*chain(*direct)], np.uint16),
        following_first=_offsets(following),
        following=np.array([*chain(*following)], np.uint16),
        minimum=np.array([minimum for minimum, _ in quantifiers], np.int64),
        maximum=np.array([UNBOUNDED if maximum is None else maximum for _, maximum in quantifiers], np.int64),
    )


def _offsets(lists: Sequence[Sequence[Any]]) -> Array:
    return np.array([0, *accumulate(map(len, lists))], np.int64)


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition between bindings: its parts, and a comparison of two columns (column, role) or a program."""

    parts: tuple[tuple[int, int, int, int], ...]  # (variable, role of the current event, of the one before it, spread)
    means: int
    comparison: str = "eq"
    left: tuple[int, int] = (0, 0)
    right: tuple[int, int] = (0, 0)
    pair: tuple[int, int] = (-1, -1)  # the two single variables that are compared
    code: tuple[Instruction, ...] = ()

    def reads(self, v: int) -> bool:
        """Whether v is one of its variables."""
        return any(variable == v for variable, *_ in self.parts)


def program_table(code: Sequence[Instruction], int_constants: Sequence[int] = (), float_constants: Sequence[float] = ()) -> ProgramTable:
    """One or more programs in a row; text predicates look up TRUE, FALSE and NULL."""
    return ProgramTable(
        code=np.array([(CODE[name], *operands) for name, *operands in code], np.int64).reshape(-1, 4),
        int_constants=np.array(int_constants, np.int64),
        float_constants=np.array(float_constants, np.float64),
        lookups=np.array([1, 0, 2], np.uint8),
        registers=1 + max((target for _, target, _, _ in code), default=0),
    )


def operation(name: str) -> ProgramTable:
    """A program that applies one operation to two columns of its type, or to a constant, and returns its result."""
    kind = "float" if name.endswith("_float") else "int"
    loads: tuple[Instruction, ...] = ((f"load_{kind}", 0, 0, 0), (f"load_{kind}", 1, 1, 0))
    if name in ("and", "or", "not"):
        loads += (("gt_int", 0, 0, 1), ("is_null_int", 2, 0, 0), ("lt_int", 1, 1, 2))
    if name == "lookup":
        loads += (("is_null_int", 0, 0, 0),)
    second = 0 if name.startswith("load") else 1
    return program_table((*loads, (name, 3, 0, second)), int_constants=[3, UNBOUNDED], float_constants=[0.5, -0.0])


def condition_table(variables: int, conditions: Sequence[Condition]) -> ConditionTable:
    """The table of these conditions, and their programs in turn."""
    listed = [[c for c, condition in enumerate(conditions) if condition.reads(v)] for v in range(variables)]
    parts = _columns([part for condition in conditions for part in condition.parts], 4)
    code_first = _offsets([condition.code for condition in conditions])
    left, right, pair = (_columns([getattr(c, name) for c in conditions], 2) for name in ("left", "right", "pair"))
    return ConditionTable(
        first=_offsets(listed),
        listed=np.array([*chain(*listed)], np.int64),
        part_first=_offsets([condition.parts for condition in conditions]),
        variable=parts[0],
        each=parts[1],
        previous=parts[2],
        spread=parts[3],
        means=np.array([condition.means for condition in conditions], np.int64),
        comparison=np.array([COMPARISONS[condition.comparison] for condition in conditions], np.int64),
        left_column=left[0],
        left_role=left[1],
        right_column=right[0],
        right_role=right[1],
        left_variable=pair[0],
        right_variable=pair[1],
        code_first=code_first[:-1].copy(),
        code_last=code_first[1:].copy(),
        result=np.array([condition.code[-1][1] if condition.code else 0 for condition in conditions], np.int64),
        roles=2,
    )


def _columns(rows: Sequence[Sequence[int]], width: int) -> list[Array]:
    return [column.copy() for column in np.array(rows, np.int64).reshape(-1, width).T]


# a.x * c.y + 0.5 > c.x: a product and a sum that must not be contracted.
_PROGRAM: tuple[Instruction, ...] = (
    ("load_float", 0, 0, 0),
    ("load_float", 1, 1, 1),
    ("mul_float", 2, 0, 1),
    ("const_float", 3, 0, 0),
    ("add_float", 2, 2, 3),
    ("load_float", 3, 0, 1),
    ("gt_float", 4, 2, 3),
)

# On variables a, b+, c: a.i < b.j, b's x never falls, and the program.
QUANTIFIED = (
    Condition(((0, 0, -1, SINGLY), (1, 1, -1, SINGLY)), BY_INTS, "lt", (0, 0), (1, 1)),
    Condition(((1, 0, 1, CONSECUTIVELY),), BY_FLOATS, "le", (0, 1), (0, 0)),
    Condition(((0, 0, -1, SINGLY), (2, 1, -1, SINGLY)), BY_PROGRAM, code=_PROGRAM),
)
# On single variables a, b, c: a.i < b.j, b.x <= c.y, and the program.
SINGLE = (
    Condition(((0, 0, -1, SINGLY), (1, 1, -1, SINGLY)), BY_INTS, "lt", (0, 0), (1, 1), pair=(0, 1)),
    Condition(((1, 0, -1, SINGLY), (2, 1, -1, SINGLY)), BY_FLOATS, "le", (0, 0), (1, 1), pair=(1, 2)),
    Condition(((0, 0, -1, SINGLY), (2, 1, -1, SINGLY)), BY_PROGRAM, code=_PROGRAM),
)
PROGRAMS = program_table(_PROGRAM, float_constants=[0.5])
