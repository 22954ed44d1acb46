"""Choose the conditions by which the automaton can jump, and index a batch's events for them.

A jump skips events that fail a condition, by a zone map or by buckets of equal values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock

import numpy as np

from gpu_cep.analysis.operators import MIRRORED
from gpu_cep.engine.lowering.lists import offsets
from gpu_cep.plan.event_plan import Part, PlannedBranch, PlannedCondition
from gpu_cep.plan.programs import Program
from gpu_cep_kernels.automaton.jump_indexes import first_state, jump_indexes, new_bounds, no_jumps
from gpu_cep_kernels.automaton.jumps import Jumps, JumpTable, ValueBuckets, ZoneMaps
from gpu_cep_kernels.rules.scalars import COMPARISONS
from gpu_cep_kernels.rules.tables import Bytes, ColumnBank, Ints, Places

# Events that a search passes over one by one before it jumps, and on average if indexes are to be made: fewer cost no more than a
# jump. Also the searches in a row before one looks ahead.
PATIENCE = 16
# Indexes are made once so many steps per event of the batch have been wasted: these have then cost about as much as the indexes.
WASTED_PER_EVENT = 1.0

_LOADS = {"load_int": False, "load_float": True}


@dataclass(frozen=True, slots=True)
class _Jump:
    """A condition as ``new φ bound``.

    `column` is the column of the new event. `register` holds the value computed from the bound
    events. The value of register `added`, if it is not -1, is added to it or subtracted, as `sign`
    says. `beside` is the column of integers that the condition's program adds to the new event's
    value, or subtracts; -1 if there is none.
    """

    condition: int
    comparison: str
    floating: bool
    column: int
    register: int
    added: int = -1
    sign: int = 1
    beside: int = -1

    @property
    def direction(self) -> str:
        """Return the values that the index must find: ``equal``, ``greatest`` or ``least``."""
        return {"eq": "equal", "gt": "greatest", "ge": "greatest"}.get(self.comparison, "least")


def jump_table(branch: PlannedBranch, final: Ints) -> JumpTable:
    """Return the jumps of a branch's positive variables; those by equality come first.

    `final` are the conditions that only the end of a match decides; they allow no jump.
    """
    listed = [_jumps_of(v, branch, set(final.tolist())) for v in range(len(branch.before))]
    jumps = [(v, each) for v, own in enumerate(listed) for each in own]
    return JumpTable(
        first=offsets([len(own) for own in listed]),
        condition=np.array([each.condition for _, each in jumps], np.int64),
        comparison=np.array([COMPARISONS[each.comparison] for _, each in jumps], np.int64),
        floating=np.array([each.floating for _, each in jumps], np.bool_),
        column=np.array([each.column for _, each in jumps], np.int64),
        register=np.array([each.register for _, each in jumps], np.int64),
        added=np.array([each.added for _, each in jumps], np.int64),
        sign=np.array([each.sign for _, each in jumps], np.int64),
        beside=np.array([each.beside for _, each in jumps], np.int64),
        key=np.array(_keys(jumps), np.int64),
    )


def _keys(jumps: Sequence[tuple[int, _Jump]]) -> list[int]:
    """Return the number of each jump's index.

    Jumps of a variable share an index if they look in one column for the same kind of value.
    """
    kinds: dict[tuple[bool, bool], dict[tuple[int, int, bool, str], int]] = {}
    keys = []
    for v, each in jumps:
        # events by hash are one kind of index, zone maps of int64 and of float64 columns are two
        equal = each.direction == "equal"
        kind = kinds.setdefault((equal, each.floating and not equal), {})
        keys.append(kind.setdefault((v, each.column, each.floating, each.direction), len(kind)))
    return keys


def _jumps_of(v: int, branch: PlannedBranch, final: set[int]) -> list[_Jump]:
    """Return the jumps of variable v, those by equality first."""
    found = []
    for c, condition in enumerate(branch.conditions):
        part = next((part for part in condition.parts if part.variable == v), None)
        if part is not None and part.each >= 0 and part.last < 0 and v not in condition.closing and c not in final:
            found.append(_orient_jump(c, condition, part))
    return sorted((each for each in found if each is not None), key=lambda each: each.comparison != "eq")


@dataclass(frozen=True, slots=True)
class _Registers:
    """What the registers of a condition's program hold, for a variable that is to bind a new event.

    `loads`: those with a column of an event: its type, column and role. `bound`: those that the new event
    has no part in. `each` is the role of the new event.
    """

    program: Program
    loads: Mapping[int, tuple[str, int, int]]
    bound: frozenset[int]
    each: int

    @classmethod
    def of(cls, program: Program, part: Part) -> _Registers:
        """Return those of a program for the variable of `part`."""
        loads = {target: (name, column, role) for name, target, column, role in program.code if name in _LOADS}
        # the first of a binding that is empty is the new event itself, unless the condition waits for a second one
        new = {part.each} if part.previous >= 0 else {part.each, part.first}
        return cls(program, loads, frozenset(r for r, roles in _roles(program).items() if not roles & new), part.each)

    def own(self, register: int) -> tuple[str, int] | None:
        """Return the type and the column of the new event's value in a register; None if it holds another value."""
        load, column, role = self.loads.get(register, ("", -1, -1))
        return (load, column) if role == self.each and load in _LOADS else None

    def beside(self, register: int) -> int | None:
        """Return the column of integers that a register holds, -1 for a constant below 2**62, None for another value."""
        load, column, _ = self.loads.get(register, ("", -1, -1))
        constants = [number for name, target, number, _ in self.program.code if name == "const_int" and target == register]
        if constants and abs(self.program.int_constants[constants[0]]) < 1 << 62:
            return -1
        return column if load == "load_int" else None


def _orient_jump(c: int, condition: PlannedCondition, part: Part) -> _Jump | None:
    """Return condition c as a jump of the variable of `part`; None if it is none.

    It is one if it compares a value of the bound events with a column of the new event. A sum or
    difference of such a column and a value of the bound events may stand for the column.
    """
    program = condition.program
    name, target, left, right = program.code[-1]
    comparison, _, _ = name.partition("_")
    if comparison not in MIRRORED or comparison == "ne" or target != program.result:
        return None
    registers = _Registers.of(program, part)
    for value, limit, oriented in ((left, right, comparison), (right, left, MIRRORED[comparison])):
        own = registers.own(value)
        if limit in registers.bound and own is not None:
            return _Jump(c, oriented, _LOADS[own[0]], own[1], limit)
        summed = _orient_sum(c, value, limit, oriented, registers) if limit in registers.bound else None
        if summed is not None:
            return summed
    return None


def _orient_sum(c: int, value: int, limit: int, comparison: str, registers: _Registers) -> _Jump | None:
    """Return ``value φ limit`` as a jump where a register holds ``new ± other`` or ``other - new``; None if it holds another value."""
    code = registers.program.code
    name, _, first, second = next(each for each in code if each[1] == value)
    operation, _, kind = name.partition("_")
    floating = kind == "float"
    if operation not in ("add", "sub") or (floating and comparison == "eq") or any(each[0].startswith("skip") for each in code):
        return None
    for own_register, other in ((first, second), (second, first)):
        own, beside = registers.own(own_register), -1 if floating else registers.beside(other)
        if own is None or other not in registers.bound or beside is None:
            continue
        if operation == "sub" and own_register == second:
            return _Jump(c, MIRRORED[comparison], floating, own[1], other, added=limit, sign=-1, beside=beside)
        return _Jump(c, comparison, floating, own[1], limit, added=other, sign=1 if operation == "sub" else -1, beside=beside)
    return None


def _roles(program: Program) -> dict[int, frozenset[int]]:
    """Return the roles whose events each register depends on.

    What decides a skip decides all registers that are written behind it.
    """
    roles: dict[int, frozenset[int]] = {}
    deciding: frozenset[int] = frozenset()
    for name, target, first, second in program.code:
        read = _roles_read(name, first, second, roles, program)
        deciding |= read if name == "skip_unless" else frozenset()
        roles[target] = roles.get(target, frozenset()) | read | deciding
    return roles


def _roles_read(name: str, first: int, second: int, roles: Mapping[int, frozenset[int]], program: Program) -> frozenset[int]:
    """Return the roles whose events one instruction depends on, from those of the registers before."""
    if name.startswith("load"):
        return frozenset({second})
    if name.startswith(("const", "null")) and not name.startswith("nullif"):
        return frozenset()
    if name == "call":
        sources = range(first, first + len(program.calls[second].parameters))
        return frozenset().union(*(roles[source] for source in sources))
    return roles[first] if name in ("lookup", "float_of_int", "skip", "skip_unless") else roles[first] | roles[second]


@dataclass(slots=True)
class JumpIndexes:
    """The zone maps and value buckets of a batch for a branch; the first thread that asks builds them."""

    table: JumpTable
    bank: ColumnBank
    base: int
    occurrence: Places
    _made: tuple[Bytes, ZoneMaps, ValueBuckets] | None = None
    _lock: Lock = field(default_factory=Lock, repr=False)

    def jumps(self) -> Jumps:
        """Return the jumps of one enumeration; the bounds that it narrows are its own."""
        with self._lock:
            if self._made is None:
                state = first_state(self.table, self.bank, self.base, self.occurrence.shape[1] - 2)
                self._made = state, *jump_indexes(self.table, self.bank, self.base, self.occurrence)
        state, zones, buckets = self._made
        return Jumps(self.table, zones, buckets, new_bounds(state), PATIENCE)

    def none(self) -> Jumps:
        """Return jumps that are never taken, for use before indexes are made."""
        return no_jumps(self.table)

    @property
    def may_pay(self) -> bool:
        """Return whether the branch has a condition to jump by."""
        return len(self.table.condition) > 0

    def pay(self, steps: int, passed: int, wasted: int, share: float, speed: int = 1) -> bool:
        """Return whether building indexes pays, after an enumeration of a `share` of the batch.

        It took `steps` steps, of which these `passed` over an event. Many searches were `wasted` on
        long runs that became no match. A step over an event is `speed` times as fast as others.
        """
        return self.skipping_pays(steps, passed, share, speed) or self.looking_ahead_pays(steps - passed, wasted, share)

    def skipping_pays(self, steps: int, passed: int, share: float, speed: int = 1) -> bool:
        """Return whether by far most of many `steps` only `passed` over an event, which an index would skip."""
        return passed >= self._least(share) and passed >= speed * PATIENCE * (steps - passed)

    def looking_ahead_pays(self, others: int, wasted: int, share: float) -> bool:
        """Return whether many searches were `wasted`, at least half as many as there were `others` steps."""
        return wasted >= self._least(share) and 2 * wasted >= others

    def _least(self, share: float) -> float:
        """Return for how many steps, at least, an index of a `share` of the batch may pay."""
        return WASTED_PER_EVENT * share * int(self.occurrence.shape[1])
