"""Tell for each start how far it came: the funnel of a sequence, in one query."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import reduce
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

from gpu_cep.api import match
from gpu_cep.errors import Diagnostic, PatternError, UnsupportedError
from gpu_cep.keywords import ProgressOptions, name_tuple
from gpu_cep.lang.ast import Aggregate, And, Gap, Next, Or, PatternNode, Query, Repeat, ReturnItem, Seq, Variable
from gpu_cep.lang.ast_intervals import IntervalQuery
from gpu_cep.queries.plans import as_query
from gpu_cep.signatures import takes_keywords

if TYPE_CHECKING:
    import pyarrow as pa

    from gpu_cep.queries.plans import Pattern

# The last columns of the result; no variable may be called so.
REACHED, COMPLETED = "reached", "completed"
# Columns of matches and timeouts that say what `reached` and `completed` say.
REPLACED = ("kind", "match_start", "match_end", "detected_at", "missing")
# The keywords by which each start has one row.
_OF_STARTS: dict[str, Any] = {"timeouts": True, "after_match": "skip_to_next"}


@takes_keywords(match, ProgressOptions)
def progress(events: Any, pattern: Pattern, **keywords: Unpack[ProgressOptions]) -> pa.Table:
    """Tell how far each start came: which variables of the pattern it reached, and when.

    A start is an event that can begin a match. Its row is that of its first match to be
    completed or, without one, of its timeout: the longest run that the strategy would have
    gone from there (``timeouts=True`` of :func:`match`).

    Examples
    --------
    >>> import pyarrow as pa
    >>> import gpu_cep as cep
    >>> clicks = pa.table({"ts": [1, 2, 3, 4, 5], "user": [7, 8, 7, 9, 7], "type": ["View", "View", "Cart", "View", "Pay"]})
    >>> funnel = "PARTITION BY user PATTERN SEQ(View v, Cart c, Pay p) WITHIN 60"
    >>> for row in cep.progress(clicks, funnel).to_pylist():
    ...     print(row)
    {'user': 7, 'v': 1, 'c': 3, 'p': 5, 'reached': 3, 'completed': True}
    {'user': 8, 'v': 2, 'c': None, 'p': None, 'reached': 1, 'completed': False}
    {'user': 9, 'v': 4, 'c': None, 'p': None, 'reached': 1, 'completed': False}

    Parameters
    ----------
    events, pattern
        As in :func:`match`. The pattern has a window of time, and no RETURN.
    **keywords
        As in :func:`match`.

    Returns
    -------
    table
        A row for each start, those with a match first: the stream keys, the time of the
        first event of each variable (NULL if it was not reached), how many variables were
        `reached`, and whether the match was `completed`. A start that reached all variables
        is not completed if a negation or a condition on the whole ruled it out.

    Raises
    ------
    PatternError
        The pattern has a RETURN, or a variable or a stream key has the name of another column of
        the result.
    UnsupportedError
        The pattern has no timeouts: it is one of situations or of rows, or its strategy is another than
        ``skip_till_next_match`` and contiguity.
    CepError
        Any error that :func:`match` raises.
    """
    asked = query_of_starts(pattern, keywords)
    return _as_progress(match(events, asked.query, **asked.keywords), asked.names)


class StartsQuery(NamedTuple):
    """A query whose rows are those of starts, the variables that it returns, and the keywords of :func:`match` to match it by."""

    query: Query
    names: list[str]
    keywords: dict[str, Any]


def query_of_starts(pattern: Pattern, keywords: Mapping[str, Any], fold: Callable[[str], str] = str) -> StartsQuery:
    """Return a query whose rows are those of starts.

    Parameters
    ----------
    pattern
        The pattern of the starts.
    keywords
        Those of :func:`match`.
    fold
        Returns what columns of the result are told apart by; by default their names as they are.

    Raises
    ------
    PatternError
        The pattern has a RETURN, a variable or a stream key has the name of another column of the result,
        or `partition_by` is no names.
    UnsupportedError
        The pattern is one of situations or of rows.
    """
    query = as_query(pattern)
    if isinstance(query, IntervalQuery):
        raise UnsupportedError("progress() is not supported for situations; supported: event patterns")
    names = list(dict.fromkeys(_names(query.pattern)))
    given = keywords.get("partition_by")
    # an iterator gives its names only once
    keys = None if given is None else name_tuple(given, "partition_by")
    _check(query, names, query.partition_by or keys or (), fold)
    returns = tuple(ReturnItem(Aggregate("first", name, keywords.get("timestamp", "ts")), name) for name in names)
    return StartsQuery(replace(query, returns=returns), names, {**keywords, **_OF_STARTS, "partition_by": keys})


def _check(query: Query, names: list[str], keys: tuple[str, ...], fold: Callable[[str], str]) -> None:
    """Raise PatternError if the query has a RETURN, or a variable or a stream key has the name of another column."""
    faults = [Diagnostic("progress() has columns of its own", query.returns[0].span, "leave RETURN out")] if query.returns else []
    own = {REACHED: REACHED, COMPLETED: COMPLETED}
    others = own | {fold(key): key for key in keys}
    clashes = [(name, others.get(fold(name), name), "variable") for name in names if name in REPLACED or fold(name) in others]
    clashes += [(name, own[fold(name)], "input column") for name in keys if fold(name) in own]
    faults += [Diagnostic(f"the result of progress() would have two columns {_pair(name, other)}", hint=f"rename the {what}")
               for name, other, what in clashes]  # fmt: skip
    if faults:
        raise PatternError(faults)


def _pair(name: str, other: str) -> str:
    return repr(name) if name == other else f"{name!r} and {other!r}, whose names differ in case alone"


def _names(node: PatternNode) -> Iterator[str]:
    """Yield the variables of a pattern that bind events, in order."""
    match node:
        case Variable(name):
            yield name
        case Repeat(element) | Next(element) | Gap(element):
            yield from _names(element)
        case Seq(elements) | And(elements) | Or(elements):
            yield from chain.from_iterable(map(_names, elements))


def _as_progress(found: pa.Table, names: list[str]) -> pa.Table:
    """Return matches and timeouts as rows of starts."""
    import pyarrow as pa
    import pyarrow.compute as pc

    bound = [pc.is_valid(found.column(name)).cast(pa.int64()) for name in names]
    rows = found.drop_columns(list(REPLACED)).append_column(REACHED, reduce(pc.add, bound))
    return rows.append_column(COMPLETED, pc.equal(found.column("kind"), "match"))
