"""Labels on the device: chunk by chunk of rows, so that the copies of one chunk overlap with the kernels of the last."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from gpu_cep.analysis.types import Kind
from gpu_cep.engine.events.label_words import Word, words_for
from gpu_cep.engine.lowering.programs import assemble, program_registers, program_results, tabulator
from gpu_cep.engine.phase_one.device.columns import DeviceColumns, Input
from gpu_cep.engine.phase_one.device.memory import Labelling, in_pieces
from gpu_cep.engine.phase_one.label_events import check_rows, label_table, overflow_error
from gpu_cep.plan.event_plan import BankLayout, CodeProperty, ComparisonProperty, Plan, ProgramProperty, Property
from gpu_cep_kernels.compile.launch import blocks
from gpu_cep_kernels.device.interface import Array, Device, to_device
from gpu_cep_kernels.device.primitives import any_set, merged_words
from gpu_cep_kernels.phase_one.label_masks import mask_by_code, mask_by_comparisons, mask_by_truth
from gpu_cep_kernels.rules.interpreter import evaluate_rows
from gpu_cep_kernels.rules.scalars import COMPARISONS
from gpu_cep_kernels.rules.tables import ColumnBank

Kept = TypeVar("Kept")

# Bytes per row while a chunk is compacted: what is kept of it, and the scratch of its times or keys.
_COMPACTING = 8 + 4 + 8 + 6 * 8
# Bytes per row while a property's program runs: places, banks' NULL words, results, and scratch.
_PROGRAM = 3 * 8 + 5 * 8 + 8 + 2 * 8 + 2 + 4 * 8
# The same for each column that it reads, gathered and in its bank, and for each register.
_PROGRAM_COLUMN, _PROGRAM_REGISTER = 2 * 8, 8 + 8 + 1

# What chunks load: each kind of input of each column.
Sources = dict[tuple[str, int], Input | None]


@dataclass
class Chunk:
    """The rows [low, high) of the columns that are asked for, each loaded once; `sources` are those that any chunk was asked for."""

    columns: DeviceColumns
    sources: Sources
    low: int
    high: int
    _loaded: dict[tuple[str, int], Array | None] = field(default_factory=dict)

    def __len__(self) -> int:
        return self.high - self.low

    @property
    def device(self) -> Device:
        device: Device = self.columns.device
        return device

    def values(self, column: int) -> Array:
        """The column in its machine representation."""
        return self._load("values", column, self.columns.values)

    def present(self, column: int) -> Array | None:
        """uint8: 0 where the column is NULL; None where it never is."""
        return self._load("present", column, self.columns.present)

    def text_codes(self, column: int) -> Array:
        """A text column's codes."""
        return self._load("text", column, self.columns.text_codes)

    def label_codes(self, column: int, codes: Input) -> Array:
        """The codes by which a text column's properties are decided."""
        return self._load("label", column, lambda _: codes)

    def _load(self, kind: str, column: int, source: Callable[[int], Input | None]) -> Array | None:
        key = kind, column
        if key not in self.sources:
            self.sources[key] = source(column)
        if key not in self._loaded:
            self._loaded[key] = _loaded(self.sources[key], self.low, self.high)
        return self._loaded[key]

    def prefetched(self) -> Chunk:
        """Itself, after all known sources were loaded."""
        self._loaded = {key: _loaded(source, self.low, self.high) for key, source in self.sources.items()}
        return self


def _loaded(source: Input | None, low: int, high: int) -> Array | None:
    return None if source is None else source.load(low, high)


@dataclass(frozen=True, slots=True)
class Step:
    """`clear`: the bits of one word of labels that a property denies the events of a chunk.

    `tables` is the bytes that it holds on the device, `scratch` those that it
    takes there for each row while it runs.
    """

    clear: Callable[[Chunk, Array], None]
    tables: int
    scratch: int


@dataclass(frozen=True, slots=True)
class LabelSteps:
    """The words of labels, the steps of each, and what they take of the device's memory."""

    words: list[Word]
    steps: list[list[Step]]
    takes: Labelling


@dataclass(frozen=True, slots=True)
class LabelledChunk:
    """The events of a chunk that are kept: row numbers (int32, ascending) and labels [word, event].

    `kept` are their places in the chunk (None: all).
    """

    chunk: Chunk
    rows: Array
    labels: Array
    kept: Array | None

    def pick(self, values: Array) -> Array:
        """What a column of the chunk holds for the events that are kept."""
        return values if self.kept is None else values[self.kept]


def label_steps(plan: Plan, columns: DeviceColumns) -> LabelSteps:
    """What evaluates all properties, with its tables on the device.

    Raises
    ------
    EventError
        There are more rows than one call takes.
    """
    check_rows(columns.columns)
    words = words_for(len(plan.query.variables))
    steps = [_word_steps(plan, columns, word) for word in words]
    for column in plan.stream_keys:
        if columns.columns.type(column).kind is Kind.STRING:
            # its table, if it has one, is part of what labelling takes
            columns.text_codes(column)
    taken = [step for own_steps in steps for step in own_steps]
    takes = Labelling(
        row_bytes=_row_bytes(plan, columns, words) + max((step.scratch for step in taken), default=0),
        tables=columns.tables + sum(step.tables for step in taken),
        arrays=3 * len(plan.bulk_columns),
        rows=len(columns.columns),
    )
    return LabelSteps(words, steps, takes)


def _row_bytes(plan: Plan, columns: DeviceColumns, words: Sequence[Word]) -> int:
    """Bytes that a row of a chunk takes beside the scratch of steps: its columns, its label twice, its keys."""
    loaded = sum(columns.row_bytes(column) for column in plan.bulk_columns)
    # codes by which properties are decided may differ from those of a key
    coded = 4 * sum(isinstance(planned, CodeProperty) for planned in plan.properties)
    return loaded + coded + _COMPACTING + 2 * sum(word.all().nbytes for word in words) + 9 * len(plan.stream_keys)


def label_chunks(
    plan: Plan, columns: DeviceColumns, labelling: LabelSteps, chunk_rows: int, keep: Callable[[LabelledChunk], Kept]
) -> Iterator[Kept]:
    """Evaluate all properties chunk by chunk and yield what `keep` makes of each labelled chunk.

    On the CPU :func:`gpu_cep.engine.phase_one.label_events.label_events` does the same.

    Raises
    ------
    EventError
        An integer overflows in a property.
    """
    device, words = columns.device, labelling.words
    sources: Sources = {}
    spans = list(blocks(0, len(columns.columns), chunk_rows)) or [(0, 0)]
    chunk = Chunk(columns, sources, *spans[0])
    for number, following in enumerate([*spans[1:], None]):
        with device.lane(number):
            labels = device.xp.empty((len(words), len(chunk)), words[0].kind)
            for word, own, own_steps in zip(words, labels, labelling.steps, strict=True):
                own[:] = word.all()
                for step in own_steps:
                    step.clear(chunk, own)
        ahead = None
        if following is not None:
            # before the host waits for this chunk
            with device.lane(number + 1):
                ahead = Chunk(columns, sources, *following).prefetched()
        with device.lane(number):
            kept = keep(_compacted(plan, chunk, labels))
        yield kept
        if ahead is not None:
            chunk = ahead


def _word_steps(plan: Plan, columns: DeviceColumns, word: Word) -> list[Step]:
    properties = [planned for planned in plan.properties if word.concerns(planned)]
    return _steps(properties, columns, word) + [_key_step(column, columns, word) for column in plan.derived]


def _compacted(plan: Plan, chunk: Chunk, labels: Array) -> LabelledChunk:
    """The events of a chunk that have a label, or all without the ``filter`` step."""
    xp = chunk.device.xp
    if "filter" not in plan.steps:
        return LabelledChunk(chunk, xp.arange(chunk.low, chunk.high, dtype=xp.int32), labels, None)
    kept = xp.flatnonzero(merged_words(labels))
    return LabelledChunk(chunk, (kept + chunk.low).astype(xp.int32), xp.take(labels, kept, axis=1), kept)


def _steps(properties: Sequence[Property], columns: DeviceColumns, word: Word) -> list[Step]:
    """A step for each property, but only one for all comparisons of a column: the memory that they read is what takes the time."""
    comparisons: dict[int, list[ComparisonProperty]] = {}
    steps = []
    for planned in properties:
        match planned:
            case CodeProperty():
                steps.append(_code_step(planned, columns, word))
            case ComparisonProperty(column=column):
                comparisons.setdefault(column, []).append(planned)
            case ProgramProperty():
                steps.append(_program_step(planned, columns, word))
            case _:
                raise TypeError(f"no step for {type(planned).__name__}")
    return [*(_comparison_step(column, own, columns.device, word) for column, own in comparisons.items()), *steps]


def _code_step(planned: CodeProperty, columns: DeviceColumns, word: Word) -> Step:
    codes, values = columns.label_codes(planned)
    table = columns.device.upload(label_table(planned, values, word))

    def clear(chunk: Chunk, labels: Array) -> None:
        chunk.device.launch(mask_by_code, len(chunk), chunk.label_codes(planned.column, codes), table, labels)

    return Step(clear, in_pieces(table.nbytes), 0)


def _comparison_step(column: int, comparisons: Sequence[ComparisonProperty], device: Device, word: Word) -> Step:
    codes = device.upload(np.array([COMPARISONS[planned.comparison] for planned in comparisons], np.int64))
    constants = device.upload(np.array([planned.constant for planned in comparisons]))
    others = device.upload(np.array([word.others(planned.bits) for planned in comparisons]))

    def clear(chunk: Chunk, labels: Array) -> None:
        present = chunk.present(column)
        known = device.xp.empty(0, device.xp.uint8) if present is None else present
        device.launch(mask_by_comparisons, len(chunk), chunk.values(column), known, codes, constants, others, labels)

    return Step(clear, in_pieces(codes.nbytes, constants.nbytes, others.nbytes), 0)


def _key_step(column: int, columns: DeviceColumns, word: Word) -> Step:
    """Keeps the events whose key equals itself: it is neither NULL nor NaN."""
    nobody = word.kind(0)
    textual = columns.columns.type(column).kind is Kind.STRING

    def clear(chunk: Chunk, labels: Array) -> None:
        present = chunk.present(column)
        if present is not None:
            chunk.device.launch(mask_by_truth, len(chunk), present, nobody, labels)
        values = None if textual else chunk.values(column)
        if values is not None and values.dtype.kind == "f":
            known = (values == values).astype(chunk.device.xp.uint8)
            chunk.device.launch(mask_by_truth, len(chunk), known, nobody, labels)

    return Step(clear, 0, 2)


def _program_step(planned: ProgramProperty, columns: DeviceColumns, word: Word) -> Step:
    device, xp = columns.device, columns.device.xp
    table, _ = assemble([planned.program], tabulator(columns.columns))
    on_device = to_device(device, table)
    bits, others = word.own(planned.bits), word.others(planned.bits)

    def clear(chunk: Chunk, labels: Array) -> None:
        wanted = xp.flatnonzero(labels & bits)
        bank = _bank(planned.layout, chunk, wanted)
        registers, results = program_registers(xp, table, device.slots(wanted.size)), program_results(xp, wanted.size)
        device.launch(evaluate_rows, wanted.size, planned.program.result, on_device, bank, registers, results)
        if any_set(results.failed):
            raise overflow_error(planned, chunk.low + int(wanted[results.failed][0]))
        labels[wanted[(results.ints == 0) | results.nulls]] &= others

    tables = in_pieces(table.code.nbytes, table.int_constants.nbytes, table.float_constants.nbytes, table.lookups.nbytes)
    read = len(planned.layout.ints) + len(planned.layout.floats)
    return Step(clear, tables, _PROGRAM + _PROGRAM_COLUMN * read + _PROGRAM_REGISTER * table.registers)


def _bank(layout: BankLayout, chunk: Chunk, wanted: Array) -> ColumnBank:
    """The columns of `layout` at the wanted places of a chunk, as a bank of the interpreter."""
    xp = chunk.device.xp
    return ColumnBank(
        ints=_matrix(xp, [_int_values(chunk, column)[wanted] for column in layout.ints], wanted.size, xp.int64),
        floats=_matrix(xp, [chunk.values(column)[wanted] for column in layout.floats], wanted.size, xp.float64),
        int_nulls=_null_words(chunk, layout.ints, wanted),
        float_nulls=_null_words(chunk, layout.floats, wanted),
        vectors=xp.empty((0, 0, 0), xp.float64),
    )


def _int_values(chunk: Chunk, column: int) -> Array:
    textual = chunk.columns.columns.type(column).kind is Kind.STRING
    return chunk.text_codes(column) if textual else chunk.values(column)


def _matrix(xp: Any, arrays: Sequence[Array], length: int, dtype: Any) -> Array:
    matrix = xp.empty((len(arrays), length), dtype)
    for number, array in enumerate(arrays):
        matrix[number] = array
    return matrix


def _null_words(chunk: Chunk, columns: Sequence[int], wanted: Array) -> Array:
    """A word per row with bit c set where column c is NULL; empty if none ever is."""
    xp = chunk.device.xp
    masks = {number: chunk.present(column) for number, column in enumerate(columns)}
    if all(mask is None for mask in masks.values()):
        return xp.empty(0, xp.uint64)
    words = xp.zeros(wanted.size, xp.uint64)
    for number, mask in masks.items():
        if mask is not None:
            words |= (mask[wanted] == 0).astype(xp.uint64) << xp.uint64(number)
    return words
