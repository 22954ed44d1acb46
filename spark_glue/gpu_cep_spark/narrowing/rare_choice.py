"""Choose the variables near whose events others are shuffled, if that is exact and pays.

A pass over the source looks for rare events; `python -m benchmarks.spark.rare` measures what it
costs. It is made only where a sample of files promises that it spares much more.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from gpu_cep.analysis.bound import TimeWindow
from gpu_cep.engine.input.event_filter import variable_filters
from gpu_cep.errors import Diagnostic, PatternError, UnsupportedError, list_choices, nearest
from gpu_cep.plan.event_plan import EventPlan
from gpu_cep.plan.interval_plan import AnyPlan
from gpu_cep.plan.programs import leaves
from gpu_cep.plan.properties import property_conjuncts
from gpu_cep.plan.timeouts import TIMEOUT
from gpu_cep.rule_sets.rules import naming
from gpu_cep_spark.jvm import items
from gpu_cep_spark.narrowing.narrow_queries import NarrowQuery
from gpu_cep_spark.narrowing.pushdown import read_columns, variable_filter
from gpu_cep_spark.narrowing.rare_events import BINS, BITS
from gpu_cep_spark.slices.choice import AUTO, WINDOWS
from gpu_cep_spark.slices.cut import LONGEST
from gpu_cep_spark.slices.statistics import LEAST_SHARE, count_rows, sample_filters, stream_shares, time_span

# Of all rows the share, and the number, that must be left out at least: `python -m benchmarks.spark.rare` measures what that spares.
LEAST_SPARED, FEWEST_ROWS = 1 / 3, 1_000_000
# Nodes of a plan that give the same rows each time, without a shuffle of their own; and others that do.
_CHEAP = {"Project", "Filter", "Union", "SubqueryAlias", "View", "InMemoryRelation", "LogicalRelation"}
_REPEATABLE = {*_CHEAP, "Join", "Repartition", "RebalancePartitions", "RepartitionByExpression", "LocalRelation", "Range"}
# Why nothing is left out, for two reasons of which each is found in two places.
_UNTOLD = "no condition with constants tells which events are rare"
_UNKNOWN = "it is not known how frequent which events are; rare= names variables with few"


class RareChoice(NamedTuple):
    """The numbers of the variables near whose events others are shuffled, and why, for a report.

    There are none if all events are shuffled.
    """

    variables: tuple[int, ...]
    why: str


class _NoChoiceError(Exception):
    """All events are shuffled; the message says why."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What a sample says of the rows of a source.

    Parameters
    ----------
    rows
        The number of all rows.
    sent
        The share of the rows that some variable may bind.
    rare
        The share of the rows that are rare events.
    bins
        The number of windows in the time that all rows span.
    together
        The chance that two events are of the same stream.
    """

    rows: int
    sent: float
    rare: float
    bins: float
    together: float

    @property
    def spared(self) -> float:
        """Return the share of the rows that are sent now but are near no rare event.

        Rare events are taken to be spread evenly.
        """
        set_by_all = self.rare * self.rows * BINS
        reaching = set_by_all * (self.together / max(self.bins, 1.0) + 1 / BITS)
        return self.sent * math.exp(-reaching)

    @property
    def pays(self) -> bool:
        """Return whether the rows that are spared take much longer than to look for rare events."""
        return self.spared >= LEAST_SPARED and self.spared * self.rows >= FEWEST_ROWS


def rare_names(wanted: object) -> tuple[str, ...] | None:
    """Return the names that ``rare=`` lists.

    They are ``("auto",)`` for a choice by sample, and None for no rare variables.

    Raises
    ------
    PatternError
        `wanted` is something else.
    """
    if wanted is None or isinstance(wanted, str):
        return None if wanted is None else (wanted,)
    names = tuple(wanted) if isinstance(wanted, Iterable) and not isinstance(wanted, bytes | Mapping) else ()
    if not names or not all(isinstance(name, str) for name in names):
        message = f"rare={wanted!r} names no variables"
        raise PatternError([Diagnostic(message, hint="expected: a variable's name, a list of names, 'auto' or None")])
    return names


def _no_variable(name: str, known: Sequence[str], asked: str) -> PatternError:
    """Return the error for a name that no variable of what is `asked` has."""
    hint = nearest(name, known) or f"there are {list_choices(name, known)}"
    return PatternError([Diagnostic(f"rare={name!r} is no variable of {asked}", hint=hint)])


def check_names(plan: AnyPlan, wanted: Sequence[str] | None) -> None:
    """Raise PatternError for a name that is no variable of the pattern."""
    known = [variable.name for variable in plan.query.variables]
    for name in () if wanted is None or tuple(wanted) == (AUTO,) else wanted:
        if name not in known:
            raise _no_variable(name, known, "the pattern")


def choose_rare(plan: AnyPlan, events: pa.Schema, df: DataFrame, wanted: Sequence[str] | None) -> RareChoice:
    """Return the rare variables: those that are `wanted`, or of ``auto`` those that a sample tells.

    Raises
    ------
    PatternError
        A match may bind none of the variables that `wanted` names.
    UnsupportedError
        `wanted` names variables, but no events can be left out; the message says why.
    """
    if wanted is None:
        return RareChoice((), "all events are shuffled: rare=None")
    if tuple(wanted) != (AUTO,):
        with _refusing(wanted):
            return _as_named(_refuse_inexact(plan), events, df, wanted)
    try:
        return _by_sample(_refuse_inexact(plan), events, df)
    except _NoChoiceError as reason:
        return RareChoice((), f"all events are shuffled: {reason}")


def _refuse_inexact(plan: AnyPlan) -> EventPlan:
    """Return the plan of an event pattern.

    Raise _NoChoiceError if events far from rare ones may bear on the answer.
    """
    if not isinstance(plan, EventPlan):
        raise _NoChoiceError("situations are made of all events")
    window = plan.query.window
    if not isinstance(window, TimeWindow):
        raise _NoChoiceError("the query has no window of time")
    if not window.length <= LONGEST // WINDOWS:
        raise _NoChoiceError("its window is so long")
    if plan.settings.kind == TIMEOUT:
        raise _NoChoiceError("timeouts are of starts without a rare event, too")
    if "reach" not in plan.pruning:
        raise _NoChoiceError("prune= or algorithm= leaves reach out")
    return plan


def choose_for_all(queries: Mapping[str, NarrowQuery], df: DataFrame, rare: object) -> dict[str, tuple[int, ...]]:
    """Return for each pattern the numbers of its variables that `rare` names; nothing if it is None.

    Raises
    ------
    PatternError
        `rare` names no variables, or one that no pattern has.
        Or a match of a pattern may bind none of those that are named.
    UnsupportedError
        The variables are to be chosen by a sample, or the events of a pattern cannot be left out; the message says why.
    """
    wanted = rare_names(rare)
    if wanted is None or not queries:
        return {}
    if wanted == (AUTO,):
        message, hint = "rare='auto' is not supported for many patterns", "name variables, such as rare=['h'], or give rare=None"
        raise UnsupportedError([Diagnostic(message, hint=hint)])
    known = list(dict.fromkeys(variable.name for query in queries.values() for variable in query.plan.query.variables))
    for name in wanted:
        if name not in known:
            raise _no_variable(name, known, "the patterns")
    with _refusing(wanted):
        _refuse_other_sources(df, _REPEATABLE)
    found: dict[str, tuple[int, ...]] = {}
    for name, query in queries.items():
        with naming(name), _refusing(wanted):
            found[name] = _called(_refuse_inexact(query.plan), _read(df, query.events), wanted)
    return found


@contextmanager
def _refusing(wanted: Sequence[str]) -> Iterator[None]:
    """Raise UnsupportedError with the reason why all events are shuffled, if there is one."""
    try:
        yield
    except _NoChoiceError as reason:
        message = f"rare={', '.join(wanted)} is not possible: {reason}"
        raise UnsupportedError([Diagnostic(message, hint="rare=None shuffles all events")]) from None


def _as_named(plan: EventPlan, events: pa.Schema, df: DataFrame, names: Sequence[str]) -> RareChoice:
    """Return the variables called `names`, one of which each branch must bind."""
    _refuse_other_sources(df, _REPEATABLE)
    variables = _called(plan, _read(df, events), names)
    return RareChoice(variables, _told(plan, variables, "rare= names them"))


def _called(plan: EventPlan, schema: StructType, names: Sequence[str]) -> tuple[int, ...]:
    """Return the numbers of the variables called `names`, one of which each branch must bind."""
    variables = tuple(number for number, variable in enumerate(plan.query.variables) if variable.name in names)
    for branch in plan.branches:
        if not set(branch.positives) & set(variables):
            bound = ", ".join(plan.query.variables[number].name for number in branch.positives)
            raise PatternError([Diagnostic(f"rare={', '.join(names)} is not in every match: one may bind {bound} alone")])
    for number in variables:
        if variable_filter(plan.query, schema, number) is None:
            raise _NoChoiceError(f"no condition compares {plan.query.variables[number].name} with constants as Spark does")
    return variables


def _by_sample(plan: EventPlan, events: pa.Schema, df: DataFrame) -> RareChoice:
    """Return the rarest variables of a sample, if it pays to look for their events.

    The reasons against it that are cheapest to find come first.
    """
    known = variable_filters(plan, events)
    if all(each is None for each in known):
        raise _NoChoiceError(_UNTOLD)
    rows = count_rows(df)
    if rows is None:
        raise _NoChoiceError(_UNKNOWN)
    if rows < FEWEST_ROWS:
        raise _NoChoiceError(f"there are {rows:,} rows, and of fewer than {FEWEST_ROWS:,} that is quicker")
    _refuse_other_sources(df, _CHEAP)
    schema = _read(df, events)
    usable = {
        number: each for number, each in enumerate(known) if each is not None and variable_filter(plan.query, schema, number) is not None
    }
    if not all(set(branch.positives) & usable.keys() for branch in plan.branches):
        raise _NoChoiceError(_UNTOLD)
    sample = sample_filters(df, usable, columns_compared(plan, events, usable))
    if sample is None:
        raise _NoChoiceError(_UNKNOWN)
    variables = tuple(sorted({min(set(branch.positives) & usable.keys(), key=sample.counts.__getitem__) for branch in plan.branches}))
    sent = sample.any / sample.rows if "filter" in plan.pruning and len(usable) == len(known) else 1.0
    if sent < LEAST_SPARED:
        raise _NoChoiceError(f"only {sent:.0%} of the rows are sent in any case")
    held = sum(sample.counts[number] for number in variables)
    # one more of each than the sample has, which may have missed some
    expected = _expected(plan, events, df, rows, sent, rare=(held + len(variables)) / sample.rows)
    told = f"{held:,} of {sample.rows:,} sampled rows are such events, and {expected.spared:.0%} of all {rows:,} need not be sent"
    if not expected.pays:
        return RareChoice((), f"all events are shuffled: of {_names(plan, variables)}, {told}")
    return RareChoice(variables, _told(plan, variables, told))


def columns_compared(plan: EventPlan, events: pa.Schema, variables: Iterable[int]) -> list[str]:
    """Return the columns that conditions with constants read of these variables."""
    own = [conjunct for _, conjunct, bits in property_conjuncts(plan.query) if any(bits >> number & 1 for number in variables)]
    read = {leaf.column for conjunct in own for leaf in leaves(conjunct) if leaf.column is not None}
    return sorted({events.names[column] for each in read for column in plan.query.input_columns(each)})


def _expected(plan: EventPlan, events: pa.Schema, df: DataFrame, rows: int, sent: float, *, rare: float) -> Expected:
    """Return what is expected of the rows, given the shares that are sent and that are rare events."""
    time, window = events.field(plan.query.timestamp), plan.query.window
    span = time_span(df, time.name, time.type)
    shares = stream_shares(df, [events.names[key] for key in plan.stream_keys]) if plan.stream_keys else [1.0]
    if span is None or shares is None:
        raise _NoChoiceError(_UNKNOWN)
    assert isinstance(window, TimeWindow), "checked before"
    bins = span / window.length if window.length else math.inf
    # streams that are not among the shares have at most the least of these
    together = sum(share * share for share in shares) + max(0.0, 1 - sum(shares)) * LEAST_SHARE
    return Expected(rows, sent, rare, bins, together)


def _told(plan: EventPlan, variables: Sequence[int], why: str) -> str:
    return f"events near those of {_names(plan, variables)} are shuffled: {why}"


def variable_names(plan: AnyPlan, variables: Iterable[int]) -> list[str]:
    """Return what variables with these numbers are called."""
    return [plan.query.variables[number].name for number in variables]


def _names(plan: EventPlan, variables: Sequence[int]) -> str:
    return " or ".join(variable_names(plan, variables))


def _read(df: DataFrame, events: pa.Schema) -> StructType:
    return read_columns(df, events.names).schema


def _refuse_other_sources(df: DataFrame, known: set[str]) -> None:
    """Raise _NoChoiceError unless `df` surely gives the same rows each time, by the nodes `known`."""
    if not isinstance(df.sparkSession, SparkSession):
        raise _NoChoiceError("a client of Spark Connect does not see whether the DataFrame gives the same rows twice")
    nodes = list(_nodes(df._jdf.queryExecution().optimizedPlan()))
    if not all(node.deterministic() and node.subqueries().isEmpty() for node in nodes):
        raise _NoChoiceError("the DataFrame may give other rows when it is read again")
    other = next((node for node in nodes if not _is_known(node, known)), None)
    if other is not None:
        raise _NoChoiceError(f"a DataFrame with {other.nodeName()} in its plan is not read twice, as files, their joins and caches are")


def _is_known(node: Any, known: set[str]) -> bool:
    kind = node.getClass().getSimpleName()
    return kind in known and (kind != "LogicalRelation" or node.relation().getClass().getSimpleName() == "HadoopFsRelation")


def _nodes(plan: Any) -> Iterator[Any]:
    """Yield the nodes of a plan, also those of plans whose rows are in the cache."""
    yield plan
    cached = plan.getClass().getSimpleName() == "InMemoryRelation"
    for child in [plan.cacheBuilder().logicalPlan()] if cached else items(plan.children()):
        yield from _nodes(child)
