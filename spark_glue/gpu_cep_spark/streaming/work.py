"""Say what the work on each bucket of a stream is, which travels to the executors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa

from gpu_cep.live.queries import LiveQuery
from gpu_cep.rule_sets.lookups import RuleLookups, rule_lookups
from gpu_cep_spark.narrowing.codes import Codes


@dataclass(frozen=True, slots=True)
class LiveRule:
    """A query that is asked of a stream.

    Parameters
    ----------
    live
        The query; its `schema` has the users' names of columns.
    digest
        What tells the query from others.
    pattern
        The query as one line of text, for error messages.
    name
        Its name in a rule set; None if it is asked by itself.
    """

    live: LiveQuery
    digest: str
    pattern: str
    name: str | None = None


@dataclass(frozen=True)
class LiveGroup:
    """Queries that are asked of the same events: a bucket keeps one list of events for all of them.

    Parameters
    ----------
    rules
        The queries: one that is asked by itself, or those of a rule set whose events are spread over buckets by the same keys.
    schema
        The columns that some of them reads, with the users' names; of a query by itself those of the query.
    keys
        The columns by whose values events are spread over buckets; without any, all go into one bucket.
    codes
        The text columns that arrive as codes, with the constants that these stand for; a rule set has none.
    ties
        The columns that order rows which the ORDER BY of a row pattern leaves equal.
    """

    rules: tuple[LiveRule, ...]
    schema: pa.Schema
    keys: tuple[int, ...] = ()
    codes: Codes = field(default_factory=dict)
    ties: tuple[int, ...] = ()

    @property
    def first(self) -> LiveRule:
        """Return the first query; the others say the same of times and of late events."""
        return self.rules[0]

    @property
    def is_shared(self) -> bool:
        """Return whether several queries need events of the list, each of them others."""
        return len(self.rules) > 1

    @property
    def timestamp(self) -> int:
        """Return the column of times."""
        live = self.first.live
        number: int = self.schema.names.index(live.schema.names[live.plan.query.timestamp])
        return number

    @cached_property
    def by_name(self) -> Mapping[str, LiveRule]:
        """Return the queries by their names in a rule set."""
        return {rule.name: rule for rule in self.rules if rule.name is not None}

    @cached_property
    def lookups(self) -> RuleLookups:
        """Return the constants that are looked up in events for all queries at once."""
        return rule_lookups({name: rule.live for name, rule in self.by_name.items()})


@dataclass(frozen=True, slots=True)
class LiveWork:
    """The work on each bucket, which belongs to one of the groups.

    Parameters
    ----------
    groups
        The queries, by the events that they share.
    result
        The schema that Spark expects of the matches.
    partitions
        The partitions of the state, if Spark does not tell tasks of another number.
    whole
        The schema of whole events if late ones are rows of the result; else None. Whole events come behind the columns of the
        first group, for all groups.
    """

    groups: tuple[LiveGroup, ...]
    result: pa.Schema
    partitions: int
    whole: pa.Schema | None = None

    @property
    def live(self) -> LiveQuery:
        """Return the first query; the others say the same of times and of late events."""
        return self.groups[0].first.live

    @property
    def columns(self) -> list[str]:
        """Return the users' names of the columns that are sent: those of all groups."""
        return list(dict.fromkeys(name for group in self.groups for name in group.schema.names))

    @property
    def queries(self) -> tuple[int, ...]:
        """Return how many queries each group has; 0 if its events are not spread over buckets by keys."""
        return tuple(len(group.rules) if group.keys else 0 for group in self.groups)

    @property
    def digests(self) -> dict[str, str]:
        """Return what tells each query of a rule set from others, by its name."""
        return {rule.name: rule.digest for group in self.groups for rule in group.rules if rule.name is not None}
