"""Write what a bucket knows of its queries as bytes, beside the events of its list, and read it.

Of a query by itself this is the state of its stream, as :func:`gpu_cep.engine.streaming.state.write_state` writes it. Of a
rule set it is a table with a row for each rule of the set, so that a set which has changed is refused by the names of its rules.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import pyarrow as pa

from gpu_cep import __version__
from gpu_cep.engine.input.ticks import Tick
from gpu_cep.engine.streaming.state import Clock, StreamState, first_state, read_about, read_saved, read_state, write_state
from gpu_cep.errors import EventError
from gpu_cep_spark.streaming.work import LiveGroup, LiveRule, LiveWork

_MARK = b"gpu_cep.rule_states"
_FORMAT = 1
# A row for each rule of the set. What is behind the digest is NULL for rules of other groups; `state` has what few rules have.
_NUMBERS = {"since": pa.int64(), "settled": pa.int64(), "closing": pa.int64()}
_TABLE = pa.schema({"rule": pa.string(), "query": pa.string(), **_NUMBERS, "state": pa.large_binary()})
# The part of a digest by which the rules of a set are told from others.
_DIGITS = 16
_OWN_CHECKPOINT = "start this query with a checkpointLocation of its own"


@dataclass(frozen=True, slots=True, eq=False)
class RuleState:
    """What is known of a query in a bucket.

    `state`: the state of its stream, without the events.
    `open`: of how many rows of a row pattern it was not certain at the last run which match begins there.
    `closing`: the watermark, in ticks, at which the first of its keys has been silent for its time to live (None: there is none).
    `since`: the time, in ticks, of the first event that it needs of those which it shares with others (None: it may need all).
    """

    state: StreamState
    open: int = 0
    closing: int | None = None
    since: Tick | None = None

    @property
    def holds(self) -> bool:
        """Return whether matches are held that decide about later ones."""
        return self.state.held is not None and len(self.state.held) > 0

    @property
    def is_new(self) -> bool:
        """Return whether nothing has to be known of the query once its bucket has no events."""
        return not self.holds and self.state.numbering is None


def first_states(group: LiveGroup) -> tuple[RuleState, ...]:
    """Return what is known of queries of which no event has come."""
    return tuple(RuleState(first_state(rule.live.schema)) for rule in group.rules)


def write_states(work: LiveWork, group: LiveGroup, states: tuple[RuleState, ...], told: Mapping[str, Any]) -> bytes:
    """Return what is known of the queries of a group, and what is `told` of their bucket, as bytes."""
    told = {**told, "release": __version__}
    if group.first.name is None:
        (known,), rule = states, group.first
        about = {"query": rule.digest, "pattern": rule.pattern, "open": known.open, "closing": known.closing}
        return write_state(known.state, {**told, **about})
    clock = asdict(states[0].state.clock)
    head = {_MARK: json.dumps({"format": _FORMAT, "clock": clock, **told}).encode()}
    known_of = dict(zip(group.by_name, states, strict=True))
    rows = [_row(name, digest, known_of.get(name)) for name, digest in work.digests.items()]
    table = pa.Table.from_pylist(rows, _TABLE.with_metadata(head))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def _row(name: str, digest: str, known: RuleState | None) -> dict[str, Any]:
    """Return the row of a rule; `known` is what is known of it if it is one of the group's."""
    row: dict[str, Any] = {"rule": name, "query": digest[:_DIGITS]}
    if known is None:
        return row
    state = known.state
    plain = known.is_new and not state.over
    told = {"since": known.since, "settled": state.settled, "closing": known.closing}
    return row | told | {"state": None if plain else write_state(state, {})}


def read_states(work: LiveWork, group: LiveGroup, written: bytes) -> tuple[tuple[RuleState, ...], dict[str, Any]]:
    """Return what was written of the queries of a group, and what was told of their bucket.

    Raises
    ------
    EventError
        Other queries wrote it.
    """
    if _is_of_rules(written) != (group.first.name is not None):
        kind = "the patterns of a rule set" if group.first.name is None else "one pattern, and no rule set"
        raise EventError(f"the checkpoint belongs to {kind}; {_OWN_CHECKPOINT}")
    if group.first.name is None:
        return _read_one(group.first, written)
    told, table, _ = read_saved(written, _MARK, _FORMAT, "a rule set")
    rows = {row["rule"]: row for row in table.to_pylist()}
    changed = [*_changes(work, rows)]
    if changed:
        told_changes = ", ".join(changed)
        raise EventError(f"the checkpoint belongs to other rules: {told_changes}; {_OWN_CHECKPOINT}")
    clock = Clock(**told["clock"])
    return tuple(_known(rule, rows[name], clock) for name, rule in group.by_name.items()), told


def _is_of_rules(written: bytes) -> bool:
    """Return whether a rule set wrote what is known of a bucket."""
    return _MARK in (pa.ipc.read_schema(pa.py_buffer(written)).metadata or {})


def _read_one(rule: LiveRule, written: bytes) -> tuple[tuple[RuleState, ...], dict[str, Any]]:
    """Return what was written of a query by itself, and what was told of its bucket; raises as :func:`read_states`."""
    told = read_about(written)
    if told["query"] != rule.digest:
        raise EventError(f"the checkpoint belongs to another query, whose pattern is {told['pattern']}; {_OWN_CHECKPOINT}")
    # an earlier release did not write all of them
    figures = {name: told[name] for name in ("open", "closing") if name in told}
    return (RuleState(read_state(written, rule.live.schema), **figures),), told


def _changes(work: LiveWork, rows: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield in words which rules differ from those that wrote the `rows`."""
    asked = {name: digest[:_DIGITS] for name, digest in work.digests.items()}
    yield from (f"{name!r} is new" for name in asked if name not in rows)
    yield from (f"{name!r} is not there any more" for name in rows if name not in asked)
    yield from (f"{name!r} was another query" for name, digest in asked.items() if name in rows and rows[name]["query"] != digest)


def _known(rule: LiveRule, row: Mapping[str, Any], clock: Clock) -> RuleState:
    """Return what is known of a rule by its row, and by the clock of the bucket."""
    schema = rule.live.schema
    state = first_state(schema) if row["state"] is None else read_state(row["state"], schema)
    # an earlier release did not write when keys are given up
    return RuleState(replace(state, clock=clock, settled=row["settled"]), closing=row.get("closing"), since=row["since"])
