"""Label events on a device, chunk by chunk.

The copies of one chunk overlap with the kernels of the one before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from gpu_cep.analysis.types import Kind
from gpu_cep.engine.events.label_words import Word, Words
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.lowering.programs import program_registers, program_results
from gpu_cep.engine.lowering.text_predicates import Values
from gpu_cep.engine.phase_one.device.card_memory import Labelling, in_pieces
from gpu_cep.engine.phase_one.device.columns import DeviceColumns, Input
from gpu_cep.engine.phase_one.label_steps import CodeMask, ComparisonMask, Comparisons, LabelSteps, Loadable, label_steps
from gpu_cep.plan.event_plan import CodeProperty, Plan
from gpu_cep.plan.programs import Program
from gpu_cep_kernels.compile.launch import blocks
from gpu_cep_kernels.device.interface import Array, Device
from gpu_cep_kernels.device.primitives import merged_words
from gpu_cep_kernels.phase_one.label_masks import mask_by_code, mask_by_comparisons
from gpu_cep_kernels.rules.interpreter import evaluate_rows
from gpu_cep_kernels.rules.tables import ColumnBank, ProgramResults, ProgramTable

Kept = TypeVar("Kept")

# Bytes per row while a chunk is compacted: what is kept of it, and the scratch of its times or keys.
_COMPACTING = 8 + 4 + 8 + 6 * 8

# What chunks load: each kind of input of each column.
Sources = dict[tuple[str, int], Loadable | None]


@dataclass
class Chunk:
    """The rows [low, high) of the columns; an input is loaded when it is first asked for.

    `sources` are the inputs that this or an earlier chunk has asked for.
    """

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
        """Return the column in its machine representation; text as its codes."""
        if self.columns.columns.type(column).kind is Kind.STRING:
            return self._load("text", column, self.columns.text_codes)
        return self._load("values", column, self.columns.values)

    def present(self, column: int) -> Array | None:
        """Return uint8: 0 where the column is NULL; None if it never is."""
        return self._load("present", column, self.columns.present)

    def label_codes(self, column: int, codes: Loadable) -> Array:
        """Return the chunk's rows of `codes`, which stand for the values of a text column."""
        return self._load("label", column, lambda _: codes)

    def _load(self, kind: str, column: int, source: Callable[[int], Loadable | None]) -> Array | None:
        """Return the rows of an input, loaded on first use."""
        key = kind, column
        if key not in self.sources:
            self.sources[key] = source(column)
        if key not in self._loaded:
            self._loaded[key] = _load_rows(self.sources[key], self.low, self.high)
        return self._loaded[key]

    def prefetch(self) -> Chunk:
        """Load the rows of all inputs that earlier chunks asked for, and return the chunk."""
        self._loaded = {key: _load_rows(source, self.low, self.high) for key, source in self.sources.items()}
        return self


def _load_rows(source: Loadable | None, low: int, high: int) -> Array | None:
    return None if source is None else source.load(low, high)


@dataclass(frozen=True, slots=True)
class DeviceLabelEngine:
    """The device's operations of labelling.

    All comparisons of a column share a pass, because reading memory takes the time.
    """

    columns: DeviceColumns

    @property
    def place(self) -> Device:
        return self.columns.device

    @property
    def events(self) -> EventColumns:
        return self.columns.columns

    def label_codes(self, planned: CodeProperty) -> tuple[Input, Values]:
        """Return codes for the values of a text column, and the values that the codes stand for."""
        return self.columns.label_codes(planned)

    def code_mask(self, table: Words, word: Word) -> tuple[CodeMask, tuple[Array, ...]]:
        """Return a function that ANDs each label with ``table[code]``, and the table on the device."""
        held = self.place.upload(table)
        return lambda codes, labels: self.place.launch(mask_by_code, codes.size, codes, held, labels), (held,)

    def comparison_mask(self, comparisons: Comparisons) -> tuple[ComparisonMask, tuple[Array, ...]]:
        """Return a function that clears the bits of failed comparisons, and the arrays that it holds.

        A comparison with NULL fails.
        """
        xp, held = self.place.xp, tuple(self.place.upload(array) for array in comparisons)

        def mask(values: Array, present: Array | None, labels: Array) -> None:
            known = xp.empty(0, xp.uint8) if present is None else present
            self.place.launch(mask_by_comparisons, values.size, values, known, *held, labels)

        return mask, held

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
        """Return the values of a column of the chunk at the events that are kept."""
        return values if self.kept is None else values[self.kept]


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
        tables=columns.tables + sum(in_pieces(*(table.nbytes for table in step.tables)) for step in steps.all()),
        arrays=3 * len(plan.bulk_columns),
        rows=len(columns.columns),
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


def label_chunks(
    plan: Plan, columns: DeviceColumns, steps: LabelSteps, chunk_rows: int, keep: Callable[[LabelledChunk], Kept]
) -> Iterator[Kept]:
    """Label the events chunk by chunk, and yield what `keep` makes of each labelled chunk.

    On the CPU :func:`gpu_cep.engine.phase_one.label_events.label_events` does the same.

    Raises
    ------
    EventError
        An integer overflows in a property.
    """
    device = columns.device
    sources: Sources = {}
    spans = list(blocks(0, len(columns.columns), chunk_rows)) or [(0, 0)]
    chunk = Chunk(columns, sources, *spans[0])
    for number, following in enumerate([*spans[1:], None]):
        with device.lane(number):
            labels = steps.room(device.xp, len(chunk))
            steps.fill(chunk, labels)
        ahead = None
        if following is not None:
            # before the host waits for this chunk
            with device.lane(number + 1):
                ahead = Chunk(columns, sources, *following).prefetch()
        with device.lane(number):
            kept = keep(_compact(plan, chunk, labels))
        yield kept
        if ahead is not None:
            chunk = ahead


def _compact(plan: Plan, chunk: Chunk, labels: Array) -> LabelledChunk:
    """Return the events of a chunk that have a label, or all of them without the ``filter`` step."""
    xp = chunk.device.xp
    if "filter" not in plan.pruning:
        return LabelledChunk(chunk, xp.arange(chunk.low, chunk.high, dtype=xp.int32), labels, None)
    kept = xp.flatnonzero(merged_words(labels))
    return LabelledChunk(chunk, (kept + chunk.low).astype(xp.int32), xp.take(labels, kept, axis=1), kept)
