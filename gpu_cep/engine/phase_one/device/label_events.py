"""Label events on a device, chunk by chunk.

A thread of its own copies one chunk while the kernels of the one before run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain, takewhile
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu_cep.analysis.types import Kind
from gpu_cep.engine.events.label_words import Word
from gpu_cep.engine.input.times import refuse_missing
from gpu_cep.engine.phase_one.device.chunks import Chunk, Sources
from gpu_cep.engine.phase_one.device.columns import DeviceColumns
from gpu_cep.engine.phase_one.device.kept_events import KeptEvents, KeptKey, KeySpan, span_of_groups
from gpu_cep.engine.phase_one.device.label_engine import no_tests, pack_labels
from gpu_cep.engine.phase_one.device.tiles import groups_of, numbers_before, tiles_of
from gpu_cep.engine.phase_one.label_steps import Coded, Compared, LabelSteps, Step
from gpu_cep.plan.event_plan import Plan
from gpu_cep_kernels.compile.launch import blocks
from gpu_cep_kernels.device.interface import Array, HostArray
from gpu_cep_kernels.device.primitives import any_set, sum_as
from gpu_cep_kernels.phase_one.label_tiles import (
    SPANNED,
    KeptColumns,
    LabelTests,
    TilePlaces,
    compact_events,
    fold_kept,
    judge_events,
    mark_kept,
    span_lanes,
)
from gpu_cep_kernels.phase_one.tiles import TILE

# The key NaN: greater than every other float seen as an ordered integer.
_NAN = np.iinfo(np.int64).max


def label_chunks(plan: Plan, columns: DeviceColumns, steps: LabelSteps, chunk_rows: int) -> Iterator[KeptEvents]:
    """Label the events chunk by chunk, and yield those of each chunk that are kept.

    On the CPU :func:`gpu_cep.engine.phase_one.label_events.label_events` does the same.

    Raises
    ------
    EventError
        An integer overflows in a property, or a timestamp is NaN.
    """
    device, tests = columns.device, [_split_steps(own) for own in steps.steps]
    sources = Sources(columns)
    _ask(sources, plan, steps)
    spans = list(blocks(0, len(columns.columns), chunk_rows)) or [(0, 0)]
    with ThreadPoolExecutor(1, thread_name_prefix="gpu_cep-upload") as uploader:
        # no thread is started for a single chunk
        chunk = _prefetch(Chunk(sources, *spans[0]), 0)
        for number, following in enumerate([*spans[1:], None]):
            # the next one comes while this thread launches kernels, and waits for them
            coming = None if following is None else uploader.submit(_prefetch, Chunk(sources, *following), number + 1)
            with device.lane(number):
                kept = _keep_events(plan, _label_chunk(plan, steps, tests, chunk))
            yield kept
            if coming is not None:
                # what is loaded of this one is let go before the next but one is asked for
                chunk = coming.result()


def _prefetch(chunk: Chunk, lane: int) -> Chunk:
    """Load all that was asked for, in a lane, and return the chunk; any thread may call it."""
    chunk.device.use()
    with chunk.device.lane(lane):
        return chunk.prefetch()


def _ask(sources: Sources, plan: Plan, steps: LabelSteps) -> None:
    """Ask for all inputs that every chunk needs, whatever it holds."""
    for step in steps.all():
        if isinstance(step.reads, Coded):
            sources.label_codes(step.reads.column, step.reads.codes)
    for column in (*chain.from_iterable(step.columns for step in steps.all()), *plan.stream_keys):
        sources.values(column)
        sources.present(column)
    sources.values(plan.query.timestamp)


@dataclass(frozen=True, slots=True)
class _WordTests:
    """The steps of a word that the first pass takes over, if there are any, and those behind it."""

    coded: Step | None
    compared: Step | None
    rest: list[Step]

    def tables(self, chunk: Chunk, number: int, word: Word) -> LabelTests:
        """Return what the first pass reads of a chunk."""
        tests = no_tests(chunk.device.xp, number, word.all())
        if self.coded is not None and isinstance(reads := self.coded.reads, Coded):
            (table,) = self.coded.tables
            tests = tests._replace(codes=chunk.label_codes(reads.column, reads.codes), table=table)
        if self.compared is not None and isinstance(reads := self.compared.reads, Compared):
            present, (operators, constants, others) = chunk.present(reads.column), self.compared.tables
            tests = tests._replace(column=chunk.values(reads.column), comparisons=operators, constants=constants, others=others)
            tests = tests if present is None else tests._replace(present=present)
        return tests


def _split_steps(steps: Sequence[Step]) -> _WordTests:
    """Return the first steps that read a column alone, one of each kind, and the rest.

    Steps behind a program stay there: which rows it is run for decides which of them may overflow.
    """
    simple = [*takewhile(lambda step: step.reads is not None, steps)]
    coded = next((step for step in simple if isinstance(step.reads, Coded)), None)
    compared = next((step for step in simple if isinstance(step.reads, Compared)), None)
    return _WordTests(coded, compared, [step for step in steps if step is not coded and step is not compared])


@dataclass(frozen=True, slots=True)
class _LabelledChunk:
    """A chunk with its labels, [word, event].

    `packed` are the same ones side by side in words of 64 bits. `keys` are the first stream key's values
    as far as the same passes read them, else empty; `is_spanned`: whether their span is asked for.
    """

    chunk: Chunk
    labels: Array
    packed: Array
    keys: Array
    is_spanned: bool


def _label_chunk(plan: Plan, steps: LabelSteps, tests: Sequence[_WordTests], chunk: Chunk) -> _LabelledChunk:
    """Return a chunk with the labels of its events."""
    device, size, keys = chunk.device, len(chunk), _plain_key(plan, chunk)
    room = steps.room(device.xp, size)
    for number, (word, own) in enumerate(zip(steps.words, tests, strict=True)):
        tables = own.tables(chunk, number, word)
        packed = pack_labels(room, tables)
        device.launch(judge_events, packed.shape[1], size, tables, packed)
        for step in own.rest:
            step.clear(chunk, room[number])
    labels = room[:, :size].reshape(len(room), size)
    return _LabelledChunk(chunk, labels, room.view(np.uint64), keys, bool(keys.size) and _is_spanned(plan, chunk))


@dataclass(frozen=True, slots=True)
class _CountedTiles:
    """Which events of a chunk are kept (bits by tile), what tiles count of them, and, on the host, what groups of tiles do."""

    bits: Array
    inner: Array
    groups: HostArray

    @property
    def kept(self) -> int:
        """Return how many events are kept."""
        return int(self.groups[0].sum())


def _count_tiles(labelled: _LabelledChunk, keeps_all: bool) -> _CountedTiles:
    """Count what is kept of a chunk, and find the span of its keys if that is asked for."""
    device, size = labelled.chunk.device, len(labelled.chunk)
    xp, tiles = device.xp, tiles_of(size)
    bits, inner = xp.empty(tiles, np.uint32), xp.empty(tiles, np.int32)
    packs = bits.view(np.uint8)
    device.launch(mark_kept, packs.size, keeps_all, labelled.labels, labelled.packed, packs)
    spans = xp.empty((len(SPANNED), TILE * groups_of(size) if labelled.is_spanned else 0), np.int64)
    device.launch(span_lanes, spans.shape[1], bits, labelled.keys, spans)
    groups = xp.empty((1 + len(SPANNED) if spans.size else 1, groups_of(size)), np.int64)
    device.launch(fold_kept, tiles, bits, spans, inner, groups)
    return _CountedTiles(bits, inner, device.download(groups))


def _plain_key(plan: Plan, chunk: Chunk) -> Array:
    """Return the values of the first stream key, if they are integers or codes; else none."""
    values = chunk.values(plan.stream_keys[0]) if plan.stream_keys else None
    return chunk.device.xp.empty(0, np.int32) if values is None or values.dtype.kind == "f" else values


def _is_spanned(plan: Plan, chunk: Chunk) -> bool:
    """Return whether the first stream key's order is that of its values, none of them NULL."""
    if not plan.stream_keys:
        return False
    column = plan.stream_keys[0]
    return chunk.columns.columns.type(column).kind is not Kind.STRING and chunk.present(column) is None


def _keep_events(plan: Plan, labelled: _LabelledChunk) -> KeptEvents:
    """Return the events of a chunk that have a label, or all of them without the ``filter`` step.

    Raises
    ------
    EventError
        A timestamp of the chunk is NaN.
    """
    times, keeps_all = _times(plan, labelled.chunk), "filter" not in plan.pruning
    if keeps_all and not labelled.is_spanned:
        return _keep_all(plan, labelled, times, None)
    tiles = _count_tiles(labelled, keeps_all)
    span = span_of_groups(tiles.groups) if labelled.is_spanned else None
    if tiles.kept == len(labelled.chunk):
        return _keep_all(plan, labelled, times, span)
    return _compact(plan, labelled, times, tiles, span)


def _keep_all(plan: Plan, labelled: _LabelledChunk, times: Array, span: KeySpan | None) -> KeptEvents:
    """Return all events of a chunk; their columns are not copied. The first key has the given span."""
    chunk, xp = labelled.chunk, labelled.chunk.device.xp
    rows = xp.arange(chunk.low, chunk.high, dtype=np.int32)
    keys = _kept_keys(plan, chunk, labelled.keys, lambda column: column, span)
    return KeptEvents(rows, xp.ascontiguousarray(labelled.labels), times.astype(_time_type(times), copy=False), tuple(keys))


def _compact(plan: Plan, labelled: _LabelledChunk, times: Array, tiles: _CountedTiles, span: KeySpan | None) -> KeptEvents:
    """Return the events of a chunk that are kept, side by side; the first key has the given span."""
    chunk, labels, keys = labelled.chunk, labelled.labels, labelled.keys
    device, xp, size = chunk.device, chunk.device.xp, tiles.kept
    kept = KeptColumns(
        rows=xp.empty(size, np.int32),
        labels=xp.empty((len(labels), size), labels.dtype),
        times=xp.empty(size, _time_type(times)),
        keys=xp.empty(size if keys.size else 0, keys.dtype),
    )
    if size:
        places = TilePlaces(tiles.bits, tiles.inner, device.upload(numbers_before(tiles.groups[0])))
        device.launch(compact_events, len(chunk), chunk.low, labels, times, keys, places, kept)
    picked = _kept_keys(plan, chunk, kept.keys, lambda column: column[kept.rows - np.int32(chunk.low)], span)
    return KeptEvents(kept.rows, kept.labels, kept.times, tuple(picked))


def _time_type(times: Array) -> npt.DTypeLike:
    """Return the type in which times are kept."""
    return np.float64 if times.dtype.kind == "f" else np.int64


def _times(plan: Plan, chunk: Chunk) -> Array:
    """Return the timestamps of a chunk as integers or float64, -0.0 as 0.0."""
    xp, column = chunk.device.xp, plan.query.timestamp
    times = chunk.values(column)
    if times.dtype.kind == "i":
        return times
    missing = xp.isnan(times)
    refuse_missing(chunk.columns.columns, column, "NaN", int(sum_as(np.int64, missing)) if any_set(missing) else 0)
    # -0.0 is 0.0, also to a sort by bits
    return times.astype(xp.float64) + 0.0


def _kept_keys(plan: Plan, chunk: Chunk, first: Array, pick: Callable[[Array], Array], span: KeySpan | None) -> Iterator[KeptKey]:
    """Yield the stream keys of the events that are kept.

    `pick` returns a column's values of these. The first key's are there if it has no floats, and its `span` may be.
    """
    for number, column in enumerate(plan.stream_keys):
        values, present = chunk.values(column), chunk.present(column)
        is_first = not number and values.dtype.kind != "f"
        picked = first if is_first else pick(values)
        if values.dtype.kind == "f":
            picked = _ordered_bits(chunk.device.xp, picked)
        yield KeptKey(picked, None if present is None else pick(present), span if is_first else None)


def _ordered_bits(xp: Any, values: Array) -> Array:
    """Return floats as int64 in the same order: -0.0 as 0.0, NaN last."""
    bits = (values.astype(xp.float64) + 0.0).view(xp.int64)
    ordered = xp.where(bits < 0, bits ^ xp.int64(_NAN), bits)
    return xp.where(xp.isnan(values), xp.int64(_NAN), ordered)
