"""Say in words which patterns of a rule set share events on Spark, and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from pyspark.sql import DataFrame

from gpu_cep.errors import CepError
from gpu_cep.live.plans import Arrival
from gpu_cep.rule_sets.matching import explain_all
from gpu_cep.rule_sets.rules import Rule
from gpu_cep_spark.matching import check_kind, known_of
from gpu_cep_spark.narrowing.rare_choice import choose_for_all, variable_names
from gpu_cep_spark.rule_sets.matching import plan_spark_rules
from gpu_cep_spark.rule_sets.shuffles import choose_shuffles, described
from gpu_cep_spark.rule_sets.streaming import check_one_stream, groups_of_rules, plan_streamed_rules
from gpu_cep_spark.rule_sets.streaming import described as described_group
from gpu_cep_spark.schemas import arrow_schema

# The most patterns of a shuffle that are named.
_NAMED = 5


@dataclass(frozen=True, slots=True)
class SharedEvents:
    """Patterns that get the same events: by one shuffle and one Python stage, or of a stream from one list in each bucket.

    `told` says in words how the events come together.
    """

    patterns: tuple[str, ...]
    told: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SparkRuleSetExplanation:
    """Which patterns of a set share events on Spark; ``str()`` says it in words.

    `shared`: the patterns by the events that they share. `alone`: why a pattern is matched by a call of its own, by name.
    `failed`: the errors of patterns, by name. `rare`: the variables of patterns near whose events others are shuffled, by name; none
    if all events are.
    """

    shared: tuple[SharedEvents, ...]
    alone: Mapping[str, str]
    failed: Mapping[str, CepError]
    rare: Mapping[str, tuple[str, ...]]

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        for each in self.shared:
            named, more = ", ".join(each.patterns[:_NAMED]), len(each.patterns) - _NAMED
            yield f"{'; '.join([*each.told, *self._near(each.patterns)])}: {named}{f' and {more:,} more' if more > 0 else ''}"
        yield from (f"alone: {name} ({'; '.join([reason, *self._near([name])])})" for name, reason in self.alone.items())
        yield from (f"error: {fault}" for fault in self.failed.values())

    def _near(self, patterns: Iterable[str]) -> Iterator[str]:
        """Give what is said of the events that patterns get, if some are left out."""
        if names := dict.fromkeys(name for pattern in patterns for name in self.rare.get(pattern, ())):
            yield f"only events near those of {' or '.join(names)}"


def explain_spark_rules(
    df: DataFrame, rules: Mapping[str, Rule], rare: object, of_stream: Mapping[str, Any], keywords: Mapping[str, Any]
) -> SparkRuleSetExplanation:
    """Return which shuffles rules take over a DataFrame, of a streaming one with the keywords `of_stream`; no job runs.

    Raises as :func:`gpu_cep_spark.matching.check_kind`, and as :func:`gpu_cep_spark.narrowing.rare_choice.choose_for_all` for `rare`.
    """
    check_kind(explain_all, df, {"rare": rare}, of_stream)
    if df.isStreaming:
        return _explain_stream(df, rules, Arrival(**of_stream), keywords)
    zone = str(df.sparkSession.conf.get("spark.sql.session.timeZone"))
    queries, failed = plan_spark_rules(rules, keywords, arrow_schema(df.schema, zone))
    near = {name: tuple(variable_names(queries[name].plan, each)) for name, each in choose_for_all(queries, df, rare).items()}
    chosen = choose_shuffles(queries, partial(known_of, df))
    shared = tuple(SharedEvents(tuple(each.queries), tuple(described(each))) for each in chosen.shared)
    return SparkRuleSetExplanation(shared, chosen.alone, failed, near)


def _explain_stream(
    df: DataFrame, rules: Mapping[str, Rule], arrival: Arrival, keywords: Mapping[str, Any]
) -> SparkRuleSetExplanation:  # fmt: skip
    """Return which rules share events in the state of a streaming DataFrame."""
    planned, failed = plan_streamed_rules(rules, keywords, df, arrival)
    if planned:
        check_one_stream(df, planned)
    shared = (SharedEvents(tuple(group.rules), ("one stateful query", *described_group(group))) for group in groups_of_rules(planned))
    return SparkRuleSetExplanation(tuple(shared), {}, failed, {})
