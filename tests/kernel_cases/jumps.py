"""Conditions by which a search can jump, and jump tables for the kernels' tests, built by hand."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import NamedTuple

import numpy as np

from gpu_cep_kernels.automaton.jump_indexes import first_state, jump_indexes, new_bounds
from gpu_cep_kernels.automaton.jump_indexes import no_jumps as without_indexes
from gpu_cep_kernels.automaton.jumps import Jumps, JumpTable
from gpu_cep_kernels.rules.scalars import COMPARISONS
from gpu_cep_kernels.rules.tables import BY_FLOATS, BY_INTS, BY_PROGRAM, CONSECUTIVELY, SINGLY, ColumnBank
from tests.kernel_cases.inputs import Array, places_of
from tests.kernel_cases.tables import Condition, Instruction, Part, program_table


class Jump(NamedTuple):
    """The new event of a variable is compared with what a condition's program leaves in a register."""

    variable: int
    condition: int
    comparison: str
    floating: bool
    column: int
    register: int
    key: int
    added: int = -1
    sign: int = 1
    beside: int = -1


def _comparison(name: str, left: int, right: int) -> tuple[Instruction, ...]:
    """A program that compares a column at role 0 with one at role 1."""
    load = f"load_{name[3:]}"
    return ((load, 0, left, 0), (load, 1, right, 1), (name, 2, 0, 1))


_BEYOND: tuple[Instruction, ...] = (
    ("load_float", 0, 0, 0),
    ("const_float", 1, 0, 0),
    ("add_float", 2, 0, 1),
    ("load_float", 3, 1, 1),
    ("lt_float", 4, 2, 3),
)
_AB = (Part(0, 0, -1, SINGLY), Part(1, 1, -1, SINGLY))
_AC = (Part(0, 0, -1, SINGLY), Part(2, 1, -1, SINGLY))
# On variables a, b+, c: a.i <= b.j, b's x never falls, a.i = c.i, a.x = c.y and a.x + 0.5 < c.y.
JUMPING = (
    Condition(_AB, BY_INTS, "le", (0, 0), (1, 1), code=_comparison("le_int", 0, 1)),
    Condition((Part(1, 1, 0, CONSECUTIVELY),), BY_FLOATS, "le", (0, 0), (0, 1), code=_comparison("le_float", 0, 0)),
    Condition(_AC, BY_INTS, "eq", (0, 0), (0, 1), code=_comparison("eq_int", 0, 0)),
    Condition(_AC, BY_FLOATS, "eq", (0, 0), (1, 1), code=_comparison("eq_float", 0, 1)),
    Condition(_AC, BY_PROGRAM, code=_BEYOND),
)
JUMPING_PROGRAMS = program_table([*chain(*(condition.code for condition in JUMPING))], float_constants=[0.5])
_JUMPS = (
    Jump(1, 0, "ge", False, 1, 0, 0),
    Jump(1, 1, "ge", True, 0, 0, 0),
    Jump(2, 2, "eq", False, 0, 0, 0),
    Jump(2, 3, "eq", True, 1, 0, 1),
    Jump(2, 4, "gt", True, 1, 0, 1, added=1),
)


def jump_table(jumps: tuple[Jump, ...]) -> JumpTable:
    """The table of these jumps, in the order of their variables."""
    return JumpTable(
        first=places_of(np.bincount(_ints(jump.variable for jump in jumps), minlength=65)),
        condition=_ints(jump.condition for jump in jumps),
        comparison=_ints(COMPARISONS[jump.comparison] for jump in jumps),
        floating=np.array([jump.floating for jump in jumps], np.bool_),
        column=_ints(jump.column for jump in jumps),
        register=_ints(jump.register for jump in jumps),
        added=_ints(jump.added for jump in jumps),
        sign=_ints(jump.sign for jump in jumps),
        beside=_ints(jump.beside for jump in jumps),
        key=_ints(jump.key for jump in jumps),
    )


def _ints(numbers: Iterable[int]) -> Array:
    return np.array([*numbers], np.int64)


def no_jumps() -> Jumps:
    """No condition by which to jump."""
    return without_indexes(jump_table(()))


def jumps(bank: ColumnBank, occurrence: Array, patience: int = 0) -> Jumps:
    """Jumps by the conditions above."""
    table = jump_table(_JUMPS)
    state, indexes = (
        first_state(table, bank, 0, occurrence.shape[1] - 2),
        jump_indexes(table._replace(first=table.first[:4]), bank, 0, occurrence),
    )
    return Jumps(table, *indexes, new_bounds(state), patience)
