"""Turn a query, in any form that users give it, into a plan."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from functools import lru_cache
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, TypeGuard

from gpu_cep.analysis.bind import bind
from gpu_cep.analysis.bind_intervals import bind_intervals
from gpu_cep.analysis.options import Options
from gpu_cep.analysis.row_patterns.bind import bind_row_pattern
from gpu_cep.analysis.row_patterns.bound import BoundRowPattern
from gpu_cep.engine.input.schema_memo import SchemaMemo
from gpu_cep.errors import DiagnosedError, Diagnostic, PatternError, PatternSyntaxError, UnsupportedError, warn_caller
from gpu_cep.identity import Identity
from gpu_cep.lang.ast import PatternNode, Query
from gpu_cep.lang.ast_intervals import IntervalQuery
from gpu_cep.lang.groups import expand_groups
from gpu_cep.lang.parser import parse
from gpu_cep.lang.row_patterns.ast import RowPatternQuery
from gpu_cep.plan.columns_read import row_columns_read
from gpu_cep.plan.explain import Explanation
from gpu_cep.plan.interval_explain import IntervalExplanation
from gpu_cep.plan.planner import plan, plan_intervals
from gpu_cep.plan.row_patterns.explain import RowPatternExplanation
from gpu_cep.plan.settings import DEFAULT_SETTINGS, Settings, check_settings

if TYPE_CHECKING:
    import pyarrow as pa

    from gpu_cep.lang.builder import Buildable
    from gpu_cep.plan.interval_plan import AnyPlan
    from gpu_cep.plan.row_patterns.row_plan import RowPlan

    Pattern = str | Query | IntervalQuery | RowPatternQuery | PatternNode | Buildable

PatternQuery = Query | IntervalQuery

_ROWS_RUN = "supported: gpu_cep.match(), gpu_match(), stream(), sql(), explain(), report(), and the commands match, sql, explain and report"

# Settings that mean something to row patterns, and those of their values that do.
_ROW_SETTINGS: dict[str, tuple[object, ...]] = {
    "output": ("matches",),
    "after_match": ("all",),
    "limit_per_start": (None,),
    "order_matches_by": (None,),
    "algorithm": ("auto", "brute_force"),
    "max_matches": (None,),
    "columns": (None,),
    "timeouts": (False,),
    "detected_at": (False,),
}
# What a clause says, where a setting of event patterns says it.
_INSTEAD = {
    "output": "ONE ROW PER MATCH or ALL ROWS PER MATCH",
    "after_match": "AFTER MATCH SKIP …",
    "limit_per_start": "AFTER MATCH SKIP …, which leaves one match of each first row,",
    "order_matches_by": "ORDER BY around the clause, in gpu_cep.sql()",
    "columns": "MEASURES",
    "detected_at": "a measure such as LAST(…) of the timestamp",
    "timeouts": "ALL ROWS PER MATCH WITH UNMATCHED ROWS",
    "max_matches": "a LIMIT around the clause, in gpu_cep.sql()",
}

# What to do with what is no query.
_REMEDIES: dict[type, str] = {
    PurePath: ": give what it holds, pattern.read_text()",
    Mapping: ": many patterns by name are given to match_all(), stream_all() or gpu_match_all()",
}

# What the text of a row pattern has somewhere: others need not be parsed to tell.
_NAMED = re.compile("MATCH_RECOGNIZE", re.IGNORECASE)
# How the text of a query begins.
_BEGINNING = re.compile(r"\s*(?:FROM|PARTITION\s+BY|PATTERN|DEFINE)\s|\s*MATCH_RECOGNIZE\b", re.IGNORECASE)


def as_query(pattern: Pattern) -> PatternQuery:
    """Return the syntax tree of a query given as text, as a tree or from the builder, without repeated groups.

    Raises UnsupportedError for a row pattern, which :func:`is_row_pattern` tells.
    """
    query = parse(pattern) if isinstance(pattern, str) else pattern
    if isinstance(query, RowPatternQuery):
        raise UnsupportedError([Diagnostic(f"MATCH_RECOGNIZE is not supported here; {_ROWS_RUN}")])
    if isinstance(query, Query):
        return _without_groups(query, pattern)
    if isinstance(query, IntervalQuery):
        return query
    if isinstance(pattern, PatternNode):
        return _without_groups(Query(pattern), pattern)
    from gpu_cep.lang.builder import Buildable, query_of

    if not isinstance(pattern, Buildable):
        remedy = next((remedy for kind, remedy in _REMEDIES.items() if isinstance(pattern, kind)), _held(pattern))
        raise PatternSyntaxError(f"a query is text, or built by seq(…) and its like, not {type(pattern).__name__}{remedy}")
    built = query_of(pattern)
    return _without_groups(built, pattern) if isinstance(built, Query) else built


def _held(rule: object) -> str:
    """Return what to give instead of a rule of a rule set, which holds a pattern; nothing for other objects."""
    told = ": give what it holds, rule.pattern and **rule.options, or {'name': rule} to match_all(), stream_all() or gpu_match_all()"
    return told if hasattr(rule, "pattern") and hasattr(rule, "options") else ""


def _without_groups(query: Query, pattern: Pattern) -> Query:
    """Return the query with its groups expanded; errors quote the text that the pattern is."""
    try:
        return expand_groups(query)
    except DiagnosedError as error:
        raise type(error)(error.diagnostics, pattern if isinstance(pattern, str) else None) from None


def explain_alone(pattern: Pattern, settings: Settings) -> Explanation | IntervalExplanation | RowPatternExplanation:
    """Return the explanation of a query without events, which has no plan; nothing that runs queries is imported.

    Raises
    ------
    CepError
        The query is none, or a setting means nothing to row patterns.
    """
    if is_row_pattern(pattern):
        check_row_settings(settings)
        return RowPatternExplanation(as_row_pattern(pattern), None)
    query = as_query(pattern)
    return IntervalExplanation(query, None) if isinstance(query, IntervalQuery) else Explanation(query, None)


def is_row_pattern(pattern: Pattern) -> TypeGuard[str | RowPatternQuery]:
    """Return whether a query, given as text or as a tree, is SQL's MATCH_RECOGNIZE."""
    if isinstance(pattern, str) and not _names_rows(pattern):
        return False
    return isinstance(parse(pattern) if isinstance(pattern, str) else pattern, RowPatternQuery)


@lru_cache(maxsize=1024)
def _names_rows(text: str) -> bool:
    """Return whether the text names MATCH_RECOGNIZE somewhere; case is of no account, which makes the search long."""
    return _NAMED.search(text) is not None


def as_row_pattern(pattern: str | RowPatternQuery) -> RowPatternQuery:
    """Return the syntax tree of MATCH_RECOGNIZE, which :func:`is_row_pattern` has found to be one."""
    query = parse(pattern) if isinstance(pattern, str) else pattern
    assert isinstance(query, RowPatternQuery), "the caller has asked whether it is one"
    return query


def check_row_settings(settings: Settings) -> None:
    """Raise PatternError if a setting has no value that it may have, UnsupportedError with all that mean nothing to row patterns."""
    check_settings(settings)
    faults = []
    for name, known in _ROW_SETTINGS.items():
        given, message = getattr(settings, name), "is not supported for MATCH_RECOGNIZE"
        if given not in known:
            supported = "" if name in _INSTEAD else f"; supported: {' and '.join(map(repr, known))}"
            hint = f"write {_INSTEAD[name]}" if name in _INSTEAD else None
            faults.append(Diagnostic(f"{name}={given!r} {message}{supported}", hint=hint))
    if (settings.engine, settings.algorithm) == ("gpu", "brute_force"):
        faults.append(Diagnostic("algorithm='brute_force' cannot run on GPU; supported with engine='gpu': algorithm='auto'"))
    if faults:
        raise UnsupportedError(faults)


def bind_rows(pattern: str | RowPatternQuery, schema: pa.Schema, options: Options) -> BoundRowPattern:
    """Return MATCH_RECOGNIZE, given as text or as a tree, bound to rows of `schema`; raises as :func:`bind_row_pattern`.

    That of a text is remembered.
    """
    if isinstance(pattern, str) and _is_remembered(schema, options):
        return _rows_of_text(pattern, schema, options)
    return _newly_bound(pattern, schema, options)


def _newly_bound(pattern: str | RowPatternQuery, schema: pa.Schema, options: Options) -> BoundRowPattern:
    from gpu_cep.engine.input.read_tables import schema_of

    check_column_names(schema.names)
    return bind_row_pattern(as_row_pattern(pattern), schema_of(schema), options, pattern if isinstance(pattern, str) else None)


def columns_of_rows(pattern: str | RowPatternQuery, schema: pa.Schema, options: Options) -> list[str]:
    """Return the columns of rows that a row pattern reads or returns, at least one to count rows by; raises as :func:`bind_rows`."""
    read = row_columns_read(bind_rows(pattern, schema, options)) or (0,)
    return [schema.names[number] for number in read[: len(schema.names)]]


def make_row_plan(
    pattern: str | RowPatternQuery, schema: pa.Schema, options: Options, settings: Settings = DEFAULT_SETTINGS
) -> RowPlan:  # fmt: skip
    """Return the plan of MATCH_RECOGNIZE, given as text or as a tree, over rows of `schema`; that of either is remembered.

    Raises
    ------
    UnsupportedError
        The pattern has too many states or variables, or a condition reads what a search cannot keep; the message names it.
    CepError
        As :func:`bind_row_pattern`.
    """
    if not _is_remembered(schema, options):
        return _new_row_plan(pattern, schema, options, settings)
    if isinstance(pattern, str):
        return _row_plan_of_text(pattern, schema, options, settings)
    return _row_plan_of_tree(Identity(pattern), schema, options, settings)


def _new_row_plan(pattern: str | RowPatternQuery, schema: pa.Schema, options: Options, settings: Settings) -> RowPlan:
    from gpu_cep.plan.row_patterns.planner import plan_row_pattern

    return plan_row_pattern(bind_rows(pattern, schema, options), settings)


_row_plan_of_text = lru_cache(maxsize=256)(_new_row_plan)


@lru_cache(maxsize=256)
def _row_plan_of_tree(pattern: Identity[RowPatternQuery], schema: pa.Schema, options: Options, settings: Settings) -> RowPlan:
    return _new_row_plan(pattern.value, schema, options, settings)


def check_rows(plan: RowPlan, schema: pa.Schema) -> None:
    """Raise UnsupportedError if the engine cannot answer a row pattern over rows of `schema`; no row is needed for that."""
    from gpu_cep.engine.row_patterns.answers import answer_row_pattern

    answer_row_pattern(plan, schema.empty_table(), threads=1)


def refuse_swapped(function: str, events: object, pattern: object) -> None:
    """Raise PatternError if the events and the pattern of a call have changed places."""
    if are_swapped(events, pattern):
        raise PatternError(f"{function}() takes the events first, then the pattern: {function}(events, pattern)")


def events_and_pattern(events: Any, pattern: Any) -> tuple[Any, Any]:
    """Return the events, None if there are none, and the pattern of a call of ``explain(events, pattern)``."""
    if events is None or pattern is None:
        return None, events if pattern is None else pattern
    if are_swapped(events, pattern):
        warn_caller("explain() takes the events first: explain(events, pattern)", DeprecationWarning)
        return pattern, events
    return events, pattern


def are_swapped(events: object, pattern: object) -> bool:
    """Return whether `events` rather than `pattern` is a query."""
    likeness = _likeness(pattern)
    return likeness < _LIKEST and _likeness(events) > likeness


_LIKEST = 2


def _likeness(given: object) -> int:
    """Return how much a value is like a query: 2 for a built one or text that begins as one, 1 for other text, else 0."""
    if isinstance(given, str):
        return 1 + (_BEGINNING.match(given) is not None)
    # a builder that has not been imported made nothing
    builder = sys.modules.get("gpu_cep.lang.builder")
    trees = (Query, IntervalQuery, RowPatternQuery, PatternNode)
    built = trees if builder is None else (*trees, builder.Buildable)
    return _LIKEST * isinstance(given, built)


def make_plan(pattern: Pattern, schema: pa.Schema, options: Options, settings: Settings) -> AnyPlan:
    """Return the plan of a query over events of `schema`.

    All errors in the query and the settings are raised here, before any event is read.
    """
    # first, since the cache compares settings: it would take max_matches=True for 1
    check_settings(settings)
    if not _may_be_known(options):
        return _new_plan(pattern, schema, options, settings)
    text_or_tree: str | Identity[Pattern] = pattern if isinstance(pattern, str) else Identity(pattern)
    return _plans.of((text_or_tree, options, settings), schema, lambda own: _new_plan(pattern, own, options, settings))


def _is_remembered(schema: pa.Schema, options: Options) -> bool:
    """Return whether the plan of a row pattern may be cached; extension types need not be hashable."""
    return _may_be_known(options) and all(isinstance(kind, Hashable) for kind in schema.types)


def _may_be_known(options: Options) -> bool:
    """Return whether a plan may be cached; not with a gap, since equal ones may differ in type, as 1 and 1.0 do."""
    # a cache must not keep the caller's functions alive
    return options.gap is None and not options.functions


def _new_plan(pattern: Pattern, schema: pa.Schema, options: Options, settings: Settings) -> AnyPlan:
    from gpu_cep.engine.answers import answer_schema
    from gpu_cep.engine.input.read_tables import schema_of

    text = pattern if isinstance(pattern, str) else None
    query = as_query(pattern)
    check_column_names(schema.names)
    made: AnyPlan
    if isinstance(query, IntervalQuery):
        made = plan_intervals(bind_intervals(query, schema_of(schema), options, text), settings, text)
    else:
        made = plan(bind(query, schema_of(schema), options, text, ranking=settings.order_matches_by), settings)
    answer_schema(made, schema)
    return made


# Over few events planning is most of the work, and the same queries are often asked of the next events: those of a whole rule set.
_plans: SchemaMemo[tuple[str | Identity[Pattern], Options, Settings], AnyPlan] = SchemaMemo(1024, metadata=False)


_rows_of_text = lru_cache(maxsize=256)(_newly_bound)


def check_column_names(names: Sequence[str]) -> None:
    """Raise PatternError if two columns have one name."""
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise PatternError([Diagnostic(f"the events have more than one column {name!r}") for name in twice])
