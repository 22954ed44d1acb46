"""Build the steps that label events, from a plan's properties; the CPU and a card share them.

A step evaluates a property, or all comparisons of a column, for a block of events. It clears the
label bits of what fails. A :class:`LabelEngine` holds what differs between the CPU and a card: the
array module, the codes of text, the fastest kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, reduce
from operator import and_
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from gpu_cep.analysis.types import Kind
from gpu_cep.engine.events.label_words import Word, Words, words_for
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.input.few_texts import FewTexts
from gpu_cep.engine.lowering.programs import WIDER, assemble, make_bank, tabulator
from gpu_cep.engine.lowering.text_predicates import TRUE, Values, constants_of, domain_of, truth_of
from gpu_cep.errors import EventError
from gpu_cep.identity import Identity, while_alive
from gpu_cep.plan.event_plan import CodeProperty, ComparisonProperty, Plan, ProgramProperty, Property
from gpu_cep.plan.programs import Program
from gpu_cep.plan.timeouts import TIMEOUT
from gpu_cep.records import record
from gpu_cep_kernels.device.interface import Array, Backend
from gpu_cep_kernels.device.packing import to_device
from gpu_cep_kernels.device.primitives import any_set
from gpu_cep_kernels.rules.scalars import COMPARISONS
from gpu_cep_kernels.rules.tables import ColumnBank, ProgramResults, ProgramTable

# Row numbers are int32.
_MOST_ROWS = 2**31

# Bytes per row while a property's program runs: places, banks' NULL words, results, and scratch.
_PROGRAM = 3 * 8 + 5 * 8 + 8 + 2 * 8 + 2 + 4 * 8
# The same for each column that it reads, gathered and in its bank, and for each register.
_PROGRAM_COLUMN, _PROGRAM_REGISTER = 2 * 8, 8 + 8 + 1
# Bytes per row while a key of floats is compared with itself: the result as bool, and as uint8.
_KEY = 2


# Codes of a text column; the blocks of an engine load what that engine returns.
Codes = Any


# The properties of the variables of a word: comparisons by their columns, and all others.
_WordProperties = tuple[dict[int, list[ComparisonProperty]], list[Property]]


class Block(Protocol):
    """The rows [low, low + len) of the columns, as arrays of an engine's array module."""

    @property
    def low(self) -> int:
        """Return the first row."""

    def __len__(self) -> int: ...

    def values(self, column: int) -> Array:
        """Return the column in its machine representation; text as its codes."""

    def present(self, column: int) -> Array | None:
        """Return uint8: 0 where the column is NULL; None if it never is."""

    def label_codes(self, column: int, codes: Codes) -> Array:
        """Return the block's rows of `codes`, which stand for the values of a text column."""


class Comparisons(NamedTuple):
    """The properties ``column φ constant`` of one column.

    ``others[t]`` are the label bits that stay if property t fails.
    """

    operators: npt.NDArray[np.int64]
    constants: npt.NDArray[Any]
    others: Words


# Clears bits of labels: (what decides, for each label, labels) → None.
Mask = Callable[[Array, Array], None]
# The same: (values, where they are not NULL, labels) → None.
ComparisonMask = Callable[[Array, Array | None, Array], None]


class LabelEngine(Protocol):
    """The operations of labelling that the CPU and a card implement in different ways."""

    @property
    def place(self) -> Backend:
        """Return where arrays lie and kernels run."""

    @property
    def events(self) -> EventColumns:
        """Return the columns as the host sees them."""

    def label_codes(self, planned: CodeProperty) -> tuple[Codes, Values]:
        """Return codes for the values of a text column, and the values that the codes stand for.

        Values may share a code if all predicates of the property agree on them.
        """

    def code_mask(self, table: Words, word: Word) -> tuple[Mask, tuple[Array, ...]]:
        """Return a function that ANDs each label with ``table[code]``, and the arrays that it holds."""

    def comparison_mask(self, comparisons: Comparisons) -> tuple[ComparisonMask, tuple[Array, ...]]:
        """Return a function that clears the bits of failed comparisons, and the arrays that it holds.

        A comparison with NULL fails.
        """

    def truth_mask(self, word: Word) -> tuple[Mask, tuple[Array, ...]]:
        """Return a function that clears each label for which a uint8 is 0, and the arrays that it holds."""

    def tests_key(self, column: int) -> bool:
        """Return whether a stream key is NULL or NaN in some event, as far as is known."""

    def evaluate(self, program: Program, table: ProgramTable, bank: ColumnBank) -> ProgramResults:
        """Return the results of a program for all rows of `bank`; `table` holds only this program."""


@record()
class Coded:
    """What a step looks up: the codes of a text column's values."""

    column: int
    codes: Codes


@record()
class Compared:
    """What a step compares with constants: a column."""

    column: int


@record()
class Step:
    """A step that evaluates properties for a block of events, and clears the bits of failed ones.

    It does so in one word of the labels. `tables` are the arrays that it holds. `row_bytes` are the
    bytes per row of its scratch. `reads` says what it judges; it is None for programs and keys.
    `columns` are those whose values, and where they are NULL, it reads of every block.
    """

    clear: Callable[[Block, Array], None]
    tables: tuple[Array, ...] = ()
    row_bytes: int = 0
    reads: Coded | Compared | None = None
    columns: tuple[int, ...] = ()


@record()
class LabelSteps:
    """The words of a label, and the steps that fill each word."""

    words: tuple[Word, ...]
    steps: list[list[Step]]

    def all(self) -> list[Step]:
        """Return the steps of all words."""
        return [step for own in self.steps for step in own]

    def room(self, xp: Any, size: int) -> Array:
        """Return an array of `size` labels, [word, event], with arbitrary content; a few more fill the last 64 bits."""
        kind = np.dtype(self.words[0].kind)
        return xp.empty((len(self.words), -(-size * kind.itemsize // 8)), np.uint64).view(kind)

    def fill(self, block: Block, labels: Array) -> None:
        """Write the labels of a block's events to `labels`, [word, event]."""
        for word, own, steps in zip(self.words, labels, self.steps, strict=True):
            own[:] = word.all()
            for step in steps:
                step.clear(block, own)


def label_steps(plan: Plan, engine: LabelEngine) -> LabelSteps:
    """Build the steps for all properties and derived stream keys of `plan`.

    Raises
    ------
    EventError
        There are more rows than an int32 numbers.
    """
    rows = len(engine.events)
    if rows >= _MOST_ROWS:
        raise EventError(f"{rows:,} events are more than one call takes ({_MOST_ROWS - 1:,}): split them by stream")
    words, properties = words_for(len(plan.query.variables)), _properties_of(plan)
    return LabelSteps(words, [_word_steps(plan, own, engine, word) for word, own in zip(words, properties, strict=True)])


def _word_steps(plan: Plan, properties: _WordProperties, engine: LabelEngine, word: Word) -> list[Step]:
    """Build the steps of one word, cheap ones first."""
    comparisons, others = properties
    return [
        *(_comparison_step(column, own, engine, word) for column, own in comparisons.items()),
        *(_property_step(planned, engine, word) for planned in others),
        *(_key_step(column, engine, word) for column in plan.derived if plan.settings.kind != TIMEOUT and engine.tests_key(column)),
    ]


@while_alive
def _properties_of(plan: Plan) -> list[_WordProperties]:
    """Return the properties of the variables of each word: comparisons by their columns, and all others."""
    found: list[_WordProperties] = []
    for word in words_for(len(plan.query.variables)):
        own = [planned for planned in plan.properties if word.concerns(planned)]
        found.append((_comparisons_by_column(own), [planned for planned in own if not isinstance(planned, ComparisonProperty)]))
    return found


def _comparisons_by_column(properties: Sequence[Property]) -> dict[int, list[ComparisonProperty]]:
    """Group the comparisons by their column, so that one step reads it for all of them."""
    found: dict[int, list[ComparisonProperty]] = {}
    for planned in properties:
        if isinstance(planned, ComparisonProperty):
            found.setdefault(planned.column, []).append(planned)
    return found


def _property_step(planned: Property, engine: LabelEngine, word: Word) -> Step:
    """Build the step of a property that is no comparison."""
    match planned:
        case CodeProperty():
            return _code_step(planned, engine, word)
        case ProgramProperty():
            return _program_step(planned, engine, word)
    raise TypeError(f"no step for {type(planned).__name__}")


def _code_step(planned: CodeProperty, engine: LabelEngine, word: Word) -> Step:
    """Build the step that looks up the code of each row in a table of label words."""
    codes, values = engine.label_codes(planned)
    few = engine.events.texts.few_texts(planned.column, values)
    mask, tables = engine.code_mask(label_table(planned, values, few, word), word)
    return Step(lambda block, labels: mask(block.label_codes(planned.column, codes), labels), tables, reads=Coded(planned.column, codes))


def label_table(planned: CodeProperty, values: Values, few: FewTexts | None, word: Word) -> Words:
    """Return the label word of each value, and of NULL last; that of constants, and that of `few` values, is remembered."""
    constants = constants_of(Identity(planned.predicates))
    if constants is not None and values is constants.values:
        return _table_of_constants(Identity(planned), word)
    return _label_table(planned, values, word) if few is None else _table_of_few(Identity(planned), few, word)


@lru_cache(maxsize=256)
def _table_of_few(planned: Identity[CodeProperty], values: FewTexts, word: Word) -> Words:
    """Return the label word of each of a few values, and of NULL."""
    return _label_table(planned.value, values.array(), word)


@lru_cache(maxsize=256)
def _table_of_constants(planned: Identity[CodeProperty], word: Word) -> Words:
    """Return the label word of each constant that a property compares with, of other text, and of NULL."""
    constants = constants_of(Identity(planned.value.predicates))
    assert constants is not None
    return _label_table(planned.value, constants.values, word)


def _label_table(planned: CodeProperty, values: Values, word: Word) -> Words:
    """Return the label word of each value, and of NULL last."""
    table, domain = np.full(len(values) + 1, word.all()), domain_of(values)
    for predicate, bits in planned.predicates:
        if word.own(bits):
            table[truth_of(predicate, domain) != TRUE] &= word.others(bits)
    return table


def _comparison_step(column: int, planned: Sequence[ComparisonProperty], engine: LabelEngine, word: Word) -> Step:
    """Build the step that compares a column with constants."""
    kind = np.float64 if engine.events.type(column).kind is Kind.FLOAT else np.int64
    comparisons = Comparisons(
        operators=np.array([COMPARISONS[each.comparison] for each in planned], np.int64),
        constants=np.array([each.constant for each in planned], kind),
        others=np.array([word.others(each.bits) for each in planned]),
    )
    mask, tables = engine.comparison_mask(comparisons)

    def clear(block: Block, labels: Array) -> None:
        mask(block.values(column), block.present(column), labels)

    return Step(clear, tables, reads=Compared(column), columns=(column,))


def others_at_null(comparisons: Comparisons) -> np.unsignedinteger[Any]:
    """Return the label bits that stay where the column is NULL: those of no comparison."""
    return reduce(and_, comparisons.others)


def _key_step(column: int, engine: LabelEngine, word: Word) -> Step:
    """Build the step that clears the labels of events whose key is NULL or NaN: it equals no key."""
    mask, tables = engine.truth_mask(word)
    is_float = engine.events.type(column).kind is Kind.FLOAT

    def clear(block: Block, labels: Array) -> None:
        present = block.present(column)
        if present is not None:
            mask(present, labels)
        if is_float:
            values = block.values(column)
            mask((values == values).view(np.uint8), labels)

    return Step(clear, tables, row_bytes=_KEY, columns=(column,))


def _program_step(planned: ProgramProperty, engine: LabelEngine, word: Word) -> Step:
    """Build the step that runs a program; rows whose labels it cannot change are left out."""
    xp, layout = engine.place.xp, planned.layout
    table, _ = assemble([planned.program], tabulator(engine.events))
    table = to_device(engine.place, table)
    bits, others = word.own(planned.bits), word.others(planned.bits)

    def read(block: Block, column: int, wanted: Array) -> tuple[Array, Array | None]:
        present = block.present(column)
        return block.values(column)[wanted], None if present is None else present[wanted] == 0

    def clear(block: Block, labels: Array) -> None:
        wanted = xp.flatnonzero(labels[: len(block)] & bits)
        ints, floats = ([read(block, column, wanted) for column in columns] for columns in (layout.ints, layout.floats))
        results = engine.evaluate(planned.program, table, make_bank(xp, ints, floats, wanted.size))
        if any_set(results.failed):
            row = engine.events.number_of(block.low + int(wanted[results.failed][0]))
            raise EventError(f"integer overflow in {planned.text} at input row {row}; {WIDER}")
        labels[wanted[(results.ints == 0) | results.nulls]] &= others

    row_bytes = _PROGRAM + _PROGRAM_COLUMN * (len(layout.ints) + len(layout.floats)) + _PROGRAM_REGISTER * table.registers
    tables = table.code, table.int_constants, table.float_constants, table.lookups
    return Step(clear, tables, row_bytes, columns=(*layout.ints, *layout.floats))
