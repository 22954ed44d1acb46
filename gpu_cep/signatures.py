"""Show the keywords of :func:`gpu_cep.match` in signatures, and check those of each call."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from dataclasses import fields
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any, TypeVar, cast

from gpu_cep.errors import CepError, Diagnostic, PatternError, ending_in, nearest
from gpu_cep.keywords import RoleOptions, Tuning

PublicFunction = TypeVar("PublicFunction", bound=Callable[..., Any])


def takes_keywords(match: Callable[..., Any], options: type) -> Callable[[PublicFunction], PublicFunction]:
    """Make a decorator for a function whose ``**keywords`` are `options`.

    These are one of the typed dictionaries of :mod:`gpu_cep.keywords`. The function's signature
    then shows each keyword with the type and the default that it has in `match`. Its keywords are checked as by :func:`checks_keywords`.
    """

    def decorate(function: PublicFunction) -> PublicFunction:
        own = signature(function)
        first = [each for each in own.parameters.values() if each.kind is not Parameter.VAR_KEYWORD]
        others = [each for name, each in signature(match).parameters.items() if name in options.__annotations__]
        return checks_keywords(function, own.replace(parameters=[*first, *others]))

    return decorate


def checks_keywords(function: PublicFunction, shown: Signature | None = None) -> PublicFunction:
    """Return `function` with a check of its keywords, and with what `tuning` holds as keywords.

    The signature `shown` (default: the function's own) says which there are. Any other raises
    TypeError, with the nearest valid one as a hint. A call that runs out of memory raises CepError.
    """
    visible = signature(function) if shown is None else shown
    known = frozenset(visible.parameters)
    # a class is called by its own name
    called = function.__qualname__.split(".")[-2] if function.__name__ == "__init__" else function.__name__

    answering = ending_in(CepError, f"answering {called}()", "give it fewer events or columns")

    @wraps(function)
    def checked(*arguments: Any, **keywords: Any) -> Any:
        if not known.issuperset(keywords):
            raise TypeError(_unexpected(called, next(name for name in keywords if name not in known), visible.parameters))
        with answering:
            return function(*arguments, **_tuned(keywords, known))

    checked.__signature__ = visible  # type: ignore[attr-defined]
    return cast("PublicFunction", checked)


def _tuned(keywords: dict[str, Any], known: Container[str]) -> dict[str, Any]:
    """Return the keywords with the fields of `tuning` that have not their defaults in its place."""
    tuning = keywords.pop("tuning", None)
    if tuning is None:
        return keywords
    if not isinstance(tuning, Tuning):
        raise PatternError(f"tuning must be a gpu_cep.Tuning, such as Tuning(threads=1), not {tuning!r}")
    chosen = {each.name: getattr(tuning, each.name) for each in fields(tuning) if getattr(tuning, each.name) != each.default}
    faults = [Diagnostic(f"{name} is given twice, by itself and in tuning") for name in chosen if name in keywords]
    faults += [Diagnostic(f"tuning: {name} is for runs in this process, not for Spark") for name in chosen if name not in known]
    if faults:
        raise PatternError(faults)
    return keywords | chosen


# Keywords of other libraries, and what they are here.
_ELSEWHERE = {
    **dict.fromkeys(("ts", "time", "time_column", "timestamp_column", "time_col"), "timestamp= names the column of times"),
    **dict.fromkeys(("group_by", "groupby", "by", "key", "keys", "partition"), "partition_by= names the keys of streams"),
    **dict.fromkeys(("type", "event_type", "types"), "type_column= names the column of event types"),
    "within": "the window stands in the pattern: WITHIN 5 minutes",
    "window": "the window stands in the pattern: WITHIN 5 minutes",
    "where": "conditions stand in the pattern: WHERE a.x > b.x",
    "result": "match() takes result=; a DataFrame of Spark is collected by .toPandas() or .toArrow()",
    **dict.fromkeys(("after", "skip", "after_match_skip"), "after_match= says which matches are kept: all, skip_past_last, skip_to_next"),
    **{name: f"streams take {name}=: stream() and stream_all(), and Spark's functions" for name in ("emit", "every", "late")},
    "lateness": "stream() and stream_all() take lateness=; of a streaming DataFrame withWatermark() says how late events may come",
    "idle": "stream() and stream_all() take idle=; to a streaming DataFrame gpu_cep.heartbeats() gives a clock",
    "time_to_live": "stream() and stream_all() take time_to_live=, and gpu_match() and gpu_match_all() of a streaming DataFrame",
    "limit": "limit_per_start= keeps some matches of each first event, and max_matches= makes too many an error",
}


def _unexpected(function: str, name: str, known: Iterable[str]) -> str:
    """Return the message for a keyword that a function does not take."""
    hint = _given_before(name, known) or _ELSEWHERE.get(name) or nearest(name, known)
    return f"{function}() got an unexpected keyword argument {name!r}{f'; {hint}' if hint else ''}"


def _given_before(name: str, known: Iterable[str]) -> str | None:
    """Return a hint for a role of a column that a method of bound events is given; None for other keywords and functions."""
    role = _ELSEWHERE.get(name, name).partition("=")[0]
    if "self" not in known or role in known or role not in RoleOptions.__annotations__:
        return None
    return f"the columns are named once, in events(data, {role}=…)"
