"""Match many patterns over events that keep coming, in this process."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gpu_cep import __version__, api
from gpu_cep.engine.accounting.resources import Resources
from gpu_cep.engine.input.empty_tables import no_rows
from gpu_cep.engine.input.encodings import decode_schema
from gpu_cep.engine.input.read_tables import read_events, to_host
from gpu_cep.engine.input.timed_events import timed_events
from gpu_cep.engine.streaming.kinds import with_late
from gpu_cep.engine.streaming.state import (
    Clock,
    StreamState,
    Times,
    as_saved,
    first_state,
    read_about,
    read_saved,
    read_state,
    refuse_other_plan,
    refuse_unknown,
    write_state,
)
from gpu_cep.errors import Diagnostic, EventError, PatternError, nearest
from gpu_cep.keywords import ArrivalOptions, Functions, StreamOptions
from gpu_cep.live.clocks import idle_watermark, is_due, moved_clock, refuse_late, refuse_other_clocks, ticks_of, times_of
from gpu_cep.live.plans import Arrival, text_of
from gpu_cep.live.queries import LiveQuery
from gpu_cep.live.steps import add_bindable, certain_matches, give_up_decided, no_matches, with_tags
from gpu_cep.rule_sets.lookups import look_up, rule_lookups
from gpu_cep.rule_sets.rules import Rule, as_rules, check_split, naming
from gpu_cep.rule_sets.stream_plans import plan_stream_rules
from gpu_cep.rule_sets.tables import check_columns, one_table, with_late_of_no_pattern
from gpu_cep.signatures import takes_keywords
from gpu_cep.streams import arrow_schema, fit_events, progress_of

if TYPE_CHECKING:
    from gpu_cep.queries.plans import Pattern

# Those that say how events come.
_ARRIVAL = tuple(ArrivalOptions.__annotations__)
_MARK = b"gpu_cep.rule_stream"
_FORMAT = 3


@dataclass(frozen=True, slots=True)
class _Definition:
    """What a stream of rules was made of: the rules' queries as text with their options, the events' schema, and keywords by name."""

    rules: Mapping[str, tuple[str, Mapping[str, Any]]]
    schema: pa.Schema
    arrival: Arrival
    split: bool
    keywords: Mapping[str, Any]


class _Arrived(NamedTuple):
    """Events that came in time, with their times in ticks and their numbers among all that came; and the events that were late."""

    table: pa.Table
    times: Times
    numbers: npt.NDArray[np.int64]
    late: pa.Table


class RuleStream:
    """Many queries over events that keep coming; ``gpu_cep.stream_all(patterns, schema)`` makes it.

    Each pattern has the matches that :class:`gpu_cep.Stream` gives for it, at the same
    time. What the patterns share is done once: reading events, judging whether they are
    late, and looking up the constants with which patterns compare a column. A pattern of
    which no event is kept takes no time.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import gpu_cep as cep
    >>> schema = pa.schema({"ts": pa.int64(), "type": pa.string()})
    >>> rules = {"bought": "PATTERN SEQ(View v, Buy b) WITHIN 5", "left": "PATTERN SEQ(View v, Leave x) WITHIN 5"}
    >>> live = cep.stream_all(rules, schema, output="count")
    >>> live.push(pa.table({"ts": [1, 2, 3], "type": ["View", "Buy", "Leave"]})).to_pylist()
    [{'pattern': 'bought', 'count': 1}, {'pattern': 'left', 'count': 1}]

    Parameters
    ----------
    patterns
        As in :func:`gpu_cep.match_all`.
    schema, lateness, every, idle, emit
        As in :class:`gpu_cep.Stream`.
    time_to_live
        As in :class:`gpu_cep.Stream`, of the patterns that have such a window.
    late
        As in :class:`gpu_cep.Stream`. Of ``rows``, a late event comes out once, with NULL
        for the pattern; with `split` it is a row of each table.
    split
        Whether the methods return a dictionary of tables by name, rather than one table
        with the column ``pattern`` first.
    **keywords
        As in :class:`gpu_cep.Stream`; all patterns have the same timestamps.

    Raises
    ------
    PatternSyntaxError, PatternError
        A query or a keyword has an error, or the results have not the same columns and
        cannot be one table.
    UnsupportedError
        A stream cannot answer a query. The message names the pattern.
    """

    __slots__ = ("_came", "_clock", "_definition", "_live", "_lookups", "_profile", "_states", "_threads")

    @takes_keywords(api.match, StreamOptions)
    def __init__(
        self,
        patterns: Mapping[str, Pattern | Rule],
        schema: pa.Schema,
        *,
        lateness: float | str = 0,
        late: str = "drop",
        every: float | str | None = None,
        idle: str | None = None,
        time_to_live: float | str | None = None,
        emit: str = "certain",
        split: bool = False,
        **keywords: Unpack[StreamOptions],
    ) -> None:
        rules, plain = as_rules(patterns), decode_schema(arrow_schema(schema))
        check_split(split)
        arrival = Arrival(lateness, late, every, idle=idle, time_to_live=time_to_live, emit=emit)
        self._definition = _Definition({}, plain, arrival, split, dict(keywords))
        self._live: dict[str, LiveQuery] = {}
        self._states: dict[str, StreamState] = {}
        self._take(rules)
        self._clock = Clock()
        self._threads, self._profile = keywords.get("threads"), keywords.get("profile")
        # the clock's time when an event came last, or when the stream was made
        self._came = monotonic()

    def _take(self, rules: Mapping[str, Rule]) -> None:
        """Hold further rules, of which no event is kept; if they have an error, nothing has changed."""
        definition = self._definition
        planned = plan_stream_rules(rules, definition.schema, definition.keywords, definition.arrival)
        live = self._live | planned
        refuse_other_clocks(live)
        if not definition.split:
            check_columns({name: each.result for name, each in live.items()})
        texts = {name: (text_of(rule.pattern), rule.options) for name, rule in rules.items()}
        states = {name: first_state(each.kept) for name, each in planned.items()}
        self._hold(live, {**definition.rules, **texts}, self._states | states)

    def _hold(self, live: dict[str, LiveQuery], texts: Mapping[str, tuple[str, Mapping[str, Any]]], states: dict[str, StreamState]) -> None:
        """Make these the stream's rules."""
        self._live, self._states, self._lookups = live, states, rule_lookups(live)
        self._definition = replace(self._definition, rules=texts)

    def add(self, patterns: Mapping[str, Pattern | Rule]) -> None:
        """Take further patterns, for which the stream begins with the next event that is pushed.

        Parameters
        ----------
        patterns
            As in :func:`gpu_cep.match_all`, under names that the stream does not have.
            The keywords of the stream are theirs, too.

        Raises
        ------
        EventError
            The stream is finished.
        PatternSyntaxError, PatternError, UnsupportedError
            As when the stream is made; or it has a pattern of this name. No pattern was taken.
        """
        self._refuse_finished()
        rules = as_rules(patterns)
        held = [name for name in rules if name in self._live]
        if held:
            remedy = "name the new one otherwise, or remove() the old one first"
            raise PatternError([Diagnostic(f"the stream has a pattern {name!r} already", hint=remedy) for name in held])
        self._take(rules)

    def remove(self, *names: str) -> None:
        """Give up patterns with the events that are kept for them; their matches that are not certain yet do not come out.

        Raises
        ------
        PatternError
            The stream has no pattern of this name, or would have none at all. No pattern was given up.
        """
        unknown = [name for name in names if not isinstance(name, str) or name not in self._live]
        if unknown:
            told = ((name, nearest(str(name), self._live)) for name in unknown)
            raise PatternError([Diagnostic(f"the stream has no pattern {name!r}", hint=hint) for name, hint in told])
        kept = [name for name in self._live if name not in names]
        if not kept:
            raise PatternError("a stream has at least one pattern; add() another one first")
        texts, live, states = self._definition.rules, self._live, self._states
        self._hold({name: live[name] for name in kept}, {name: texts[name] for name in kept}, {name: states[name] for name in kept})

    def push(self, events: Any) -> Any:
        """Take further events, and return the matches that have become certain, as :meth:`gpu_cep.Stream.push`.

        If an error is raised, no event was taken.
        """
        self._refuse_finished()
        came, clock = self._arrived(to_host(read_events(events)))
        states = dict(self._states)
        for name, chosen in look_up(self._lookups, self._live, came.table):
            live = self._live[name]
            with naming(name):
                own = came.table if chosen is None else came.table.take(pa.array(chosen))
                fitting = own.select(live.schema.names).cast(live.schema)
                rows = slice(None) if chosen is None else chosen
                states[name] = add_bindable(live, states[name], fitting, came.times[rows], came.numbers[rows])
        result = self._run(states, clock, at_once=False, late=came.late)
        if came.table.num_rows or came.late.num_rows:
            self._came = monotonic()
        return result

    def _arrived(self, events: pa.Table) -> tuple[_Arrived, Clock]:
        """Return the events of a push that are in time, and the clock once they have come."""
        asked, clock, first = self._definition.schema, self._clock, next(iter(self._live.values()))
        whole = fit_events(events, asked, asked)
        _, kept = timed_events(first.plan.query, whole.select(first.schema.names))
        table, rows = (whole, np.arange(whole.num_rows)) if kept is None else (whole.take(pa.array(kept)), kept)
        times = times_of(first, table.select(first.schema.names).cast(first.schema))
        in_time = np.ones(len(times), np.bool_) if clock.watermark is None else times > clock.watermark
        numbers, late = clock.pushed + rows, table.slice(0, 0)
        if not in_time.all():
            refuse_late(first, clock, numbers[~in_time])
            late = table.filter(pa.array(~in_time))
            table, times, numbers = table.filter(pa.array(in_time)), times[in_time], numbers[in_time]
        moved = moved_clock(first, clock, times, pushed=whole.num_rows, late=late.num_rows)
        return _Arrived(table, times, numbers, late), moved

    def advance(self, time: Any = None) -> Any:
        """Move the watermark to `time`, or with the clock, and return what has become certain, as :meth:`gpu_cep.Stream.advance`."""
        self._refuse_finished()
        first = next(iter(self._live.values()))
        if time is None:
            watermark = idle_watermark(first, self._clock, monotonic() - self._came)
        else:
            until = ticks_of(first, time, "time")
            watermark = until if self._clock.watermark is None else max(until, self._clock.watermark)
        return self._run(dict(self._states), replace(self._clock, watermark=watermark), at_once=True)

    def finish(self) -> Any:
        """Return all other matches: no event comes any more."""
        self._refuse_finished()
        return self._run(dict(self._states), replace(self._clock, finished=True), at_once=True)

    def save(self) -> bytes:
        """Return the stream as bytes, of which :meth:`load` makes it again; functions of the queries are not among them."""
        definition = self._definition
        told = {
            "format": _FORMAT,
            "release": __version__,
            "rules": {name: [text, as_saved(options)] for name, (text, options) in definition.rules.items()},
            "schema": definition.schema.serialize().to_pybytes().hex(),
            "arrival": as_saved({name: getattr(definition.arrival, name) for name in _ARRIVAL}),
            "split": definition.split,
            "keywords": as_saved(definition.keywords),
            "clock": asdict(self._clock),
        }
        plans = {name: {"plan": live.fingerprint(), "version": live.plan.version} for name, live in self._live.items()}
        states = [write_state(state, plans[name]) for name, state in self._states.items()]
        table = pa.table({"state": pa.array(states, pa.large_binary())}).replace_schema_metadata({_MARK: json.dumps(told).encode()})
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        return bytes(sink.getvalue())

    @classmethod
    def load(cls, state: bytes, *, functions: Functions = None) -> RuleStream:
        """Return the stream that :meth:`save` wrote; arguments and errors are those of :meth:`gpu_cep.Stream.load`."""
        told, table, _ = read_saved(state, _MARK, _FORMAT, "save() of stream_all()")
        saved = table.column("state").to_pylist()
        schema = pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(told["schema"])))
        rules = {name: Rule(text, options) for name, (text, options) in told["rules"].items()}
        keywords = told["keywords"] | ({} if functions is None else {"functions": functions})
        refuse_unknown("which takes", told["arrival"], _ARRIVAL, told)
        for taken in (told["keywords"], *(options for _, options in told["rules"].values())):
            refuse_unknown("which takes", taken, StreamOptions.__annotations__, told)
        stream = cls(rules, schema, split=told["split"], **told["arrival"], **keywords)
        for (name, live), each in zip(stream._live.items(), saved, strict=True):
            if live.fingerprint() != read_about(each)["plan"]:
                refuse_other_plan(f"pattern {name!r}", live.plan.version, told, each, saved)
            stream._states[name] = with_tags(live, read_state(each, live.kept))
        stream._clock = Clock(**told["clock"])
        return stream

    @property
    def patterns(self) -> dict[str, str]:
        """Return the query of each pattern as text, by its name."""
        return {name: text for name, (text, _) in self._definition.rules.items()}

    @property
    def schema(self) -> pa.Schema | dict[str, pa.Schema]:
        """Return the schema of what comes out; with `split`, that of each pattern by its name."""
        nothing = self._result({name: no_matches(live) for name, live in self._live.items()}, no_rows(self._definition.schema))
        return {name: table.schema for name, table in nothing.items()} if self._definition.split else nothing.schema

    @property
    def clock(self) -> Clock:
        """Return the watermark and the time of the last run, in ticks; how many events came, and were late; how many matches came out."""
        return self._clock

    @property
    def kept_events(self) -> int:
        """Return the number of events that are kept; one that several patterns keep counts for each of them."""
        return sum(int(state.events.num_rows) for state in self._states.values())

    def __repr__(self) -> str:
        return f"RuleStream({len(self._live)} patterns, {progress_of(self.clock, self.kept_events)})"

    def _run(self, states: dict[str, StreamState], clock: Clock, *, at_once: bool, late: pa.Table | None = None) -> Any:
        """Make states and clock the stream's, and return the matches that have become certain if the engine is to run."""
        found: dict[str, pa.Table] = {}
        for name, live in self._live.items():
            own = states[name].clock
            states[name] = replace(states[name], clock=replace(own, watermark=clock.watermark, finished=clock.finished))
            with naming(name):
                due = at_once or is_due(live, replace(clock, answered=own.answered))
                states[name], found[name] = self._certain(live, states[name]) if due else (states[name], no_matches(live))
        reported = clock.reported + sum(states[name].clock.reported - state.clock.reported for name, state in self._states.items())
        expired = clock.expired + sum(states[name].clock.expired - state.clock.expired for name, state in self._states.items())
        answered = max((each.clock.answered for each in states.values() if each.clock.answered is not None), default=None)
        result = self._result(found, no_rows(self._definition.schema) if late is None else late)
        self._states, self._clock = states, replace(clock, answered=answered, reported=reported, expired=expired)
        return result

    def _result(self, found: dict[str, pa.Table], late: pa.Table) -> Any:
        """Return matches in the form that is asked for, with late events as rows if they are to be."""
        returns_late = self._definition.arrival.late == "rows"
        if self._definition.split:
            return {name: with_late(table, late) for name, table in found.items()} if returns_late else found
        table = one_table(found, {})
        return with_late_of_no_pattern(table, late) if returns_late else table

    def _certain(self, live: LiveQuery, state: StreamState) -> tuple[StreamState, pa.Table]:
        """Return the state after a run, and what it found; without an event no engine runs."""
        # a match that is held back and not decided yet ends in an event that is kept
        if state.events.num_rows:
            after, found = certain_matches(live, state, Resources(self._threads, self._profile))
            return give_up_decided(live, after, self._threads), found
        return replace(state, clock=replace(state.clock, answered=state.clock.known_until)), no_matches(live)

    def _refuse_finished(self) -> None:
        if self._clock.finished:
            raise EventError("the stream is finished: no event comes any more; make another one for further events")


stream_all = RuleStream
