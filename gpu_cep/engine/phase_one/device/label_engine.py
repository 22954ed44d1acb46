"""Define the operations by which a device labels events, and plan the labelling of a chunk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu_cep.analysis.types import Kind
from gpu_cep.engine.events.label_words import Word, Words
from gpu_cep.engine.input.device.uploads import Input
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.lowering.programs import program_registers, program_results
from gpu_cep.engine.lowering.text_predicates import Values
from gpu_cep.engine.phase_one.device.card_memory import Labelling, allocated_bytes
from gpu_cep.engine.phase_one.device.columns import DeviceColumns
from gpu_cep.engine.phase_one.label_steps import ComparisonMask, Comparisons, LabelSteps, Mask, label_steps
from gpu_cep.plan.event_plan import CodeProperty, Plan
from gpu_cep.plan.programs import Program
from gpu_cep_kernels.device.interface import Array, Device
from gpu_cep_kernels.phase_one.label_tiles import (
    LabelTests,
    judge_further,
)
from gpu_cep_kernels.rules.interpreter import evaluate_rows
from gpu_cep_kernels.rules.tables import ColumnBank, ProgramResults, ProgramTable

# Bytes per row while a chunk is compacted: what is kept of it, and the scratch of its times or keys.
_COMPACTING = 8 + 4 + 8 + 6 * 8


@dataclass(frozen=True, slots=True)
class DeviceLabelEngine:
    """The device's operations of labelling.

    All comparisons of a column share a pass, because reading memory takes the time.
    """

    columns: DeviceColumns

    @property
    def place(self) -> Device:
        """Return the device."""
        return self.columns.device

    @property
    def events(self) -> EventColumns:
        """Return the columns of the events."""
        return self.columns.columns

    def label_codes(self, planned: CodeProperty) -> tuple[Input, Values]:
        """Return codes for the values of a text column, and the values that the codes stand for."""
        return self.columns.label_codes(planned)

    def code_mask(self, table: Words, word: Word) -> tuple[Mask, tuple[Array, ...]]:
        """Return a function that ANDs each label with ``table[code]``, and the table on the device."""
        tests = no_tests(self.place.xp, 0, word.kind(~word.kind(0)))._replace(table=self.place.upload(table))
        return lambda codes, labels: self._judge(codes.size, tests._replace(codes=codes), labels), (tests.table,)

    def comparison_mask(self, comparisons: Comparisons) -> tuple[ComparisonMask, tuple[Array, ...]]:
        """Return a function that clears the bits of failed comparisons, and the arrays that it holds.

        A comparison with NULL fails.
        """
        kind = comparisons.others.dtype.type
        operators, constants, others = held = tuple(self.place.upload(array) for array in comparisons)
        tests = no_tests(self.place.xp, 0, kind(~kind(0)))._replace(comparisons=operators, constants=constants, others=others)

        def mask(values: Array, present: Array | None, labels: Array) -> None:
            self._judge(values.size, tests._replace(column=values, present=tests.present if present is None else present), labels)

        return mask, held

    def truth_mask(self, word: Word) -> tuple[Mask, tuple[Array, ...]]:
        """Return a function that clears each label for which a uint8 is 0, and what is left of it."""
        tests = no_tests(self.place.xp, 0, word.kind(~word.kind(0)))._replace(others=self.place.xp.zeros(1, word.kind))
        return lambda truth, labels: self._judge(truth.size, tests._replace(present=truth), labels), (tests.others,)

    def _judge(self, size: int, tests: LabelTests, labels: Array) -> None:
        """Clear the bits of labels of `size` events that fail `tests`; behind them there may be labels of no event."""
        packed = pack_labels(labels.reshape(1, -1), tests)
        self.place.launch(judge_further, packed.shape[1], size, tests, packed)

    def tests_key(self, column: int) -> bool:
        """Return True: columns are looked at where labels are made."""
        return True

    def evaluate(self, program: Program, table: ProgramTable, bank: ColumnBank) -> ProgramResults:
        """Return the results of a program for all rows of `bank`."""
        place, rows = self.place, bank.ints.shape[1]
        registers, results = program_registers(place.xp, table, place.slots(rows)), program_results(place.xp, rows)
        place.launch(evaluate_rows, rows, program.result, table, bank, registers, results)
        return results


@dataclass(frozen=True, slots=True)
class DeviceLabelling:
    """The steps that label events on the device, and the memory that labelling takes there."""

    steps: LabelSteps
    takes: Labelling


def plan_labelling(plan: Plan, columns: DeviceColumns) -> DeviceLabelling:
    """Return the steps that evaluate all properties, and the memory that labelling takes.

    Raises
    ------
    EventError
        There are more rows than an int32 numbers.
    """
    steps = label_steps(plan, DeviceLabelEngine(columns))
    for column in plan.stream_keys:
        if columns.columns.type(column).kind is Kind.STRING:
            # its table, if it has one, is part of what labelling takes
            columns.text_codes(column)
    takes = Labelling(
        row_bytes=_row_bytes(plan, columns, steps) + max((step.row_bytes for step in steps.all()), default=0),
        tables=columns.tables + sum(allocated_bytes(*(table.nbytes for table in step.tables)) for step in steps.all()),
        arrays=3 * len(plan.bulk_columns),
        rows=len(columns.columns),
        travels=any(columns.columns.resident(column) is None for column in plan.bulk_columns),
    )
    return DeviceLabelling(steps, takes)


def _row_bytes(plan: Plan, columns: DeviceColumns, steps: LabelSteps) -> int:
    """Return the bytes that a chunk takes for each row, without the scratch of the steps.

    They are those of its columns, of its label twice, and of its keys.
    """
    loaded = sum(columns.row_bytes(column) for column in plan.bulk_columns)
    # codes by which properties are decided may differ from those of a key
    coded = 4 * sum(isinstance(planned, CodeProperty) for planned in plan.properties)
    return loaded + coded + _COMPACTING + 2 * sum(word.all().nbytes for word in steps.words) + 9 * len(plan.stream_keys)


def no_tests(xp: Any, number: int, every: Any) -> LabelTests:
    """Return tests that leave all bits of `every` in the word of a number."""
    word, none = xp.empty(0, every.dtype), xp.empty(0, np.int64)
    return LabelTests(number, every, xp.empty(0, np.int32), word, none, xp.empty(0, np.uint8), none, none, word)


def pack_labels(labels: Array, tests: LabelTests) -> Array:
    """Return labels in words of which a thread writes one at a time: eight bytes, or four if it reads a wide value for each."""
    wide = tests.comparisons.size and tests.column.dtype.itemsize == 8 and labels.dtype.itemsize == 1
    return labels.view(np.uint32 if wide else np.uint64)
