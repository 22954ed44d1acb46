"""Hold what a stream keeps between two calls, and write it as bytes."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gpu_cep.engine.input.ticks import Tick
from gpu_cep.engine.slices.disjoint import Held
from gpu_cep.errors import EventError

# The layout of saved states.
FORMAT = 1
_MARK = b"gpu_cep.stream"
# Which of the matches that are held have been reported.
_GIVEN = pa.field("given", pa.bool_())


@dataclass(frozen=True, slots=True)
class Clock:
    """How far a stream has come.

    `watermark`: the time up to which all events are known (None: no event has come).
    `answered`: the watermark at which the engine ran last (None: it has not run).
    `pushed`: the number of events that came, late ones included.
    `late`: how many of them were late.
    `finished`: whether no event comes any more.
    """

    watermark: Tick | None = None
    answered: Tick | None = None
    pushed: int = 0
    late: int = 0
    finished: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class StreamState:
    """What a stream keeps.

    `events`: those that later matches may depend on, in the order in which they came.
    `numbers`: their numbers among all that came.
    `held`: matches of earlier runs that decide about later ones, for ``skip_past_last`` (None: there are none).
    """

    events: pa.Table
    numbers: npt.NDArray[np.int64]
    clock: Clock = Clock()
    held: Held | None = None


def first_state(schema: pa.Schema) -> StreamState:
    """Return the state of a stream of which no event has come."""
    return StreamState(schema.empty_table(), np.empty(0, np.int64))


def write_state(state: StreamState, about: dict[str, Any]) -> bytes:
    """Return a state as one or two Arrow IPC streams: the events, and the matches that are held.

    The metadata of the first holds, as JSON, the clock and what is said `about` the stream.
    """
    told = json.dumps({"format": FORMAT, "clock": asdict(state.clock), "holds": state.held is not None, **about})
    sink = pa.BufferOutputStream()
    _write_columns(sink, [pa.array(state.numbers), *state.events.columns], {_MARK: told.encode()})
    if state.held is not None:
        rows = state.held.rows
        with pa.ipc.new_stream(sink, rows.schema.append(_GIVEN)) as writer:
            writer.write_table(rows.append_column(_GIVEN, pa.array(state.held.given)))
    return bytes(sink.getvalue())


def _write_columns(sink: pa.BufferOutputStream, columns: list[pa.ChunkedArray], metadata: dict[bytes, bytes]) -> None:
    """Write columns without their names, of which there may be any."""
    schema = pa.schema([pa.field(f"c{number}", column.type) for number, column in enumerate(columns)], metadata)
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_table(pa.Table.from_arrays(columns, schema=schema))


def read_about(saved: bytes) -> dict[str, Any]:
    """Return what :func:`write_state` was told about a stream.

    Raises
    ------
    EventError
        The bytes are no saved state, or one of another format.
    """
    return _read(saved)[0]


def read_state(saved: bytes, schema: pa.Schema) -> StreamState:
    """Return the state that was saved of a stream of events of `schema`; raises as :func:`read_about`."""
    about, table, rest = _read(saved)
    events = pa.Table.from_arrays(table.columns[1:], schema=schema)
    held = None
    if about["holds"]:
        rows = _read_table(rest)
        held = Held(rows.select(range(rows.num_columns - 1)), rows.column(rows.num_columns - 1).to_numpy())
    return StreamState(events, table.column(0).to_numpy(), Clock(**about["clock"]), held)


def _read(saved: bytes) -> tuple[dict[str, Any], pa.Table, pa.BufferReader]:
    """Return what was told, the events, and what follows them."""
    try:
        rest = pa.BufferReader(saved)
    except TypeError as fault:
        raise EventError(f"state: load() takes the bytes that save() gave, not {type(saved).__name__}") from fault
    table = _read_table(rest)
    told = (table.schema.metadata or {}).get(_MARK)
    if told is None:
        raise EventError("state: these bytes are an Arrow stream, but not one that save() made")
    about: dict[str, Any] = json.loads(told)
    if about["format"] != FORMAT:
        raise EventError(f"state: it has format {about['format']}, and this release reads {FORMAT}; load it with the release that saved it")
    return about, table, rest


def _read_table(source: pa.BufferReader) -> pa.Table:
    try:
        with pa.ipc.open_stream(source) as reader:
            return reader.read_all()
    except (pa.ArrowException, OSError) as fault:
        raise EventError(f"state: these bytes are no state that save() made: {fault}") from fault
