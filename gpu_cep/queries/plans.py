"""Turn a query, in any form that users give it, into a plan."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from gpu_cep.analysis.bind import bind
from gpu_cep.analysis.bind_intervals import bind_intervals
from gpu_cep.analysis.options import Options
from gpu_cep.engine.input.schema_memo import SchemaMemo
from gpu_cep.errors import DiagnosedError, Diagnostic, PatternError, PatternSyntaxError, UnsupportedError, warn_caller
from gpu_cep.identity import Identity
from gpu_cep.lang.ast import PatternNode, Query
from gpu_cep.lang.ast_intervals import IntervalQuery
from gpu_cep.lang.groups import expand_groups
from gpu_cep.lang.parser import parse
from gpu_cep.lang.row_patterns.ast import RowPatternQuery
from gpu_cep.plan.explain import Explanation
from gpu_cep.plan.interval_explain import IntervalExplanation
from gpu_cep.plan.planner import plan, plan_intervals
from gpu_cep.plan.row_patterns.explain import RowPatternExplanation
from gpu_cep.plan.settings import Settings, check_settings
from gpu_cep.queries.row_plans import as_row_pattern, check_row_settings, is_row_pattern

if TYPE_CHECKING:
    import pyarrow as pa

    from gpu_cep.lang.builder import Buildable
    from gpu_cep.plan.interval_plan import AnyPlan

    Pattern = str | Query | IntervalQuery | RowPatternQuery | PatternNode | Buildable

PatternQuery = Query | IntervalQuery

_ROWS_RUN = (
    "supported: gpu_cep.match(), match_all(), gpu_match(), stream(), stream_all(), sql(), explain(), report(), "
    "and the commands match, sql, explain and report"
)

# What to do with what is no query.
_REMEDIES: dict[type, str] = {
    PurePath: ": give what it holds, pattern.read_text()",
    Mapping: ": many patterns by name are given to match_all(), stream_all() or gpu_match_all()",
}

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
    if not options.may_be_kept:
        return _new_plan(pattern, schema, options, settings)
    text_or_tree: str | Identity[Pattern] = pattern if isinstance(pattern, str) else Identity(pattern)
    return _plans.of((text_or_tree, options, settings), schema, lambda own: _new_plan(pattern, own, options, settings))


def _new_plan(pattern: Pattern, schema: pa.Schema, options: Options, settings: Settings) -> AnyPlan:
    from gpu_cep.engine.answers import answer_schema
    from gpu_cep.engine.input.read_tables import schema_of

    text = pattern if isinstance(pattern, str) else None
    query, columns = as_query(pattern), schema_of(schema)
    made: AnyPlan
    if isinstance(query, IntervalQuery):
        made = plan_intervals(bind_intervals(query, columns, options, text), settings, text)
    else:
        made = plan(bind(query, columns, options, text, ranking=settings.order_matches_by), settings)
    answer_schema(made, schema)
    return made


# Over few events planning is most of the work, and the same queries are often asked of the next events: those of a whole rule set.
_plans: SchemaMemo[tuple[str | Identity[Pattern], Options, Settings], AnyPlan] = SchemaMemo(1024, metadata=False)
