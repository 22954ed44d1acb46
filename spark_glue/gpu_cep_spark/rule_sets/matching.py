"""Match many patterns on Spark: those with the same keys share one shuffle and one Python stage."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, Unpack

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from gpu_cep.api import match
from gpu_cep.choices import OnError
from gpu_cep.engine.answers import answer_schema
from gpu_cep.errors import CepError, UnsupportedError
from gpu_cep.keywords import SparkOptions, read_keywords
from gpu_cep.live.plans import Arrival
from gpu_cep.plan.columns_read import narrow_settings
from gpu_cep.plan.event_plan import EventPlan
from gpu_cep.plan.interval_plan import AnyPlan
from gpu_cep.plan.settings import memory_bytes
from gpu_cep.queries.plans import make_plan
from gpu_cep.rule_sets.matching import check_error_choices, report_failures
from gpu_cep.rule_sets.plans import PlannedRule
from gpu_cep.rule_sets.rules import Rule, as_rules, check_split, naming, united
from gpu_cep.rule_sets.tables import PATTERN, check_columns, same_columns
from gpu_cep.signatures import takes_keywords
from gpu_cep_spark.assembly import assemble, numbered, total_counts
from gpu_cep_spark.jobs import counts_in_parts, keys_of_shuffle
from gpu_cep_spark.matching import check_kind, check_spark_settings, gpu_match, known_of, refuse_other_frames
from gpu_cep_spark.narrowing.narrow_queries import NarrowQuery, SlicedQuery, time_kind
from gpu_cep_spark.narrowing.pushdown import column, event_filter, read_columns, untimed
from gpu_cep_spark.narrowing.rare_choice import choose_for_all, variable_names
from gpu_cep_spark.narrowing.rare_events import NearRare, keep_near
from gpu_cep_spark.narrowing.rule_filters import MOST_FILTERS, any_filter
from gpu_cep_spark.rapids import warn_of_types
from gpu_cep_spark.rule_sets.shuffles import RuleShuffle, choose_shuffles
from gpu_cep_spark.rule_sets.streaming import match_each_of_stream, match_rules_of_stream, plan_streamed_rules
from gpu_cep_spark.schemas import arrow_schema, batch_schema, spark_schema
from gpu_cep_spark.slices.cut import in_slices, number_of
from gpu_cep_spark.slices.shuffle_tasks import shuffle
from gpu_cep_spark.tasks.handshake import make_stage
from gpu_cep_spark.tasks.rule_worker import RuleWork
from gpu_cep_spark.tasks.worker import Work

if TYPE_CHECKING:
    from gpu_cep.queries.plans import Pattern


@takes_keywords(match, SparkOptions)
def gpu_match_all(
    df: DataFrame,
    patterns: Mapping[str, Pattern | Rule],
    *,
    on_error: OnError = "raise",
    failures: MutableMapping[str, CepError] | None = None,
    split: bool = False,
    worker_memory: int | str | None = None,
    rare: str | Sequence[str] | None = None,
    emit: str = "certain",
    every: float | str | None = None,
    late: str = "drop",
    time_to_live: float | str | None = None,
    **keywords: Unpack[SparkOptions],
) -> Any:
    """Find the matches of many patterns among the events of a Spark DataFrame.

    Each pattern has the matches that :func:`gpu_match` finds for it. Patterns whose streams have the
    same keys share one shuffle and one Python stage. So do patterns whose keys contain those of
    another pattern, or have some in common that spread the rows of sampled files. Patterns whose
    streams have no keys share one, too: by slices of time that fit the longest window, or to one task
    if their stream cannot be cut. :func:`gpu_cep.explain_all` says which pattern is shuffled how.
    Nothing runs until an action needs the result, but errors in queries are raised at once.

    Of a streaming DataFrame the result is one, too, in append mode. One stateful query has all
    patterns, whatever their keys. Each match comes out once, as of :func:`gpu_match`.

    Parameters
    ----------
    df
        The events; a classic or a Spark Connect DataFrame, also a streaming one with a
        watermark on its timestamps, which all patterns have in common.
    patterns
        As in :func:`gpu_cep.match_all`.
    on_error, failures
        As in :func:`gpu_cep.match_all`, for errors that are known before a job runs. An error that
        only workers see, such as a limit that is reached, ends the job; its message names the pattern.
    split
        Whether the result is a dictionary of DataFrames by name. Each is computed when it is used;
        a job that uses several shuffles the events once for those whose streams have keys.
        Of a streaming DataFrame each is a stream of its own, as of :func:`gpu_match`.
    worker_memory
        As in :func:`gpu_match`.
    rare
        Variables of which each match of each pattern binds one, and of which there are few
        events. Only events near these are shuffled, as in :func:`gpu_match`. A shuffle has
        those of all its patterns. By default a shuffle that patterns share has all events.
    emit, every
        As in :func:`gpu_match`, of a streaming DataFrame.
    late
        As in :func:`gpu_match`, of a streaming DataFrame. Of ``rows``, a late event comes out
        once, with NULL for the pattern; with `split` it is a row of each DataFrame.
    time_to_live
        As in :func:`gpu_match`, of a streaming DataFrame, for the patterns that have such a
        window.
    **keywords
        As in :func:`gpu_match`; ``output="compressed"`` is not supported.

    Returns
    -------
    DataFrame, or dict of DataFrame
        One DataFrame with the column ``pattern`` before those of :func:`gpu_match`, in no particular
        order. With `split`, one for each pattern that has no error.

    Raises
    ------
    PatternError
        `patterns` is no mapping of names to patterns, or the results have not the same
        columns and cannot be one DataFrame. Or a match of a pattern may bind none of the
        variables that `rare` names.
    UnsupportedError
        `rare` is ``auto``, or events of a pattern cannot be left out. Or a stream cannot answer a
        pattern, or a streaming DataFrame has no watermark on the timestamps.
    CepError
        Any error that :func:`gpu_match` raises. The message names the pattern.
    """
    refuse_other_frames(df)
    rules = as_rules(patterns)
    check_split(split)
    check_error_choices(on_error, failures)
    refuse_output(keywords.get("output"), "for many patterns under Spark")
    of_stream: dict[str, Any] = {"emit": emit, "every": every, "late": late, "time_to_live": time_to_live}
    check_kind(gpu_match_all, df, {"worker_memory": worker_memory, "rare": rare}, of_stream)
    if df.isStreaming:
        planned, failed = plan_streamed_rules(rules, keywords, df, Arrival(**of_stream))
        streams, further = match_each_of_stream(df, planned) if split else ({}, {})
        failed |= further
        _refuse_failed(failed, rules, on_error)
        found = streams if split else match_rules_of_stream(df, planned)
        report_failures(failed, failures)
        return found
    zone = str(df.sparkSession.conf.get("spark.sql.session.timeZone"))
    queries, failed = plan_spark_rules(rules, keywords, arrow_schema(df.schema, zone))
    _refuse_failed(failed, rules, on_error)
    if not split:
        check_columns({name: answer_schema(query.plan, query.events) for name, query in queries.items()})
    report_failures(failed, failures)
    job = _Job(df, zone, memory_bytes(worker_memory, "worker_memory"), choose_for_all(queries, df, rare))
    shuffles = choose_shuffles(queries, partial(known_of, df))
    # Spark shuffles slices once for each DataFrame, so that there is nothing to share
    shared = [shuffle for shuffle in shuffles.shared if shuffle.slicing is None or not split]
    together = {name for shuffle in shared for name in shuffle.queries}
    alone = {
        name: job.match_alone(query, rules[name].pattern, {**keywords, **rules[name].options}, job.rare.get(name))
        for name, query in queries.items()
        if name not in together
    }
    if split:
        found = {name: frame for shuffle in shared for name, frame in job.match_each(shuffle).items()} | alone
        return {name: found[name] for name in queries}
    frames = [job.match(shuffle) for shuffle in shared]
    frames += [numbered(frame).select(F.lit(name), "*").toDF(PATTERN, *frame.columns) for name, frame in alone.items()]
    return reduce(DataFrame.unionAll, frames)


def _refuse_failed(failed: Mapping[str, CepError], rules: Mapping[str, Rule], on_error: OnError) -> None:
    """Raise the errors of patterns if one of them is enough to stop the others, or if all have failed."""
    if failed and (on_error == "raise" or len(failed) == len(rules)):
        raise united(failed)


def refuse_output(output: object, where: str) -> None:
    """Raise UnsupportedError for an output that calls in SQL, or with many patterns, cannot give."""
    if output in ("compressed", "indices"):
        raise UnsupportedError(f"output={output!r} is not supported {where}; supported: matches, events, count")


def plan_spark_rules(
    rules: Mapping[str, Rule], keywords: Mapping[str, Any], schema: pa.Schema
) -> tuple[dict[str, NarrowQuery], dict[str, CepError]]:
    """Return the plans of rules by name, and the errors of the others."""
    queries: dict[str, NarrowQuery] = {}
    failed: dict[str, CepError] = {}
    for name, rule in rules.items():
        try:
            with naming(name):
                options, settings = read_keywords({**keywords, **rule.options})
                check_spark_settings(settings)
                queries[name] = NarrowQuery.of(rule.pattern, schema, options, settings)
        except CepError as fault:
            failed[name] = fault
    return queries, failed


@dataclass(frozen=True, slots=True)
class _Shuffled:
    """Events in the columns `events`, of which `places` are the keys by which they are shuffled; or `sliced`, by slices of time."""

    frame: DataFrame
    events: pa.Schema
    places: tuple[int, ...] = ()
    sliced: bool = False


@dataclass(frozen=True, slots=True)
class _Job:
    """One call of :func:`gpu_match_all`: its events, the session's time zone, the worker's memory, and the rare variables of patterns.

    `rare` is empty if all events are shuffled.
    """

    df: DataFrame
    zone: str
    memory: int | None
    rare: Mapping[str, tuple[int, ...]]

    def match(self, shared: RuleShuffle) -> DataFrame:
        """Return the matches of rules after one shuffle, with the name of the pattern first; their results have the same columns."""
        return self._found(shared.queries, self._shuffled(shared))

    def match_each(self, shared: RuleShuffle) -> dict[str, DataFrame]:
        """Return the matches of each rule; a job that needs several of these shuffles the events once."""
        shuffled = self._shuffled(shared)
        found = {name: self._found({name: query}, shuffled) for name, query in shared.queries.items()}
        return {name: numbered(frame).drop("r0").toDF(*frame.columns[1:]) for name, frame in found.items()}

    def match_alone(self, query: NarrowQuery, pattern: Pattern, keywords: Mapping[str, Any], rare: tuple[int, ...] | None) -> DataFrame:
        """Return the matches of a rule that shares no shuffle; `rare` are its rare variables."""
        near: dict[str, Any] = {} if rare is None else {"rare": variable_names(query.plan, rare)}
        return gpu_match(self.df, pattern, worker_memory=self.memory, **near, **keywords)

    def _shuffled(self, shared: RuleShuffle) -> _Shuffled:
        """Return the events that rules share, as workers get them."""
        events = events_of_rules(shared.queries.values(), arrow_schema(self.df.schema, self.zone))
        of_rules = {name: _query_over(query, events).plan for name, query in shared.queries.items()}
        plans = list(of_rules.values())
        near = [NearRare(plan, self.rare[name]) for name, plan in of_rules.items() if name in self.rare and isinstance(plan, EventPlan)]
        given = self._narrow(plans, events, near)
        if shared.slicing is None:
            places = tuple(number for number, name in enumerate(events.names) if name in shared.keys)
            return _Shuffled(shuffle(given, [F.col(f"c{key}") for key in places]), events, places)
        cut = in_slices(given, [], F.col(f"c{plans[0].query.timestamp}"), time_kind(plans[0]), shared.slicing)
        return _Shuffled(shuffle(cut, [number_of(F.col(cut.columns[-1]))]), events, sliced=True)

    def _found(self, own: Mapping[str, NarrowQuery], given: _Shuffled) -> DataFrame:
        """Return the matches of rules among shuffled events, with the name of the pattern first."""
        queries = {name: _query_over(query, given.events) for name, query in own.items()}
        if given.sliced:
            return self._in_slices(given.frame, queries)
        rules = tuple(PlannedRule(name, query.plan) for name, query in queries.items())
        result = spark_schema(result_of_rules(rules, given.events))
        warn_of_types(given.frame, given.events.names, result)
        work = Work(rules[0].plan, "", given.events, {}, given.places, batch_schema(result, self.zone), self.memory)
        found = given.frame.mapInArrow(make_stage(RuleWork(work, rules)), result)
        return self._total(found, [rule for rule in rules if counts_in_parts(rule.plan)])

    def _in_slices(self, shuffled: DataFrame, queries: Mapping[str, NarrowQuery]) -> DataFrame:
        """Return the matches of rules without keys, whose stream is cut into slices of time."""
        rules = tuple(PlannedRule(name, query.plan) for name, query in queries.items())
        plan, names = rules[0].plan, result_of_rules(rules, next(iter(queries.values())).events).names
        sliced = {name: SlicedQuery.of(query) for name, query in queries.items()}
        first, own = next(iter(sliced.values())), tuple(PlannedRule(name, query.plan) for name, query in sliced.items())
        result = spark_schema(result_of_rules(own, first.schema))
        warn_of_types(shuffled, first.sent.names, result)
        places = keys_of_shuffle(first.plan)
        work = Work(first.plan, "", first.sent, {}, places, batch_schema(result, self.zone), self.memory, sliced=True)
        found = shuffled.mapInArrow(make_stage(RuleWork(work, own)), result)
        output = plan.settings.output
        if output == "count":
            return self._total(found.select(found.columns[0], found.columns[-1]), rules)
        return assemble(found, first.plan, output, names, beside=1)

    def _narrow(self, plans: Sequence[AnyPlan], events: pa.Schema, near: Sequence[NearRare]) -> DataFrame:
        """Return the events that a variable of some rule may bind, in the columns that rules read, called c0, c1, ….

        If there are rare variables, events far from their events are left out.
        """
        read = keep_near(self.df, events, near) if near else read_columns(self.df, events.names)
        dropped = [untimed(plan.query, read.schema) for plan in plans if plan.query.drops_untimed]
        if len(dropped) == len(plans) and len({plan.query.timestamp for plan in plans}) == 1:
            read = read.filter(~dropped[0])
        condition = _any_filter(plans, read)
        bindable = read if condition is None else read.filter(condition)
        return bindable.select(*(column(name).alias(f"c{number}") for number, name in enumerate(events.names)))

    def _total(self, found: DataFrame, parted: Sequence[PlannedRule]) -> DataFrame:
        """Return counts with those that several partitions have of one stream added up.

        A rule without `partition_by` has a count even if there is no event.
        """
        if not parted:
            return found
        whole = [(rule.name, 0) for rule in parted if not rule.plan.query.partition_by]
        counted = found.unionAll(self.df.sparkSession.createDataFrame(whole, found.schema)) if whole else found
        return total_counts(counted, counted.columns)


def events_of_rules(queries: Iterable[NarrowQuery], schema: pa.Schema) -> pa.Schema:
    """Return the columns of `schema` that some rule reads."""
    read = {name for query in queries for name in query.events.names}
    return pa.schema([field for field in schema if field.name in read])


def result_of_rules(rules: Iterable[PlannedRule], events: pa.Schema) -> pa.Schema:
    """Return the schema of the rules' results, with the name of the pattern first."""
    found = same_columns({rule.name: answer_schema(rule.plan, events) for rule in rules})
    name = PATTERN
    while name in found.names:
        name += "_"
    return pa.schema([pa.field(name, pa.string(), nullable=False), *found])


def _query_over(query: NarrowQuery, events: pa.Schema) -> NarrowQuery:
    """Return a query planned over the columns that a group of rules reads."""
    settings = narrow_settings(query.settings, events.names)
    return NarrowQuery(query.pattern, events, query.options, settings, plan_over(query, events))


def plan_over(query: NarrowQuery, events: pa.Schema) -> AnyPlan:
    """Return the plan of a query over the columns that a group of rules reads; ties are ordered as by those of its own."""
    return make_plan(query.pattern, events, query.options, narrow_settings(query.settings, events.names))


def _any_filter(plans: Sequence[AnyPlan], read: DataFrame) -> Column | None:
    """Return a filter that holds for every event that a variable of some plan may bind; None if no useful one is known."""
    if len(plans) > MOST_FILTERS:
        return None
    return any_filter([event_filter(plan.query, read.schema) if "filter" in plan.pruning else None for plan in plans])
