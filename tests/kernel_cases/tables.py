"""Pattern, condition and program tables for the kernels' tests, built by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpu_cep_kernels.automaton.jump_indexes import value_buckets
from gpu_cep_kernels.rules.interpreter import CODE
from gpu_cep_kernels.rules.running import AGGREGATIONS
from gpu_cep_kernels.rules.scalars import COMPARISONS, UNBOUNDED
from gpu_cep_kernels.rules.tables import (
    BY_FLOATS,
    BY_INTS,
    BY_PROGRAM,
    CONSECUTIVELY,
    ONCE,
    SINGLY,
    AggregateTable,
    ColumnBank,
    ConditionTable,
    NegationKeys,
    NegationTable,
    PatternTable,
    ProgramResults,
    ProgramTable,
    Registers,
)

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


class Part(NamedTuple):
    """What a condition reads of a variable: the roles of the current event, the one before, the first and the last."""

    variable: int
    each: int
    previous: int
    spread: int
    start: int = -1
    end: int = -1


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition between bindings: its parts, and a comparison of two columns (column, role) or a program.

    It waits until the variables `closing` bind no more, or, if it is `final`, for the end of a match.
    """

    parts: tuple[Part, ...]
    means: int
    comparison: str = "eq"
    left: tuple[int, int] = (0, 0)
    right: tuple[int, int] = (0, 0)
    pair: tuple[int, int] = (-1, -1)  # the two single variables that are compared
    code: tuple[Instruction, ...] = ()
    closing: tuple[int, ...] = ()
    decided_by: tuple[int, ...] | None = None  # the variables whose events decide it, where these are not those that it reads
    final: bool = False

    def waits_for(self, v: int) -> bool:
        """Whether an event of v may decide it."""
        deciding = [part.variable for part in self.parts] if self.decided_by is None else self.decided_by
        return v in deciding and not self.final


def program_table(code: Sequence[Instruction], int_constants: Sequence[int] = (), float_constants: Sequence[float] = ()) -> ProgramTable:
    """One or more programs in a row; text predicates look up TRUE, FALSE and NULL."""
    return ProgramTable(
        code=np.array([(CODE[name], *operands) for name, *operands in code], np.int64).reshape(-1, 4),
        int_constants=np.array(int_constants, np.int64),
        float_constants=np.array(float_constants, np.float64),
        lookups=np.array([1, 0, 2], np.uint8),
        registers=1 + max((target for _, target, _, _ in code), default=0),
    )


def program_registers(programs: ProgramTable, slots: int) -> Registers:
    """What so many programs of one role need that are at work at the same time."""
    rows, shape = np.zeros((1, slots), np.int64), (programs.registers, slots)
    return Registers(rows, rows, np.zeros(shape, np.int64), np.zeros(shape), np.zeros(shape, np.bool_))


def program_results(size: int) -> ProgramResults:
    """Room for the results of a program in so many rows."""
    return ProgramResults(np.zeros(size, np.int64), np.zeros(size), np.zeros(size, np.bool_), np.zeros(size, np.bool_))


def operation(name: str) -> ProgramTable:
    """A program that applies one operation to two columns of its type, or to a constant, and returns its result."""
    kind = "float" if name.endswith("_float") else "int"
    loads: tuple[Instruction, ...] = ((f"load_{kind}", 0, 0, 0), (f"load_{kind}", 1, 1, 0))
    if name in ("and", "or", "not"):
        loads += (("gt_int", 0, 0, 1), ("is_null_int", 2, 0, 0), ("lt_int", 1, 1, 2))
    if name == "lookup":
        loads += (("is_null_int", 0, 0, 0),)
    if name == "dot":
        loads = (("load_vector", 0, 0, 0), ("load_vector", 1, 1, 0))
    second = 0 if name.startswith("load") else 1
    return program_table((*loads, (name, 3, 0, second)), int_constants=[3, UNBOUNDED], float_constants=[0.5, -0.0])


def condition_table(variables: int, conditions: Sequence[Condition]) -> ConditionTable:
    """The table of these conditions, and their programs in turn."""
    listed = [[c for c, condition in enumerate(conditions) if condition.waits_for(v)] for v in range(variables)]
    parts = dict(zip(Part._fields, _columns([part for c in conditions for part in c.parts], len(Part._fields)), strict=True))
    code_first = _offsets([condition.code for condition in conditions])
    left, right, pair = (_columns([getattr(c, name) for c in conditions], 2) for name in ("left", "right", "pair"))
    return ConditionTable(
        first=_offsets(listed),
        listed=np.array([*chain(*listed)], np.int64),
        alone=np.array(
            [any({part.variable for part in conditions[c].parts} == {v} for c in own) for v, own in enumerate(listed)], np.bool_
        ),
        closing_first=_offsets([condition.closing for condition in conditions]),
        closing=np.array([*chain(*(condition.closing for condition in conditions))], np.int64),
        final=np.array([c for c, condition in enumerate(conditions) if condition.final], np.int64),
        part_first=_offsets([condition.parts for condition in conditions]),
        **parts,
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
    Condition((Part(0, 0, -1, SINGLY), Part(1, 1, -1, SINGLY)), BY_INTS, "lt", (0, 0), (1, 1)),
    Condition((Part(1, 0, 1, CONSECUTIVELY),), BY_FLOATS, "le", (0, 1), (0, 0)),
    Condition((Part(0, 0, -1, SINGLY), Part(2, 1, -1, SINGLY)), BY_PROGRAM, code=_PROGRAM),
)
# The same with a.x <= c.y in the program's place.
COMPARED = (*QUANTIFIED[:2], Condition((Part(0, 0, -1, SINGLY), Part(2, 1, -1, SINGLY)), BY_FLOATS, "le", (0, 0), (1, 1)))
# On single variables a, b, c: a.i < b.j, b.x <= c.y, and the program.
SINGLE = (
    Condition((Part(0, 0, -1, SINGLY), Part(1, 1, -1, SINGLY)), BY_INTS, "lt", (0, 0), (1, 1), pair=(0, 1)),
    Condition((Part(1, 0, -1, SINGLY), Part(2, 1, -1, SINGLY)), BY_FLOATS, "le", (0, 0), (1, 1), pair=(1, 2)),
    Condition((Part(0, 0, -1, SINGLY), Part(2, 1, -1, SINGLY)), BY_PROGRAM, code=_PROGRAM),
)
PROGRAMS = program_table(_PROGRAM, float_constants=[0.5])

# sum(b[..i-1].i) <= sum of a constant and b[i].j, then count(b) > 1 and max(b.x) >= first(b.x)
_RUNNING: tuple[Instruction, ...] = (
    ("load_aggregate_int", 0, 1, 0),
    ("load_int", 1, 1, 1),
    ("const_int", 2, 0, 0),
    ("add_int", 1, 1, 2),
    ("le_int", 2, 0, 1),
)
_WHOLE: tuple[Instruction, ...] = (
    ("load_count", 0, 0, 0),
    ("const_int", 1, 1, 0),
    ("gt_int", 0, 0, 1),
    ("load_aggregate_float", 1, 2, 0),
    ("load_float", 2, 0, 1),
    ("ge_float", 1, 1, 2),
    ("and", 0, 0, 1),
)
ITERATION_PROGRAMS = program_table(_RUNNING + _WHOLE, int_constants=[3, 1])
_ON_RUNNING = Condition((Part(1, 1, 0, CONSECUTIVELY),), BY_PROGRAM, code=_RUNNING)
# On variables a, b+, c with the aggregates below, and d: the same; decided when c binds, or at the end.
ITERATED = (
    _ON_RUNNING,
    Condition((Part(1, -1, -1, ONCE, 1, 0),), BY_PROGRAM, code=_WHOLE, closing=(1,), decided_by=(2,)),
    Condition((Part(1, 0, -1, SINGLY), Part(3, 1, -1, SINGLY)), BY_INTS, "lt", (0, 0), (1, 1), decided_by=(3,)),
)
FINALLY = (
    _ON_RUNNING,
    Condition((Part(1, -1, -1, ONCE, 1, 0),), BY_PROGRAM, code=_WHOLE, closing=(1,), final=True),
)
# On variables a, b+, c with the aggregates below: the mean of b's y is above a's x; decided when c binds.
_MEAN: tuple[Instruction, ...] = (
    ("load_float", 0, 0, 0),
    ("load_aggregate_float", 1, 5, 1),
    ("load_count", 2, 5, 1),
    ("float_of_int", 3, 2, 0),
    ("div_float", 4, 1, 3),
    ("lt_float", 5, 0, 4),
)
MEAN_PROGRAMS = program_table(_MEAN)
MEAN = (Condition((Part(0, 0, -1, SINGLY), Part(1, -1, -1, ONCE, -1, 1)), BY_PROGRAM, code=_MEAN, closing=(1,), decided_by=(2,)),)


def aggregate_table(variables: int, aggregates: Sequence[tuple[int, str, int]]) -> AggregateTable:
    """Aggregates by (variable, step, column), in the order of their variables."""
    return AggregateTable(
        first=_offsets([[each for each in aggregates if each[0] == v] for v in range(variables)]),
        step=np.array([AGGREGATIONS[step] for _, step, _ in aggregates], np.int64),
        column=np.array([column for _, _, column in aggregates], np.int64),
        missing=np.zeros(len(aggregates), np.int64),
    )


AGGREGATES = (
    (1, "count_events", 0),
    (1, "sum_ints", 0),
    (1, "max_floats", 0),
    (1, "min_ints", 1),
    (1, "count_ints", 1),
    (1, "sum_floats", 1),
)


def negation_table(
    negations: Sequence[tuple[int, Sequence[int], Sequence[int], Array]], streams: Array, times: Array, clock: Array, length: Any
) -> NegationTable:
    """Negations by (variable, those after which, those before which, places of events), without keys."""
    first = _offsets([list(own) for *_, own in negations])
    places = np.concatenate([np.empty(0, np.int64), *(own for *_, own in negations)])
    none = np.full(len(negations), -1)
    return NegationTable(
        variable=np.array([variable for variable, *_ in negations], np.uint16),
        place_first=first,
        places=places,
        keys=NegationKeys(none, none, np.arange(len(negations) + 1), first, places),
        after_first=_offsets([after for _, after, _, _ in negations]),
        after=np.array([*chain(*(after for _, after, _, _ in negations))], np.int64),
        before_first=_offsets([before for _, _, before, _ in negations]),
        before=np.array([*chain(*(before for _, _, before, _ in negations))], np.int64),
        streams=streams,
        times=times,
        clock=clock,
        length=length,
    )


def put_keys(negations: NegationTable, bank: ColumnBank) -> NegationTable:
    """The negations, whose events have the second int64 column in common with a's first one."""
    size = len(negations.variable)
    parts = [negations.places[low:high] for low, high in pairwise(negations.place_first.tolist())]
    borders, places = zip(*(value_buckets(own.astype(np.int32), bank, 0, 1, False) for own in parts), strict=True)
    keys = NegationKeys(
        variable=np.zeros(size, np.int64),
        column=np.zeros(size, np.int64),
        first=_offsets([range(len(border) - 1) for border in borders]),
        border=np.concatenate(
            [border[:-1] + begin for border, begin in zip(borders, negations.place_first, strict=False)] + [negations.place_first[-1:]]
        ),
        places=np.concatenate(places).astype(np.int64),
    )
    return negations._replace(keys=keys)
