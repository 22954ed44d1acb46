"""Hold what a stream keeps between two calls, and write it as bytes."""

from __future__ import annotations

import json
import math
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from io import IOBase
from numbers import Number
from os import PathLike
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gpu_cep.engine.input.empty_tables import no_rows
from gpu_cep.engine.input.ticks import Tick, following
from gpu_cep.engine.slices.assembly import MatchNumbering
from gpu_cep.engine.slices.held_matches import Held, HeldRows
from gpu_cep.errors import EventError

Times = npt.NDArray[np.int64] | npt.NDArray[np.float64]

# The layout of saved states.
FORMAT = 4
_MARK = b"gpu_cep.stream"
# A state is not compressed; to hand its columns to other threads takes longer than to read them.
_READING = pa.ipc.IpcReadOptions(use_threads=False)
# Keywords that a saved state does not hold.
_NOT_SAVED = ("functions", "profile")
# Which of the matches that are held have been reported, and how many matches of a stream were numbered.
_GIVEN, _COUNT = pa.field("given", pa.bool_()), pa.field("count", pa.int64())


@dataclass(frozen=True, slots=True)
class Clock:
    """How far a stream has come.

    `watermark`: the time up to which all events are known (None: no event has come).
    `answered`: the watermark at which the engine ran last (None: it has not run).
    `pushed`: the number of events that came, late ones included.
    `late`: how many of them were late.
    `reported`: how many matches have come out.
    `finished`: whether no event comes any more.
    `latest`: the time of the latest event that was not late (None: there was none).
    `expired`: how often a key was given up, since it was silent for longer than its time to live.
    """

    watermark: Tick | None = None
    answered: Tick | None = None
    pushed: int = 0
    late: int = 0
    reported: int = 0
    finished: bool = False
    latest: Tick | None = None
    expired: int = 0

    @property
    def known_until(self) -> Tick | None:
        """Return the time up to which all events are known; None: no event comes any more, since none is behind infinity."""
        return None if self.finished or self.watermark == math.inf else self.watermark


@dataclass(frozen=True, slots=True, eq=False)
class StreamState:
    """What a stream keeps.

    `events`: those that later matches may depend on, in order of time; those of one time are in the order in which they came.
    `times`: their times, in ticks.
    `numbers`: their numbers among all that came.
    `over`: with a window of a number of events, how many of the events have windows that were over at the last run; else 0.
    `held`: matches of earlier runs that decide about later ones, for ``skip_past_last`` (None: there are none).
    `numbering`: how many matches of each stream have been numbered, for ``output="events"`` (None: there are none).
    `settled`: how many of the known events were left when those that decide nothing more were last given up (0: none were).
    `tags`: those of the events (:mod:`gpu_cep.engine.streaming.event_tags`); None if they are found when they are needed.
    """

    events: pa.Table
    times: Times
    numbers: npt.NDArray[np.int64]
    clock: Clock = Clock()
    over: int = 0
    held: Held | None = None
    numbering: MatchNumbering | None = None
    settled: int = 0
    tags: npt.NDArray[np.uint32] | None = None


def first_state(schema: pa.Schema) -> StreamState:
    """Return the state of a stream of which no event has come."""
    return StreamState(no_rows(schema), np.empty(0, np.int64), np.empty(0, np.int64))


def write_state(state: StreamState, about: dict[str, Any]) -> bytes:
    """Return a state as Arrow IPC streams: the events, then the matches that are held and the numbers of matches, if there are any.

    The metadata of the first holds, as JSON, the clock and what is said `about` the stream.
    """
    held, numbering = state.held, state.numbering
    marks = {"over": state.over, "settled": state.settled, "holds": held is not None, "numbers": numbering is not None}
    told = json.dumps({"format": FORMAT, "clock": asdict(state.clock), **marks, **about})
    sink = pa.BufferOutputStream()
    _write_columns(sink, [pa.array(state.times), pa.array(state.numbers), *state.events.columns], {_MARK: told.encode()})
    if held is not None:
        _write_with(sink, held.rows, _GIVEN, held.given)
    if numbering is not None:
        _write_with(sink, numbering.keys, _COUNT, numbering.counts)
    return bytes(sink.getvalue())


def as_saved(keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Return keywords as a saved state holds them: as JSON, without those that it cannot hold."""
    kept = {name: value for name, value in keywords.items() if name not in _NOT_SAVED}
    saved: dict[str, Any] = json.loads(json.dumps(kept, default=_plain))
    return saved


def _plain(value: Any) -> Any:
    """Return a value that JSON lacks as one that it has: numbers as text, collections as lists."""
    return str(value) if isinstance(value, Number) else list(value)


def _write_with(sink: pa.BufferOutputStream, rows: pa.Table, field: pa.Field, values: npt.NDArray[Any]) -> None:
    """Write a table with one more column at its end."""
    with pa.ipc.new_stream(sink, rows.schema.append(field)) as writer:
        # a table without columns has no rows: its arrays say how many there are
        writer.write_table(pa.Table.from_arrays([*rows.columns, pa.chunked_array([pa.array(values)])], schema=rows.schema.append(field)))


def _write_columns(sink: pa.BufferOutputStream, columns: list[pa.ChunkedArray], metadata: dict[bytes, bytes]) -> None:
    """Write columns without their names, of which there may be any."""
    schema = pa.schema([pa.field(f"c{number}", column.type) for number, column in enumerate(columns)], metadata)
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_table(pa.Table.from_arrays(columns, schema=schema))


def saving_release(about: dict[str, Any]) -> str:
    """Return which release wrote a state, in words; `about` is what was told of it."""
    # earlier releases did not tell; builds of one release may plan a query in different ways
    return f"the build of gpu_cep {about['release']} that saved it" if "release" in about else "the release that saved it"


def refuse_unknown(what: str, told: Iterable[str], known: Container[str], about: dict[str, Any]) -> None:
    """Raise EventError if a saved state has names that this release does not know.

    `what`: what the state does with these names, such as ``which takes``.
    `about`: what was told of the stream that was saved.
    """
    unknown = sorted(name for name in told if name not in known)
    if unknown:
        told_names = f"state: a later release wrote it, {what} {', '.join(map(repr, unknown))}"
        raise EventError(f"{told_names}; go on with {saving_release(about)}, or a later one, or begin without the state")


def refuse_other_plan(what: str, version: int, about: dict[str, Any], refused: bytes, states: Sequence[bytes]) -> NoReturn:
    """Raise EventError, since `what` was planned in another way, and say what helps.

    Parameters
    ----------
    what
        What was planned, in words.
    version
        The version of the plan that it has now.
    about
        What was told of the stream that was saved.
    refused
        The state that was saved of what was planned.
    states
        All states that were saved of the stream.
    """
    before = read_about(refused).get("version", "an unknown one")
    begins = [begin for told, table, _ in map(_read, states) if (begin := _first_needed(told, table)) is not None]
    again = f" and push the events from {min(begins):,} ticks on; what was certain before comes out again" if begins else ""
    versions = "" if before == version else f" (plan version {version}, the state has {before})"
    raise EventError(
        f"state: this release plans {what} in another way{versions}; load it with {saving_release(about)}, or make a new stream{again}"
    )


def _first_needed(about: dict[str, Any], kept: pa.Table) -> Tick | None:
    """Return the earliest time of an event that a saved stream still needs; None if none has come."""
    watermark: Tick | None = about["clock"]["watermark"]
    if kept.num_rows:
        first: Tick = kept.column(0)[0].as_py()
        return first
    return None if watermark is None else following(watermark)


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
    events = pa.Table.from_arrays(table.columns[2:], schema=schema)
    held = HeldRows(*_read_with(rest)) if about["holds"] else None
    numbering = MatchNumbering(*_read_with(rest)) if about["numbers"] else None
    times, numbers = (table.column(place).to_numpy() for place in range(2))
    return StreamState(events, times, numbers, Clock(**about["clock"]), about["over"], held, numbering, about["settled"])


def _read_with(rest: pa.BufferReader) -> tuple[pa.Table, npt.NDArray[Any]]:
    """Return a table without its last column, and the values of that."""
    rows = _read_table(rest)
    return rows.select(range(rows.num_columns - 1)), rows.column(rows.num_columns - 1).to_numpy()


def _read(saved: bytes) -> tuple[dict[str, Any], pa.Table, pa.BufferReader]:
    """Return the header of a saved state, its events, and the bytes behind them."""
    about, table, rest = read_saved(saved, _MARK, FORMAT, "save() of stream()")
    refuse_unknown("whose clock has", about["clock"], [each.name for each in fields(Clock)], about)
    return about, table, rest


def read_saved(saved: bytes, mark: bytes, known: int, by: str) -> tuple[dict[str, Any], pa.Table, pa.BufferReader]:
    """Return the header of a saved stream, the first table, and the bytes behind it.

    Parameters
    ----------
    saved
        What a `save()` gave.
    mark, known
        The key of the header among the table's metadata, and the format that this release reads.
    by
        What wrote such streams, for errors.

    Raises
    ------
    EventError
        The bytes are no such stream, or one of another format.
    """
    try:
        rest = pa.BufferReader(saved)
    except TypeError as fault:
        remedy = "; of a file give Path(name).read_bytes()" if isinstance(saved, (str, PathLike, IOBase)) else ""
        raise EventError(f"state: load() takes the bytes that save() gave, not {type(saved).__name__}{remedy}") from fault
    table = _read_table(rest)
    told = (table.schema.metadata or {}).get(mark)
    if told is None:
        raise EventError(f"state: these bytes are an Arrow stream, but not one that {by} made")
    about: dict[str, Any] = json.loads(told)
    if about["format"] != known:
        told_format = f"state: it has format {about['format']}, and this release reads {known}"
        raise EventError(f"{told_format}; load it with {saving_release(about)}")
    return about, table, rest


def _read_table(source: pa.BufferReader) -> pa.Table:
    try:
        with pa.ipc.open_stream(source, options=_READING) as reader:
            return reader.read_all()
    except (pa.ArrowException, OSError) as fault:
        raise EventError(f"state: these bytes are no state that save() made: {fault}") from fault
