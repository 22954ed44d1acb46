"""Phase 1, first stage: label every event with the variables whose properties it satisfies, and drop those that satisfy none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu_cep.engine.events.label_words import Word, Words, words_for
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.lowering.programs import assemble, evaluate, load_bank, tabulator
from gpu_cep.engine.lowering.text_predicates import TRUE, Values, constant_codes, domain_of, truth_of
from gpu_cep.errors import EventError
from gpu_cep.plan.event_plan import CodeProperty, ComparisonProperty, Plan, ProgramProperty, Property
from gpu_cep_kernels.compile.launch import blocks, slices, spread
from gpu_cep_kernels.device.primitives import merged_words
from gpu_cep_kernels.phase_one.label_masks import compact, mask_by_code, mask_by_comparison, mask_by_packed_code, mask_by_truth
from gpu_cep_kernels.rules.scalars import COMPARISONS

# Events per block: labels of a few variables stay in the second-level cache, and threads are seldom held up between blocks.
BLOCK = 1 << 18

# Tables of so many bits are one number.
_PACKED_BITS = 64

# Row numbers are int32.
_MOST_ROWS = 2**31

# Clears the label bits that a property denies the events [low, high).
Step = Callable[[int, int, Words], None]


@dataclass(frozen=True, slots=True)
class LabelledEvents:
    """The events that are kept, slice after slice: their row numbers (ascending) and labels [word, event]."""

    rows: list[npt.NDArray[np.int32]]
    labels: list[Words]


@dataclass(frozen=True, slots=True)
class Labeller:
    """Says of events which variables' properties they satisfy: the words of labels, and what clears bits of each."""

    words: list[Word]
    steps: list[list[Step]]

    def room(self, size: int) -> Words:
        """Room for the labels of so many events."""
        return np.empty((len(self.words), size), self.words[0].kind)

    def labels(self, low: int, high: int) -> Words:
        """The labels of the events [low, high)."""
        labels = self.room(high - low)
        self.fill(low, high, labels)
        return labels

    def fill(self, low: int, high: int, labels: Words) -> None:
        """The labels of the events [low, high), as [word, event]; best so many at a time as a cache holds."""
        for word, own, steps in zip(self.words, labels, self.steps, strict=True):
            own[:] = word.all()
            for step in steps:
                step(low, high, own)


def labeller(plan: Plan, columns: EventColumns) -> Labeller:
    """What labels the events of `columns`, in any number of threads.

    Raises
    ------
    EventError
        There are more rows than their numbers have bits for.
    """
    check_rows(columns)
    words = words_for(len(plan.query.variables))
    return Labeller(words, [_word_steps(plan, columns, word) for word in words])


def label_events(plan: Plan, columns: EventColumns, threads: int) -> LabelledEvents:
    """Evaluate all properties in one pass over the columns, block by block.

    With the ``filter`` step events without any label are dropped (thesis
    Theorem 5.1); with ``partition`` those whose derived key is NULL or NaN,
    as it equals no other.
    """
    labels_of = labeller(plan, columns)
    keeps_all = "filter" not in plan.steps

    def label(span: tuple[int, int]) -> tuple[npt.NDArray[np.int32], Words]:
        low, high = span
        rows, labels = np.empty(high - low + 1, np.int32), labels_of.room(high - low + 1)
        scratch = labels_of.room(min(BLOCK, high - low))
        count = 0
        for start, end in blocks(low, high, BLOCK):
            block = scratch[:, : end - start]
            labels_of.fill(start, end, block)
            marks = merged_words(block)
            kept = [compact(start, marks, own, keeps_all, rows[count:], target[count:]) for own, target in zip(block, labels, strict=True)]
            count += kept[0]
        return rows[:count], labels[:, :count]

    labelled = spread(label, slices(len(columns), threads) or [(0, 0)], threads)
    return LabelledEvents([rows for rows, _ in labelled], [labels for _, labels in labelled])


def check_rows(columns: EventColumns) -> None:
    """Raise EventError if there are more rows than their numbers have bits for."""
    if len(columns) >= _MOST_ROWS:
        raise EventError(f"{len(columns):,} events are more than one call takes ({_MOST_ROWS - 1:,}): split them by stream")


def overflow_error(planned: ProgramProperty, row: int) -> EventError:
    """What is raised where an integer overflows in a property."""
    return EventError(f"integer overflow in {planned.text} at input row {row}")


def _word_steps(plan: Plan, columns: EventColumns, word: Word) -> list[Step]:
    steps = [step for planned in plan.properties if word.concerns(planned) for step in _steps(planned, columns, word)]
    return steps + [_key_step(column, columns, word) for column in plan.derived]


def _steps(planned: Property, columns: EventColumns, word: Word) -> list[Step]:
    match planned:
        case CodeProperty():
            return [_code_step(planned, columns, word)]
        case ComparisonProperty():
            return _comparison_steps(planned, columns, word)
        case ProgramProperty():
            return [_program_step(planned, columns, word)]
    raise TypeError(f"no step for {type(planned).__name__}")


def _code_step(planned: CodeProperty, columns: EventColumns, word: Word) -> Step:
    codes = constant_codes(columns.arrow(planned.column), [predicate for predicate, _ in planned.predicates])
    if codes is None:
        coded, distinct = columns.label_codes(planned.column)
        of_codes = _code_mask(label_table(planned, distinct, word), word)
        return lambda low, high, labels: of_codes(coded[low:high], labels)
    of_block, values = codes
    of_constants = _code_mask(label_table(planned, values, word), word)
    return lambda low, high, labels: of_constants(of_block(low, high), labels)


def _code_mask(table: Words, word: Word) -> Callable[[npt.NDArray[Any], Words], None]:
    """What clears the bits that `table`, one of the word's labels for each code, denies events of such codes."""
    bits = word.everyone.bit_length()
    if bits * len(table) > _PACKED_BITS:
        return lambda codes, labels: mask_by_code(0, len(codes), codes, table, labels)
    entries = np.uint64(sum(entry << bits * code for code, entry in enumerate(table.tolist())))
    return lambda codes, labels: mask_by_packed_code(0, len(codes), codes, entries, bits, labels)


def label_table(planned: CodeProperty, values: Values, word: Word) -> Words:
    """The label word of each value, and of NULL last."""
    table, domain = np.full(len(values) + 1, word.all()), domain_of(values)
    for predicate, bits in planned.predicates:
        if word.own(bits):
            table[truth_of(predicate, domain) != TRUE] &= word.others(bits)
    return table


def _comparison_steps(planned: ComparisonProperty, columns: EventColumns, word: Word) -> list[Step]:
    values = columns.values(planned.column)
    comparison, others = COMPARISONS[planned.comparison], word.others(planned.bits)
    constant = np.float64(planned.constant) if values.dtype.kind == "f" else np.int64(planned.constant)
    steps: list[Step] = [
        lambda low, high, labels: mask_by_comparison(0, high - low, values[low:high], comparison, constant, others, labels)
    ]
    nulls = columns.null_mask(planned.column)
    if nulls is not None:
        present = (~nulls).view(np.uint8)
        steps.append(lambda low, high, labels: mask_by_truth(0, high - low, present[low:high], others, labels))
    return steps


def _key_step(column: int, columns: EventColumns, word: Word) -> Step:
    comparable = columns.comparable_mask(column).view(np.uint8)
    nobody = word.kind(0)
    return lambda low, high, labels: mask_by_truth(0, high - low, comparable[low:high], nobody, labels)


def _program_step(planned: ProgramProperty, columns: EventColumns, word: Word) -> Step:
    table, _ = assemble([planned.program], tabulator(columns))
    bits, others = word.own(planned.bits), word.others(planned.bits)
    for column in planned.layout.columns:
        # once, before threads ask for it
        columns.values(column)

    def step(low: int, high: int, labels: Words) -> None:
        wanted = np.flatnonzero(labels & bits)
        bank = load_bank(columns, planned.layout, wanted + low)
        truth, nulls, failed = evaluate(planned.program, table, bank)
        if failed >= 0:
            raise overflow_error(planned, low + int(wanted[failed]))
        labels[wanted[(truth == 0) | nulls]] &= others

    return step
