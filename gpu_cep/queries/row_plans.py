"""Turn SQL's MATCH_RECOGNIZE, as text or as a tree, into a plan."""

from __future__ import annotations

import re
from collections.abc import Hashable
from functools import lru_cache
from typing import TYPE_CHECKING, TypeGuard

from gpu_cep.analysis.options import Options
from gpu_cep.analysis.row_patterns.bind import bind_row_pattern
from gpu_cep.analysis.row_patterns.bound import BoundRowPattern
from gpu_cep.errors import Diagnostic, UnsupportedError
from gpu_cep.identity import Identity
from gpu_cep.lang.parser import parse
from gpu_cep.lang.row_patterns.ast import RowPatternQuery
from gpu_cep.plan.columns_read import row_columns_read
from gpu_cep.plan.settings import DEFAULT_SETTINGS, Settings, check_settings

if TYPE_CHECKING:
    import pyarrow as pa

    from gpu_cep.plan.row_patterns.row_plan import RowPlan

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

# What the text of a row pattern has somewhere: others need not be parsed to tell.
_NAMED = re.compile("MATCH_RECOGNIZE", re.IGNORECASE)


def is_row_pattern(pattern: object) -> TypeGuard[str | RowPatternQuery]:
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

    return bind_row_pattern(as_row_pattern(pattern), schema_of(schema), options, pattern if isinstance(pattern, str) else None)


_rows_of_text = lru_cache(maxsize=256)(_newly_bound)


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
    from gpu_cep.engine.input.empty_tables import no_rows
    from gpu_cep.engine.row_patterns.answers import answer_row_pattern

    answer_row_pattern(plan, no_rows(schema), threads=1)


def _is_remembered(schema: pa.Schema, options: Options) -> bool:
    """Return whether the plan of a row pattern may be cached; extension types need not be hashable."""
    return options.may_be_kept and all(isinstance(kind, Hashable) for kind in schema.types)
