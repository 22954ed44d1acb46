"""Judge conditions between events that follow one another: clear the label bits that they deny.

A condition judges each event with some right before it. Where it fails, only
the bits of `others` stay in the event's word. Labels here are one word per event.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from gpu_cep_kernels.compile.jit import kernel, rule
from gpu_cep_kernels.rules.interpreter import holds, run_program
from gpu_cep_kernels.rules.scalars import EQ, GE, GT, LE, LT, NE, compare
from gpu_cep_kernels.rules.tables import AggregateValues, ColumnBank, ProgramTable, Registers


class NeighbourProgram(NamedTuple):
    """Hold the program of one condition.

    - programs: a table with this program alone; it reads no aggregates.
    - result: the register that holds its truth.
    - back[r]: how many rows before an event's stands what role r reads.
    """

    programs: ProgramTable
    result: int
    back: Any


@rule
def _mask_where(comparison: int, left: Any, right: Any, others: Any, words: Any) -> None:
    """Judge one comparison of two columns; each word is written, so that the loop is vectorised."""
    for e in range(words.size):
        words[e] = words[e] if compare(comparison, left[e], right[e]) else words[e] & others


@kernel(writes=("labels",))
def mask_by_columns(low: int, high: int, left: Any, right: Any, comparison: int, others: Any, labels: Any) -> None:
    """Judge ``left[e] φ right[e]`` for each event e."""
    lefts, rights, words = left[low:high], right[low:high], labels[low:high]
    # a loop for each comparison, so that none tests which one it is for every event
    if comparison == EQ:
        _mask_where(EQ, lefts, rights, others, words)
    elif comparison == NE:
        _mask_where(NE, lefts, rights, others, words)
    elif comparison == LT:
        _mask_where(LT, lefts, rights, others, words)
    elif comparison == LE:
        _mask_where(LE, lefts, rights, others, words)
    elif comparison == GT:
        _mask_where(GT, lefts, rights, others, words)
    else:
        _mask_where(GE, lefts, rights, others, words)


@kernel(writes=("labels",))
def mask_by_nulls(low: int, high: int, nulls: Any, columns: Any, others: Any, labels: Any) -> None:
    """Deny what reads NULL: an event with a bit of `columns` in its word of `nulls`."""
    for e in range(low, high):
        labels[e] = labels[e] & others if nulls[e] & columns else labels[e]


@kernel(writes=("labels", "failed"), scratch=("registers",))
def mask_by_program(
    low: int, high: int, slot: int, condition: NeighbourProgram, bank: ColumnBank, base: int, registers: Registers, others: Any,
    labels: Any, failed: Any,
) -> None:  # fmt: skip
    """Judge a condition by its program for each event e, which stands in row ``base + e`` of the bank.

    Events that only have bits of `others` are not judged. ``failed[e]`` is set where
    the program failed.
    """
    programs, result, back = condition
    # aggregates are not read, and only have the right types
    none = AggregateValues(registers.ints, registers.ints, registers.floats)
    rows = registers.rows[:, slot]
    own = Registers(rows, rows, registers.ints[:, slot], registers.floats[:, slot], registers.nulls[:, slot])
    for e in range(low, high):
        if labels[e] & ~others:
            for role in range(back.size):
                rows[role] = base + e - back[role]
            error = run_program(0, programs.code.shape[0], programs, bank, rows, none, own)
            if error != 0:
                failed[e] = True
            if not holds(result, own):
                labels[e] = labels[e] & others
