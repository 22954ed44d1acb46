"""Match events that keep coming, in this process: Arrow in, and out come the matches that have become certain."""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import monotonic
from typing import TYPE_CHECKING, Any, Unpack

import pyarrow as pa

from gpu_cep import __version__, api
from gpu_cep.engine.accounting.resources import Resources
from gpu_cep.engine.input.empty_tables import no_rows
from gpu_cep.engine.input.encodings import decode_schema, holds_text
from gpu_cep.engine.input.read_tables import read_events, to_host
from gpu_cep.engine.streaming.kinds import kinds_schema, with_late
from gpu_cep.engine.streaming.state import (
    Clock,
    StreamState,
    as_saved,
    first_state,
    read_about,
    read_state,
    refuse_other_plan,
    refuse_unknown,
    write_state,
)
from gpu_cep.errors import EventError, nearest
from gpu_cep.keywords import ArrivalOptions, Functions, StreamOptions, read_keywords
from gpu_cep.live.clocks import idle_watermark, is_due, ticks_of
from gpu_cep.live.plans import Arrival, plan_live, text_of
from gpu_cep.live.steps import certain_matches, give_up_decided, no_matches, push_before_run, run_pushed, with_tags
from gpu_cep.signatures import takes_keywords

if TYPE_CHECKING:
    from gpu_cep.queries.plans import Pattern

# Those that say how events come.
_ARRIVAL = tuple(ArrivalOptions.__annotations__)


@dataclass(frozen=True, slots=True)
class _Definition:
    """What a stream was made of: a query as text, the events' schema, and keywords by name."""

    query: str
    schema: pa.Schema
    arrival: Arrival
    keywords: dict[str, Any]


class Stream:
    """A query over events that keep coming; ``gpu_cep.stream(pattern, schema)`` makes it.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import gpu_cep as cep
    >>> schema = pa.schema({"ts": pa.int64(), "type": pa.string(), "price": pa.int64()})
    >>> live = cep.stream("PATTERN SEQ(Buy b, Sell s) WITHIN 5 RETURN b.price AS bought, s.price AS sold", schema)
    >>> live.push(pa.table({"ts": [1, 2], "type": ["Buy", "Quote"], "price": [10, 12]})).to_pylist()
    []
    >>> live.push(pa.table({"ts": [3, 4], "type": ["Sell", "Buy"], "price": [9, 8]})).to_pylist()
    [{'match_start': 1, 'match_end': 3, 'bought': 10, 'sold': 9}]

    A match comes out once, when it is certain: when no event that may still come can change
    it. That is with its last event, or when its window is over if a later event could still
    become a part of it or rule it out: at ``robust_skip_till_next_match``, where the
    pattern ends with a quantified variable or a negation. The *watermark* says how far
    events are known: no event of its time or before comes any more.

    Parameters
    ----------
    pattern
        As in :func:`gpu_cep.match`; it must have a window. Rows of MATCH_RECOGNIZE are
        ordered by their time first.
    schema
        The Arrow schema of the events. What is pushed may have more columns.
    lateness
        How far the watermark lies behind the latest event: a number or text such as ``"10 seconds"``,
        which counts as in ``WITHIN 5``. Events may come out of order within it.
    late
        What an event is whose time is not after the watermark when it comes. ``drop``: it
        is dropped, and counted. ``error``: an EventError. ``rows``: it is dropped, counted,
        and comes out as a row: results begin with a column `kind`, ``match`` or ``late``,
        and end with a column `event`, which holds the late event.
    every
        How far the watermark must have moved before the engine runs again (default:
        whenever it has moved).
    idle
        After how long without an event the watermark moves with the wall clock, whenever
        :meth:`advance` is called without a time: text such as ``"30 seconds"``. So the last
        matches come out, and what was only slow is late (default: never).
    time_to_live
        For a window of a number of events with `partition_by`: after how long without an
        event a key begins anew, so that nothing is kept of it, a number or text such as
        ``"1 day"``. Its matches are those among events without a longer silence between
        them.
    emit
        When a match comes out. ``certain``: as soon as no event that may still come can
        change it. ``window``: when its window is over, so that matches come out in the
        order of their first events, as :meth:`push` goes on; with windows of a number of
        events and `time_to_live`, or with ``after_match="skip_past_last"``, those of each
        key do.
    **keywords
        As in :func:`gpu_cep.match`. `max_matches` and `max_steps` bound each run of the engine.

    Raises
    ------
    PatternSyntaxError, PatternError
        The query or a keyword has an error.
    UnsupportedError
        A stream cannot answer the query; the message says what it can.
    EventError
        `schema` is none.
    """

    __slots__ = ("_came", "_definition", "_live", "_profile", "_state", "_threads")

    @takes_keywords(api.match, StreamOptions)
    def __init__(
        self,
        pattern: Pattern,
        schema: pa.Schema,
        *,
        lateness: float | str = 0,
        late: str = "drop",
        every: float | str | None = None,
        idle: str | None = None,
        time_to_live: float | str | None = None,
        emit: str = "certain",
        **keywords: Unpack[StreamOptions],
    ) -> None:
        given: dict[str, Any] = dict(keywords)
        arrival = Arrival(lateness, late, every, idle=idle, time_to_live=time_to_live, emit=emit)
        plain = decode_schema(arrow_schema(schema))
        self._live = plan_live(pattern, plain, *read_keywords(given), arrival)
        self._definition = _Definition(text_of(pattern), plain, arrival, given)
        self._threads, self._profile = given.get("threads"), given.get("profile")
        self._state = first_state(self._live.kept)
        # the clock's time when an event came last, or when the stream was made
        self._came = monotonic()

    def push(self, events: Any) -> pa.Table:
        """Take further events, and return the matches that have become certain.

        The watermark is moved at the end: to the latest time that has come, less the lateness.
        If an error is raised, no event was taken.

        Parameters
        ----------
        events
            A table, as in :func:`gpu_cep.match`. Events of equal time are in the order in which
            they come, if `order_by` does not say otherwise.

        Returns
        -------
        pyarrow.Table
            As :func:`gpu_cep.match`; row numbers of ``output="indices"`` count all events that were pushed.

        Raises
        ------
        EventError
            The events have an error or not the columns of the schema, are late if that is an
            error, or the stream is finished.
        MatchLimitExceeded
            A bound was reached.
        """
        self._refuse_finished()
        fitting = self._fit(to_host(read_events(events)))
        taken = cast_events(fitting.select(self._live.schema.names), self._live.schema)
        pushed = push_before_run(self._live, self._state, taken)
        if fitting.num_rows:
            self._came = monotonic()
        due = is_due(self._live, pushed.state.clock)
        found = self._keep(*run_pushed(self._live, pushed, self._resources)) if due else self._wait(pushed.state)
        return with_late(found, fitting.take(pa.array(pushed.late))) if self._live.returns_late else found

    def advance(self, time: Any = None) -> pa.Table:
        """Move the watermark to `time`, since no event of this time or before comes any more, and return what has become certain.

        A watermark that is further on stays where it is.

        Parameters
        ----------
        time
            A value of the timestamp column: a number over a column of numbers; over dates or
            timestamps a date, a datetime or their text, with a zone where the column has one. A
            day over timestamps without a zone is its first moment.
            None: the watermark moves with the clock if no event has come for as long as `idle`
            says, and else stays where it is.

        Raises
        ------
        EventError
            `time` is no such value, there is none and the stream was made without `idle`, or
            the stream is finished.
        """
        self._refuse_finished()
        clock = self._state.clock
        if time is None:
            watermark = idle_watermark(self._live, clock, monotonic() - self._came)
        else:
            until = ticks_of(self._live, time, "time")
            watermark = until if clock.watermark is None else max(until, clock.watermark)
        moved = replace(self._state, clock=replace(clock, watermark=watermark))
        due = is_due(replace(self._live, every=None), moved.clock)
        return self._of_kind(self._keep(*certain_matches(self._live, moved, self._resources)) if due else self._wait(moved))

    def finish(self) -> pa.Table:
        """Return all other matches: no event comes any more."""
        self._refuse_finished()
        last = replace(self._state, clock=replace(self._state.clock, finished=True))
        self._state, found = certain_matches(self._live, last, self._resources)
        return self._of_kind(found)

    def save(self) -> bytes:
        """Return the stream as bytes, of which :meth:`load` makes it again: events that are kept, clock and query.

        Functions of the query are not among them.
        """
        definition = self._definition
        about = {
            "release": __version__,
            "plan": self._live.fingerprint(),
            "version": self._live.plan.version,
            "query": definition.query,
            "schema": definition.schema.serialize().to_pybytes().hex(),
            "arrival": as_saved({name: getattr(definition.arrival, name) for name in _ARRIVAL}),
            "keywords": as_saved(definition.keywords),
        }
        return write_state(self._state, about)

    @classmethod
    def load(cls, state: bytes, *, functions: Functions = None) -> Stream:
        """Return the stream that :meth:`save` wrote.

        Parameters
        ----------
        state
            The bytes.
        functions
            The functions of the query, as in :func:`gpu_cep.match`.

        Raises
        ------
        EventError
            The bytes are no saved stream, this release plans its query in another way, or it
            has not all the keywords.
        """
        about = read_about(state)
        schema = pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(about["schema"])))
        keywords = about["keywords"] | ({} if functions is None else {"functions": functions})
        refuse_unknown("which takes", about["arrival"], _ARRIVAL, about)
        refuse_unknown("which takes", about["keywords"], StreamOptions.__annotations__, about)
        stream = cls(about["query"], schema, **about["arrival"], **keywords)
        if stream._live.fingerprint() != about["plan"]:
            refuse_other_plan("the query", stream._live.plan.version, about, state, [state])
        stream._state = with_tags(stream._live, read_state(state, stream._live.kept))
        return stream

    @property
    def schema(self) -> pa.Schema:
        """Return the schema of what comes out."""
        return kinds_schema(self._live.result, self._definition.schema) if self._live.returns_late else self._live.result

    @property
    def clock(self) -> Clock:
        """Return the watermark and the time of the last run, in ticks; how many events came, and were late; how many matches came out.

        `expired` says how often a key was given up that was silent for longer than its time to live.
        """
        return self._state.clock

    @property
    def kept_events(self) -> int:
        """Return the number of events that are kept."""
        return int(self._state.events.num_rows)

    def __repr__(self) -> str:
        return f"Stream({progress_of(self.clock, self.kept_events)})"

    @property
    def _resources(self) -> Resources:
        return Resources(self._threads, self._profile)

    def _keep(self, after: StreamState, found: pa.Table) -> pa.Table:
        """Make the state after a run the stream's, without what no later match depends on, and return the matches."""
        self._state = give_up_decided(self._live, after, self._threads, after.clock.pushed - self.clock.pushed)
        return found

    def _wait(self, state: StreamState) -> pa.Table:
        """Make the state the stream's, and return that nothing has become certain: no run is due."""
        self._state = state
        return no_matches(self._live)

    def _of_kind(self, found: pa.Table) -> pa.Table:
        """Return matches as rows of a kind, if late events are rows, too."""
        return with_late(found, no_rows(self._definition.schema)) if self._live.returns_late else found

    def _refuse_finished(self) -> None:
        if self._state.clock.finished:
            raise EventError("the stream is finished: no event comes any more; make another one for further events")

    def _fit(self, events: pa.Table) -> pa.Table:
        """Return the columns that are needed, in the types of the schema: those that the query reads, or all if late events are rows."""
        return fit_events(events, self._definition.schema, self._definition.schema if self._live.returns_late else self._live.schema)


def progress_of(clock: Clock, kept: int) -> str:
    """Return how far a stream has come, which is how it is shown."""
    return f"watermark={clock.watermark}, events={clock.pushed}, late={clock.late}, matches={clock.reported}, kept_events={kept}"


def arrow_schema(schema: Any) -> pa.Schema:
    """Return the schema of a stream, or raise EventError if it is none."""
    if not isinstance(schema, pa.Schema):
        raise EventError(f"schema: expected that of an Arrow table, not {type(schema).__name__}; give {_way_to_schema(schema)}")
    return schema


def _way_to_schema(given: Any) -> str:
    """Return how to make an Arrow schema of what was given for one, in Python."""
    if isinstance(given, str):
        return "the pattern first, then the schema: stream(pattern, schema)"
    if isinstance(getattr(given, "schema", None), pa.Schema):
        return "its schema: events.schema"
    if hasattr(given, "__arrow_c_stream__"):
        return "the schema of its table: pyarrow.table(events).schema"
    if hasattr(given, "__arrow_c_schema__"):
        return "pyarrow.schema(schema)"
    return "pyarrow.schema({'ts': pyarrow.timestamp('us'), …})"


def fit_events(events: pa.Table, schema: pa.Schema, wanted: pa.Schema) -> pa.Table:
    """Return the `wanted` columns of events in their types; raise EventError if `events` do not fit the `schema` of a stream."""
    repeated = [name for name in schema.names if events.column_names.count(name) > 1]
    if repeated:
        raise EventError(f"events: there is more than one column {repeated[0]!r}; rename all but one")
    missing = [name for name in schema.names if name not in events.column_names]
    if missing:
        told = "; ".join(f"there is no column {name!r}{_meant(name, events.column_names)}" for name in missing)
        raise EventError(f"events: {told}; the stream's schema has {'it' if len(missing) == 1 else 'them'}")
    chosen = events.select(wanted.names)
    pairs = list(zip(chosen.schema, wanted, strict=True))
    # text is text in whatever encoding
    wrong = [(own, field) for own, field in pairs if own.type != field.type and not (holds_text(own.type) and holds_text(field.type))]
    if wrong:
        told = "; ".join(f"column {own.name!r} is {own.type}, and the stream's schema says {field.type}" for own, field in wrong)
        raise EventError(f"events: {told}; cast the events, or make the stream with their schema")
    for field in wanted:
        missing_values = 0 if field.nullable else chosen.column(field.name).null_count
        if missing_values:
            raise EventError(f"events: column {field.name!r} holds {missing_values:,} NULL, which the stream's schema rules out")
    return cast_events(chosen, wanted)


def cast_events(events: pa.Table, wanted: pa.Schema) -> pa.Table:
    """Return events with their columns in the types of a schema; a cast that changes nothing would take as long as others."""
    return events if events.schema.equals(wanted, check_metadata=True) else events.cast(wanted)


def _meant(name: str, names: list[str]) -> str:
    """Return the column that is most like `name`, as a part of an error."""
    near = nearest(name, names)
    return f" ({near})" if near else ""


stream = Stream
