"""Label events on the CPU with the variables whose properties they satisfy (phase 1, first stage).

Events without a label are dropped.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from gpu_cep.analysis.types import Kind
from gpu_cep.engine.events.label_words import Word, Words
from gpu_cep.engine.input.buffers import new_values
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.input.machine_values import Array
from gpu_cep.engine.input.pieces import Pieces
from gpu_cep.engine.lowering.programs import evaluate_program
from gpu_cep.engine.lowering.text_predicates import FoundCodes, Values, constant_codes
from gpu_cep.engine.phase_one.label_steps import (
    Coded,
    Compared,
    ComparisonMask,
    Comparisons,
    LabelSteps,
    Mask,
    label_steps,
    others_at_null,
)
from gpu_cep.engine.phase_one.run import Run
from gpu_cep.identity import Identity
from gpu_cep.plan.event_plan import CodeProperty, Plan
from gpu_cep.plan.programs import Program
from gpu_cep.records import record
from gpu_cep_kernels.compile.launch import blocks, slices, spread, threads_for, threads_of
from gpu_cep_kernels.device.interface import HOST, Backend
from gpu_cep_kernels.device.primitives import merged_words
from gpu_cep_kernels.phase_one.kept_rows import SPARE
from gpu_cep_kernels.phase_one.label_masks import compact, mask_by_code, mask_by_comparison, mask_by_packed_code, mask_by_truth
from gpu_cep_kernels.rules.scalars import LABEL_BITS
from gpu_cep_kernels.rules.tables import ColumnBank, ProgramResults, ProgramTable

# Events per block: labels of a few variables stay in the second-level cache, and threads are seldom held up between blocks.
BLOCK = 1 << 18

# Tables of so many bits are one number.
_PACKED_BITS = 64


@record()
class LabelledRows:
    """The kept events as a list of slices: ascending row numbers, and labels [word, event].

    `uniform`: whether all events have one label, which is then a single one in memory, repeated.
    """

    rows: list[npt.NDArray[np.int32]]
    labels: list[Words]
    uniform: bool = False

    @classmethod
    def of(cls, slices: Sequence[tuple[npt.NDArray[np.int32], Words]]) -> LabelledRows:
        """Return the kept events of all slices, each given by its row numbers and labels."""
        return cls([rows for rows, _ in slices], [labels for _, labels in slices])


@record()
class HostBlock:
    """The rows [low, high) of the columns on the host."""

    columns: EventColumns
    low: int
    high: int

    def __len__(self) -> int:
        return self.high - self.low

    def values(self, column: int) -> Array:
        """Return the column in its machine representation; text as its codes."""
        return self.columns.pieces(column).between(self.low, self.high)

    def present(self, column: int) -> npt.NDArray[np.uint8] | None:
        """Return uint8: 0 where the column is NULL; None if it never is."""
        nulls = self.columns.null_mask(column)
        return None if nulls is None else (~nulls[self.low : self.high]).view(np.uint8)

    def label_codes(self, column: int, codes: FoundCodes | _KnownCodes) -> Array:
        """Return the block's rows of `codes`, which stand for the values of a text column."""
        loaded: Array = codes.load(self.low, self.high)
        return loaded


@record()
class _KnownCodes:
    """Codes of a text column, already computed for all rows."""

    codes: Pieces

    def load(self, low: int, high: int) -> Array:
        """Return the codes of the rows [low, high)."""
        return self.codes.between(low, high)


@record()
class HostLabelEngine:
    """The CPU's operations of labelling: a vectorised loop for each comparison."""

    events: EventColumns
    place: Backend = HOST

    def label_codes(self, planned: CodeProperty) -> tuple[FoundCodes | _KnownCodes, Values]:
        """Return codes for the values of a text column, and the values that the codes stand for.

        If all predicates compare with constants, values other than these share one code.
        """
        if not self.events.texts.has_dictionary(planned.column):
            found = constant_codes(self.events.arrow(planned.column), planned.predicates)
            if found is not None:
                return found
        codes, values = self.events.texts.label_codes(planned.column)
        return _KnownCodes(codes), values

    def code_mask(self, table: Words, word: Word) -> tuple[Mask, tuple[Array, ...]]:
        """Return a function that ANDs each label with ``table[code]``, and the arrays that it holds.

        A small table is packed into one number.
        """
        bits = word.everyone.bit_length()
        if bits * len(table) > _PACKED_BITS:
            return lambda codes, labels: mask_by_code(0, len(codes), codes, table, labels), (table,)
        entries = _packed(Identity(table), bits)
        return lambda codes, labels: mask_by_packed_code(0, len(codes), codes, entries, bits, labels), ()

    def comparison_mask(self, comparisons: Comparisons) -> tuple[ComparisonMask, tuple[Array, ...]]:
        """Return a function that clears the bits of failed comparisons, and the arrays that it holds.

        It makes a pass over the labels for each comparison, and one for NULLs.
        """
        at_null = others_at_null(comparisons)

        def mask(values: Array, present: Array | None, labels: Array) -> None:
            for operator, constant, others in zip(*comparisons, strict=True):
                mask_by_comparison(0, len(values), values, int(operator), constant, others, labels)
            if present is not None:
                mask_by_truth(0, len(present), present, at_null, labels)

        return mask, tuple(comparisons)

    def truth_mask(self, word: Word) -> tuple[Mask, tuple[Array, ...]]:
        """Return a function that clears each label for which a uint8 is 0."""
        return lambda truth, labels: mask_by_truth(0, len(truth), truth, word.kind(0), labels), ()

    def tests_key(self, column: int) -> bool:
        """Return whether a stream key is NULL or may be NaN in some event."""
        return self.events.type(column).kind is Kind.FLOAT or self.events.null_mask(column) is not None

    def evaluate(self, program: Program, table: ProgramTable, bank: ColumnBank) -> ProgramResults:
        """Return the results of a program for all rows of `bank`."""
        return evaluate_program(program, table, bank)


@lru_cache(maxsize=256)
def _packed(table: Identity[Words], bits: int) -> np.uint64:
    """Return a table of entries of so many bits as one number; tables of few values are remembered, too."""
    return np.uint64(sum(entry << bits * code for code, entry in enumerate(table.value.tolist())))


@record()
class Labeller:
    """Labels ranges of rows on the CPU; threads may share it.

    `borders` are the rows, ascending, at which a piece of a column begins that the steps read.
    """

    columns: EventColumns
    steps: LabelSteps
    borders: tuple[int, ...]

    def room(self, size: int) -> Words:
        """Return an array of `size` labels, [word, event], with arbitrary content."""
        return new_values((len(self.steps.words), size), self.steps.words[0].kind)

    def labels(self, low: int, high: int) -> Words:
        """Return the labels of the events [low, high)."""
        labels = self.room(high - low)
        self.fill(low, high, labels)
        return labels

    def fill(self, low: int, high: int, labels: Words) -> None:
        """Write the labels of the events [low, high) to `labels`, [word, event].

        It is fastest for blocks of events whose labels fit the cache. Steps read each piece of a column where it lies.
        """
        inside = self.borders[bisect_right(self.borders, low) : bisect_left(self.borders, high)]
        for begin, end in pairwise((low, *inside, high)):
            self.steps.fill(HostBlock(self.columns, begin, end), labels[:, begin - low : end - low])


def make_labeller(plan: Plan, columns: EventColumns) -> Labeller:
    """Return a labeller of the events of `columns` by the properties of `plan`.

    Raises
    ------
    EventError
        There are more rows than an int32 numbers.
    """
    steps = label_steps(plan, HostLabelEngine(columns))
    _convert_columns(plan, columns)
    return Labeller(columns, steps, _borders(columns, steps))


def _borders(columns: EventColumns, steps: LabelSteps) -> tuple[int, ...]:
    """Return the rows, ascending, at which a piece of a column begins that is looked up or compared."""
    reads = [step.reads for step in steps.all()]
    coded = [read.codes.codes for read in reads if isinstance(read, Coded) and isinstance(read.codes, _KnownCodes)]
    compared = [columns.pieces(read.column) for read in reads if isinstance(read, Compared)]
    return tuple(sorted({begin for pieces in (*coded, *compared) for begin in pieces.begins}))


def prepare_columns(run: Run, wanted: Iterable[int], in_pieces: Iterable[int], keys: tuple[int, ...]) -> None:
    """Load all columns that phase 1 reads, several at a time: those of properties, and these.

    The chunks of the `wanted` ones are joined. Those that are read `in_pieces` need not be, nor need
    those of properties. Text keys are encoded. With one thread nothing is done: each column is loaded when
    it is first read.
    """
    plan, threads = run.plan, threads_for(len(run.columns), run.threads)
    if threads > 1:
        with run.profile.stage("columns"):
            tested = (column for planned in plan.properties for column in planned.columns)
            run.columns.prepare(wanted, (*in_pieces, *tested), keys, threads)


def _convert_columns(plan: Plan, columns: EventColumns) -> None:
    """Convert the columns that steps read, before threads ask for them."""
    read = {column for planned in plan.properties if not isinstance(planned, CodeProperty) for column in planned.columns}
    keys = {column for column in plan.derived if columns.type(column).kind is Kind.FLOAT}
    for column in read | keys:
        columns.pieces(column)
    for column in read | set(plan.derived):
        columns.null_mask(column)


def label_events(plan: Plan, columns: EventColumns, threads: int) -> LabelledRows:
    """Return the labelled events, after one pass over the columns, block by block.

    With the ``filter`` step, events without a label are dropped (thesis Theorem 5.1). With
    ``partition``, so are events whose derived key is NULL or NaN, because it equals no other.
    """
    return label_with(make_labeller(plan, columns), plan, threads)


def label_with(labels_of: Labeller, plan: Plan, threads: int) -> LabelledRows:
    """Return the labelled events as :func:`label_events` does, given the labeller of the plan and its columns."""
    keeps_all = "filter" not in plan.pruning
    spans = slices(len(labels_of.columns), threads) or [(0, 0)]
    if not labels_of.steps.all():
        everyone = np.array([[word.all()] for word in labels_of.steps.words])
        # as by broadcast_to, which takes longer than all other labels of few events
        labels = [np.ndarray((len(everyone), high - low), everyone.dtype, everyone, strides=(everyone.itemsize, 0)) for low, high in spans]
        return LabelledRows(spread(_row_numbers, spans, threads), labels, uniform=True)

    def label(span: tuple[int, int]) -> tuple[npt.NDArray[np.int32], Words]:
        low, high = span
        rows, labels = new_values(high - low + SPARE, np.int32), labels_of.room(high - low)
        scratch = labels_of.room(min(BLOCK, high - low))
        count = 0
        for start, end in blocks(low, high, BLOCK):
            block = scratch[:, : end - start]
            labels_of.fill(start, end, block)
            marks = merged_words(block)
            kept = [compact(start, marks, own, keeps_all, rows[count:], target[count:]) for own, target in zip(block, labels, strict=True)]
            count += kept[0]
        return rows[:count], labels[:, :count]

    return LabelledRows.of(spread(label, spans, threads))


def _row_numbers(span: tuple[int, int]) -> npt.NDArray[np.int32]:
    """Return the numbers of the rows [low, high)."""
    low, high = span
    if high - low <= BLOCK:
        return np.arange(low, high, dtype=np.int32)
    rows, first = new_values(high - low, np.int32), np.arange(BLOCK, dtype=np.int32)
    for start, end in blocks(low, high, BLOCK):
        np.add(first[: end - start], np.int32(start), out=rows[start - low : end - low])
    return rows


def events_of_variables(plan: Plan, columns: EventColumns, threads: int | None) -> dict[str, int]:
    """Return, by name, how many events satisfy the properties of each variable of `plan`, to explain why there are no matches."""
    labels, counts = label_events(plan, columns, threads_of(threads)).labels, {}
    for v, variable in enumerate(plan.query.variables):
        words = [part[v // LABEL_BITS] for part in labels]
        counts[variable.name] = sum(int(np.count_nonzero(own & own.dtype.type(1 << v % LABEL_BITS))) for own in words)
    return counts
