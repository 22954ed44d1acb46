"""Judge a branch's conditions between neighbours for all events of a batch: they become label bits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu_cep.engine.events.batches import Batch
from gpu_cep.engine.lowering.column_programs import compute_columns, is_column_program
from gpu_cep.engine.lowering.programs import program_registers
from gpu_cep.engine.matchers.search import Search
from gpu_cep.plan.event_plan import LiftedCondition
from gpu_cep.plan.programs import Program
from gpu_cep_kernels.phase_one.neighbour_conditions import NeighbourProgram, mask_by_columns, mask_by_nulls, mask_by_program
from gpu_cep_kernels.rules.scalars import NE
from gpu_cep_kernels.rules.tables import ProgramTable

Labels = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class LiftedLabels:
    """The label words of a batch's events, after all conditions.

    `enters`: the bits of the variables whose first event an event may be, right behind the variable
    before. `repeats`: the bits of those of which it may be a further event.
    """

    enters: Labels
    repeats: Labels


def lift_labels(search: Search, batch: Batch) -> LiftedLabels | None:
    """Return the lifted labels of a batch; None if a condition fails for an event, be it of a match or not."""
    lifted = search.tables.branch.lifted
    assert lifted is not None, "the branch is lifted"
    (word,) = search.ordered.labels[:, batch.low : batch.high]
    labels = LiftedLabels(word.copy(), word.copy())
    _break_at_borders(search, batch, labels)
    for condition in lifted:
        if not _judge(search, batch, condition, labels.repeats if condition.repeated else labels.enters):
            return None
    return labels


def _break_at_borders(search: Search, batch: Batch, labels: LiftedLabels) -> None:
    """Clear the bits of events that would follow an event of another stream or, where ties are strict, of the same time."""
    ordered, kind = search.ordered, labels.enters.dtype.type
    first, size = kind(1 << search.tables.branch.positives[0]), len(labels.enters)
    low, high = np.searchsorted(ordered.offsets, [batch.low, batch.high])
    begins = ordered.offsets[low:high] - batch.low
    labels.enters[begins] &= first
    labels.repeats[begins] = 0
    if search.plan.query.ties == "strict":
        times = ordered.times[batch.low : batch.high]
        mask_by_columns(0, size - 1, times[1:], times[:-1], NE, first, labels.enters[1:])


def _judge(search: Search, batch: Batch, lifted: LiftedCondition, words: Labels) -> bool:
    """Clear the bit of a condition's variable where the condition does not hold; return whether it can be judged everywhere."""
    bit = 1 << search.tables.branch.positives[lifted.variable]
    others = words.dtype.type(np.iinfo(words.dtype).max ^ bit)
    program = search.tables.branch.conditions[lifted.condition].program
    if is_column_program(program) and _judge_columns(search, batch, lifted, program, others, words):
        return True
    return _judge_program(search, batch, lifted, others, words)


def _judge_columns(search: Search, batch: Batch, lifted: LiftedCondition, program: Program, others: Any, words: Labels) -> bool:
    """Judge a condition by whole columns; return False, with nothing done, if an integer overflows somewhere."""
    bank, first = search.ordered.bank, _first_judged(batch, lifted)
    low, judged = batch.low + first, words[first:]
    places = [(low - back, batch.high - back) for back in lifted.back]
    compared = compute_columns(program, bank, places, len(judged))
    if compared is None:
        return False
    mask_by_columns(0, len(judged), compared.left, compared.right, compared.comparison, others, judged)
    for nulls, column, (begin, end) in compared.read:
        if nulls.size:
            mask_by_nulls(0, len(judged), nulls[begin:end], np.uint64(1 << column), others, judged)
    return True


def _judge_program(search: Search, batch: Batch, lifted: LiftedCondition, others: Any, words: Labels) -> bool:
    table, c = search.tables.conditions, lifted.condition
    programs = _program_of(search, c)
    first = _first_judged(batch, lifted)
    judged = words[first:]
    failed = np.zeros(len(judged), np.bool_)
    registers = program_registers(np, programs, 1, max(1, table.roles))
    condition = NeighbourProgram(programs, int(table.result[c]), np.array(lifted.back, np.int64))
    mask_by_program(0, len(judged), 0, condition, search.ordered.bank, batch.low + first, registers, others, judged, failed)
    return not failed.any()


def _program_of(search: Search, condition: int) -> ProgramTable:
    """Return the table of a condition's program alone."""
    table, programs = search.tables.conditions, search.tables.programs
    return programs._replace(code=programs.code[table.code_first[condition] : table.code_last[condition]])


def _first_judged(batch: Batch, lifted: LiftedCondition) -> int:
    """Return the first event of the batch that has all events that the condition reads before it."""
    return max(0, min(max(lifted.back) - batch.low, batch.high - batch.low))
