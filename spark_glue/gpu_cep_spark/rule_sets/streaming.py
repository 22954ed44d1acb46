"""Match many patterns over a streaming DataFrame by one stateful query.

Every pattern is sent the same events, which Spark shuffles once. Patterns whose streams have keys in common are a group, of
which a bucket keeps one list of events. Other groups have lists in buckets of their own, in the same state.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from gpu_cep.analysis.bound import CountWindow
from gpu_cep.engine.streaming.kinds import kinds_schema
from gpu_cep.errors import CepError
from gpu_cep.keywords import read_keywords
from gpu_cep.live.clocks import refuse_other_clocks
from gpu_cep.live.plans import Arrival, ticks_to_live
from gpu_cep.live.queries import LiveQuery
from gpu_cep.plan.timeouts import by_kind
from gpu_cep.rule_sets.rules import Rule, naming
from gpu_cep.rule_sets.stream_plans import arrival_of_rule
from gpu_cep.rule_sets.tables import PATTERN, check_columns, same_columns
from gpu_cep_spark.jobs import pattern_text
from gpu_cep_spark.matching import check_spark_settings
from gpu_cep_spark.narrowing.narrow_frames import narrow_to_all, with_whole_events_of_all
from gpu_cep_spark.narrowing.narrow_queries import NarrowQuery
from gpu_cep_spark.rule_sets.shuffles import Keys, by_columns, keys_of, keys_of_shuffles
from gpu_cep_spark.schemas import arrow_schema
from gpu_cep_spark.slices.shuffle_tasks import shuffle_partitions
from gpu_cep_spark.streaming.checks import check_rule_of_stream, check_source
from gpu_cep_spark.streaming.frames import ZONE, live_query, match_in_buckets, match_live_query, rule_digest, sent_result, with_event_time
from gpu_cep_spark.streaming.heartbeat_rows import HEARTBEAT, without_heartbeats
from gpu_cep_spark.streaming.work import LiveGroup, LiveRule, LiveWork


@dataclass(frozen=True, slots=True)
class StreamedRule:
    """A rule as it is asked of a stream, and its query over the columns that it reads."""

    rule: LiveRule
    query: NarrowQuery


@dataclass(frozen=True, slots=True)
class StreamedGroup:
    """Rules that share a list of events in each bucket; `keys` are those by which events are spread over buckets."""

    rules: Mapping[str, StreamedRule]
    keys: Keys

    @property
    def counts(self) -> bool:
        """Return whether the window of its only rule is a number of events."""
        return any(isinstance(each.rule.live.window, CountWindow) for each in self.rules.values())


def plan_streamed_rules(
    rules: Mapping[str, Rule], keywords: Mapping[str, Any], df: DataFrame, arrival: Arrival
) -> tuple[dict[str, StreamedRule], dict[str, CepError]]:  # fmt: skip
    """Return the rules that are asked of a streaming DataFrame by name, and the errors of the others."""
    schema = arrow_schema(df.drop(HEARTBEAT).schema, ZONE)
    planned: dict[str, StreamedRule] = {}
    failed: dict[str, CepError] = {}
    for name, rule in rules.items():
        try:
            with naming(name):
                planned[name] = _plan_rule(name, rule, keywords, schema, arrival)
        except CepError as fault:
            failed[name] = fault
    return planned, failed


def check_one_stream(df: DataFrame, planned: Mapping[str, StreamedRule]) -> None:
    """Check that one stateful query can have all rules.

    Raises
    ------
    UnsupportedError
        Spark keeps no watermark of the timestamps, or has not the state store that is needed.
    PatternError
        The rules do not go by one watermark.
    """
    refuse_other_clocks({name: each.rule.live for name, each in planned.items()})
    check_source(df, next(iter(planned.values())).query.plan)


def _plan_rule(name: str, rule: Rule, keywords: Mapping[str, Any], schema: pa.Schema, arrival: Arrival) -> StreamedRule:
    """Return a rule as it is asked of a stream; raises as :func:`gpu_cep.gpu_match`."""
    options, settings = read_keywords({**keywords, **rule.options})
    check_spark_settings(settings)
    kinds = by_kind(settings) if settings.timeouts else (settings,)
    query, *timeouts = [NarrowQuery.of(rule.pattern, schema, options, each) for each in kinds]
    own = arrival_of_rule(arrival, query.plan)
    check_rule_of_stream(query.plan, query.settings, expires=own.time_to_live is not None)
    live = live_query(query, timeouts, own)
    if arrival.time_to_live is not None:
        # also where the rule has no use for it
        ticks_to_live(query.plan, arrival.time_to_live, options.time_unit)
    return StreamedRule(LiveRule(live, rule_digest(query, {}, live), pattern_text(rule.pattern), name), query)


def groups_of_rules(planned: Mapping[str, StreamedRule]) -> tuple[StreamedGroup, ...]:
    """Return rules by the events that they share, in an order that does not depend on that of the rules.

    Rules with the same keys share them, and so do those whose keys contain the keys of others. A window of a number of events
    counts those that are kept, which therefore are its own.
    """
    keys = {name: keys_of(each.query) for name, each in planned.items()}
    serving = keys_of_shuffles([own for own in keys.values() if own], lambda common: False)
    apart: dict[tuple[Keys, str], dict[str, NarrowQuery]] = {}
    for name, each in planned.items():
        alone = name if isinstance(each.rule.live.window, CountWindow) else ""
        apart.setdefault((serving.get(keys[name], frozenset()), alone), {})[name] = each.query
    found = [
        StreamedGroup({name: planned[name] for name in every}, common)
        for (common, _), those in apart.items()
        for every in by_columns(those)
    ]
    return tuple(sorted(found, key=lambda group: (sorted(group.keys), min(group.rules))))


def match_rules_of_stream(df: DataFrame, planned: Mapping[str, StreamedRule]) -> DataFrame:
    """Return the matches of rules among the events of a streaming DataFrame as they become certain, with the pattern's name first.

    Raises
    ------
    PatternError
        The results have not the same columns, or the rules do not go by one watermark.
    UnsupportedError
        As :func:`check_one_stream`.
    """
    check_one_stream(df, planned)
    every = [each.rule.live for each in planned.values()]
    check_columns({name: each.rule.live.result for name, each in planned.items()})
    events = _events(df, every[0])
    work, result = work_of_rules(planned, arrow_schema(events.schema, ZONE), shuffle_partitions(df.sparkSession))
    sent = (narrow_to_all if work.whole is None else with_whole_events_of_all)(events, every, work.columns)
    return with_event_time(match_in_buckets(sent, work, result), every)


def match_each_of_stream(
    df: DataFrame, planned: Mapping[str, StreamedRule]
) -> tuple[dict[str, DataFrame], dict[str, CepError]]:  # fmt: skip
    """Return a streaming DataFrame for each rule by name, and the errors of the others.

    Each is started by itself, so that there is nothing to share, not even a watermark.
    """
    streams: dict[str, DataFrame] = {}
    failed: dict[str, CepError] = {}
    for name, each in planned.items():
        try:
            with naming(name):
                check_source(df, each.query.plan)
                streams[name] = match_live_query(_events(df, each.rule.live), each.query, each.rule.live)
        except CepError as fault:
            failed[name] = fault
    return streams, failed


def _events(df: DataFrame, live: LiveQuery) -> DataFrame:
    """Return the events that a query is asked of: all rows but heartbeats."""
    return without_heartbeats(df, live.schema.names[live.plan.query.timestamp])


def work_of_rules(planned: Mapping[str, StreamedRule], events: pa.Schema, partitions: int) -> tuple[LiveWork, pa.Schema]:
    """Return the work on each bucket, and the schema of what comes out; `events` have a DataFrame's columns.

    `partitions` is the session's number of partitions.
    """
    every = {name: each.rule.live for name, each in planned.items()}
    whole = events if any(live.returns_late for live in every.values()) else None
    result = _result_of(every, whole)
    groups = tuple(_live_group(group, events) for group in groups_of_rules(planned))
    return LiveWork(groups, sent_result(result, whole), partitions, whole), result


def _live_group(group: StreamedGroup, events: pa.Schema) -> LiveGroup:
    """Return the work of a group; its columns are in an order that does not depend on that of the rules."""
    rules = tuple(group.rules[name].rule for name in sorted(group.rules))
    names = rules[0].live.schema.names
    if len(rules) > 1:
        names = sorted({name for each in group.rules.values() for name in each.query.events.names})
    keys = tuple(number for number, name in enumerate(names) if name in group.keys)
    return LiveGroup(rules, pa.schema([events.field(name) for name in names]), keys)


def _result_of(every: Mapping[str, LiveQuery], whole: pa.Schema | None) -> pa.Schema:
    """Return the schema of the rules' results; a late event, if these are rows, has no pattern."""
    found = same_columns({name: live.result for name, live in every.items()})
    rows = found if whole is None else kinds_schema(found, whole)
    return pa.schema([pa.field(PATTERN, pa.string(), nullable=whole is not None), *rows])


def described(group: StreamedGroup) -> Iterator[str]:
    """Yield in words how the events of a group are kept."""
    yield f"events by {', '.join(sorted(group.keys))}" if group.keys else "events in one bucket, on one core: they are one stream"
    wider = sum(keys_of(each.query) > group.keys for each in group.rules.values()) if group.keys else 0
    if wider:
        yield f"{wider:,} of them with more keys, by which equal rows are equal in these"
    if group.counts:
        yield "a window of a number of events shares none"
