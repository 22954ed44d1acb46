"""Judge a branch's conditions between neighbours for all events of a batch: they become label bits.

The steps are the same on the host and on a card.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from gpu_cep.engine.events.matches import Counts, Indices, ones
from gpu_cep.engine.lowering.column_programs import mask_by_column_program
from gpu_cep.engine.lowering.pattern_tables import MatcherTables
from gpu_cep.engine.lowering.programs import program_registers
from gpu_cep.identity import Identity
from gpu_cep.plan.event_plan import LiftedCondition
from gpu_cep.records import record
from gpu_cep_kernels.device.interface import Array, Backend, HostArray
from gpu_cep_kernels.device.packing import to_device
from gpu_cep_kernels.device.primitives import any_set
from gpu_cep_kernels.labels_decide.runs import Sequence
from gpu_cep_kernels.phase_one.neighbour_conditions import NeighbourProgram, mask_by_columns, mask_by_neighbours, mask_by_program
from gpu_cep_kernels.rules.scalars import NE
from gpu_cep_kernels.rules.tables import ColumnBank, PatternTable, ProgramTable


@record()
class NeighbourEvents:
    """The events of a batch, at `place`, with what conditions between neighbours read of them.

    - words: their label words, one for each event.
    - begins: the events with which streams begin.
    - times: their times where events of one time are in no order (empty: they are in order).
    - bank: the columns that conditions read; the batch's first event stands in row `base`.
    """

    place: Backend
    words: Array
    begins: Array
    times: Array
    bank: ColumnBank
    base: int = 0


@record()
class LiftedLabels:
    """The label words of a batch's events, after all conditions.

    `enters`: the bits of the variables whose first event an event may be, right behind the variable
    before. `repeats`: the bits of those of which it may be a further event.
    """

    enters: Array
    repeats: Array


def lift_labels(tables: MatcherTables, events: NeighbourEvents) -> LiftedLabels | None:
    """Return the lifted labels of a batch; None if a condition fails for an event, be it of a match or not."""
    place, size = events.place, int(events.words.size)
    labels = LiftedLabels(events.words.copy(), events.words.copy())
    _break_at_borders(tables, events, labels)
    if tables.compared is not None:
        table = to_device(place, tables.compared)
        place.launch(mask_by_neighbours, size, table, events.bank, events.base, labels.enters, labels.repeats)
    for condition in tables.judged:
        if not _judge(tables, events, condition, labels.repeats if condition.repeated else labels.enters):
            return None
    return labels


def _break_at_borders(tables: MatcherTables, events: NeighbourEvents, labels: LiftedLabels) -> None:
    """Clear the bits of events that would follow an event of another stream or, where ties are strict, of the same time."""
    first = labels.enters.dtype.type(1 << tables.branch.positives[0])
    labels.enters[events.begins] &= first
    labels.repeats[events.begins] = 0
    if events.times.size:
        times = events.times
        events.place.launch(mask_by_columns, times.size - 1, times[1:], times[:-1], NE, first, labels.enters[1:])


def _judge(tables: MatcherTables, events: NeighbourEvents, lifted: LiftedCondition, words: Array) -> bool:
    """Clear the bit of a condition's variable where the condition does not hold; return whether it can be judged everywhere."""
    bit = 1 << tables.branch.positives[lifted.variable]
    others = words.dtype.type((1 << 8 * words.dtype.itemsize) - 1 ^ bit)
    first = max(0, min(max(lifted.back) - events.base, words.size))
    if tables.by_columns[lifted.condition]:
        program, low, end = tables.branch.conditions[lifted.condition].program, events.base + first, events.base + words.size
        read = [(low - back, end - back) for back in lifted.back]
        # unless an integer overflows somewhere
        if mask_by_column_program(program, events.bank, read, others, words[first:], events.place):
            return True
    return _judge_program(tables, events, lifted, first, others, words[first:])


def _judge_program(
    tables: MatcherTables, events: NeighbourEvents, lifted: LiftedCondition, first: int, others: Any, judged: Array
) -> bool:  # fmt: skip
    """Judge the events from `first` on one by one; return whether the program fails for none."""
    place, table, c, size = events.place, tables.conditions, lifted.condition, int(judged.size)
    programs = _program_of(tables, c)
    failed = place.xp.zeros(size, np.bool_)
    registers = program_registers(place.xp, programs, place.slots(size), max(1, table.roles))
    condition = to_device(place, NeighbourProgram(programs, int(table.result[c]), np.array(lifted.back, np.int64)))
    place.launch(mask_by_program, size, condition, events.bank, events.base + first, registers, others, judged, failed)
    return not any_set(failed)


def _program_of(tables: MatcherTables, condition: int) -> ProgramTable:
    """Return the table of a condition's program alone."""
    table, programs = tables.conditions, tables.programs
    return programs._replace(code=programs.code[table.code_first[condition] : table.code_last[condition]])


def labels_leave_a_choice(tables: MatcherTables, labels: LiftedLabels) -> bool:
    """Return whether some event can be a further event of one variable or the first one of the next."""
    word = labels.enters.dtype.type
    bits = _bits_before_the_next(tables.branch.positives, Identity(tables.pattern))
    return any(any_set(labels.repeats & word(own) & labels.enters >> word(distance)) for distance, own in bits)


@lru_cache(maxsize=256)
def _bits_before_the_next(variables: tuple[int, ...], pattern: Identity[PatternTable]) -> tuple[tuple[int, int], ...]:
    """Return the bits of the variables but the last that may bind several events, by the distance of the next variable's bit."""
    found: dict[int, int] = {}
    for v, (own, following) in enumerate(pairwise(variables)):
        if pattern.value.maximum[v] != pattern.value.minimum[v]:
            found[following - own] = found.get(following - own, 0) | 1 << own
    return tuple(found.items())


def quantified_variables(tables: MatcherTables) -> Indices:
    """Return the variables that may bind several events; the array is shared."""
    return _quantified(Identity(tables.pattern))[0]


@lru_cache(maxsize=256)
def _quantified(pattern: Identity[PatternTable]) -> tuple[Indices, Indices]:
    """Return the variables of a pattern that may bind several events, and each variable's place among these (−1: it is none)."""
    may_repeat = pattern.value.maximum != 1
    return np.flatnonzero(may_repeat), np.where(may_repeat, may_repeat.cumsum() - 1, -1)


def variable_bits(tables: MatcherTables, words: Array) -> HostArray:
    """Return the bit of each variable in the type of label words, on the host; the array is shared."""
    return _bits_of(tables.branch.positives, words.dtype)


@lru_cache(maxsize=256)
def _bits_of(variables: tuple[int, ...], kind: np.dtype[Any]) -> HostArray:
    """Return the bit of each of some variables in a type of label words."""
    return np.array([1 << v for v in variables], np.uint64).astype(kind)


def sequence_over(place: Backend, tables: MatcherTables, labels: LiftedLabels, fill: Callable[[Array, Any, Array], None]) -> Sequence:
    """Return the table of the sequence that kernels read matches from, at `place`.

    ``fill(repeats, bit, until)`` writes for each event the first one from it on that lacks the bit,
    as :func:`gpu_cep_kernels.labels_decide.runs.find_repeats` does.
    """
    mask, (quantified, row) = variable_bits(tables, labels.enters), _quantified(Identity(tables.pattern))
    until = place.xp.empty((len(quantified), labels.enters.size + 2), np.int32)
    for k, v in enumerate(quantified.tolist()):
        fill(labels.repeats, mask[v], until[k])
    mask, row, minimum, maximum = to_device(place, (mask, row, tables.pattern.minimum, tables.pattern.maximum))
    return Sequence(labels.enters, mask, row, until, minimum, maximum)


def first_singles(tables: MatcherTables) -> int:
    """Return how many of the first variables are looked at to find starts: all but the last of them bind one event."""
    quantified = quantified_variables(tables)
    return int(quantified[0]) + 1 if len(quantified) else len(tables.pattern.order)


def counts_by_ends(tables: MatcherTables, first: HostArray, last: HostArray) -> Counts | None:
    """Return how many events each match binds to each variable, [match, variable]; None if its ends do not say."""
    quantified, variables = quantified_variables(tables), len(tables.pattern.order)
    if not len(quantified):
        return ones(len(first), variables)
    if len(quantified) > 1:
        return None
    counts: Counts = np.ones((len(first), variables), np.int32)
    # all events but those of the single variables
    counts[:, quantified[0]] += last - first - (variables - 1)
    return counts
