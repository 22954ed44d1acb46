"""Check the keywords of the public functions, and make options and settings of them.

Each keyword stands once: here with its type, in :func:`gpu_cep.match` with its default.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from inspect import Parameter, signature
from typing import Any, TypedDict, TypeVar, Unpack, cast

from gpu_cep.analysis.options import Options
from gpu_cep.engine.accounting.profile import Profile
from gpu_cep.errors import Diagnostic, PatternError, nearest
from gpu_cep.plan.settings import Settings, memory_bytes, pruning_steps

Names = str | Sequence[str] | None
Functions = Mapping[str, Callable[..., Any]] | None
PublicFunction = TypeVar("PublicFunction", bound=Callable[..., Any])


class QueryOptions(TypedDict, total=False):
    """The keywords that bear on a query's meaning: those of :class:`Options`."""

    timestamp: str
    partition_by: Names
    order_by: Names
    type_column: str
    strategy: str | None
    ties: str
    time_unit: str | None
    detect: str
    allen: str
    gap: float | str | None
    functions: Functions


class EngineOptions(TypedDict, total=False):
    """The settings that every public function takes."""

    after_match: str
    engine: str
    gpu_memory: int | str | None
    algorithm: str


class BoundOptions(TypedDict, total=False):
    """The bounds of a run."""

    max_matches: int | None
    max_steps: int | None


class ColumnOptions(TypedDict, total=False):
    """The columns that whole events carry, and the pruning steps."""

    columns: Names
    prune: bool | Iterable[str]


class OutputOptions(ColumnOptions, total=False):
    """What a result holds."""

    output: str


class ThreadOptions(TypedDict, total=False):
    """The threads of this process."""

    threads: int | None


class SettingOptions(EngineOptions, BoundOptions, OutputOptions, total=False):
    """The keywords of which :class:`Settings` are made."""


class ExplainOptions(QueryOptions, EngineOptions, OutputOptions, ThreadOptions, total=False):
    """The keywords of :func:`gpu_cep.match` that :func:`gpu_cep.explain` takes."""


class PlotOptions(QueryOptions, EngineOptions, BoundOptions, ThreadOptions, total=False):
    """The keywords of :func:`gpu_cep.match` that :func:`gpu_cep.plot` takes."""


class ReportOptions(PlotOptions, ColumnOptions, total=False):
    """The keywords of :func:`gpu_cep.match` that :func:`gpu_cep.report` takes."""

    profile: Profile | None


class SparkOptions(QueryOptions, SettingOptions, total=False):
    """The keywords of :func:`gpu_cep.match` that :func:`gpu_cep.gpu_match` takes."""


class MatchOptions(ReportOptions, OutputOptions, total=False):
    """The keywords of :func:`gpu_cep.match`."""

    result: str


def takes_keywords(match: Callable[..., Any], options: type) -> Callable[[PublicFunction], PublicFunction]:
    """Make a decorator for a function whose ``**keywords`` are `options`, one of the typed dictionaries above.

    The function's signature then shows each keyword with the type and the default that it has in `match`.
    Any other keyword raises TypeError, with the nearest valid one as a hint.
    """

    def decorate(function: PublicFunction) -> PublicFunction:
        own = signature(function)
        first = [each for each in own.parameters.values() if each.kind is not Parameter.VAR_KEYWORD]
        others = [each for name, each in signature(match).parameters.items() if name in options.__annotations__]
        shown = own.replace(parameters=[*first, *others])
        known = shown.parameters

        @wraps(function)
        def checked(*arguments: Any, **keywords: Any) -> Any:
            for name in keywords:
                if name not in known:
                    raise TypeError(_unexpected(function.__name__, name, known))
            return function(*arguments, **keywords)

        checked.__signature__ = shown  # type: ignore[attr-defined]
        return cast("PublicFunction", checked)

    return decorate


def read_keywords(keywords: Mapping[str, Any]) -> tuple[Options, Settings]:
    """Return the options and the settings that the keywords of a call make; what is left out has its default.

    Raises
    ------
    PatternError
        A keyword has a value of the wrong kind.
    """
    check_threads(keywords.get("threads"))
    settings = make_settings(**_select(keywords, SettingOptions))
    return make_options(**_select(keywords, QueryOptions)), settings


def make_settings(**keywords: Unpack[SettingOptions]) -> Settings:
    """Return how a query is to be answered; unknown choices are left to :func:`check_settings`."""
    given: dict[str, Any] = dict(keywords)
    columns = given.get("columns")
    given["columns"] = None if columns is None else name_tuple(columns)
    given["gpu_memory"] = memory_bytes(given.get("gpu_memory"))
    given["prune"] = pruning_steps(given.get("prune", True))
    return Settings(**given)


def make_options(**keywords: Unpack[QueryOptions]) -> Options:
    """Return what a call says of its query's meaning, a single name as a tuple of one."""
    from gpu_cep.engine.lowering.user_functions import result_type, scalar_functions

    given: dict[str, Any] = dict(keywords)
    _check_texts(given)
    keys = given.get("partition_by")
    given["partition_by"] = None if keys is None else name_tuple(keys, "partition_by")
    given["order_by"] = name_tuple(given.get("order_by"), "order_by")
    given["functions"] = scalar_functions(given.get("functions"))
    return Options(**given, result_type=result_type)


def check_threads(threads: object) -> None:
    """Raise PatternError unless `threads` is None or a number of threads."""
    if threads is not None and (not isinstance(threads, int) or isinstance(threads, bool) or threads < 1):
        raise PatternError(f"threads must be a whole number of at least 1, not {threads!r}")


def name_tuple(names: Names, argument: str = "columns") -> tuple[str, ...]:
    """Return one name or several as a tuple; errors call the keyword that gives them `argument`."""
    if names is None:
        return ()
    chosen = (names,) if isinstance(names, str) else tuple(names) if isinstance(names, Iterable) else (names,)
    if not all(isinstance(name, str) for name in chosen):
        raise PatternError(f"{argument} must be the name of a column or a sequence of names, not {names!r}")
    return chosen


def _select(keywords: Mapping[str, Any], options: type) -> Any:
    """Return those of the keywords that `options` declares."""
    return {name: value for name, value in keywords.items() if name in options.__annotations__}


def _unexpected(function: str, name: str, known: Iterable[str]) -> str:
    """Return the message for a keyword that a function does not take."""
    hint = nearest(name, known)
    return f"{function}() got an unexpected keyword argument {name!r}{f'; {hint}' if hint else ''}"


# Keywords whose value is text, and those where None leaves the choice to the query.
_TEXTS = ("timestamp", "type_column", "ties", "detect", "allen")
_OPTIONAL_TEXTS = ("strategy", "time_unit")


def _check_texts(given: Mapping[str, object]) -> None:
    """Raise PatternError with all keywords whose value should be text and is not."""
    texts = {name: given[name] for name in _TEXTS if name in given}
    texts |= {name: given[name] for name in _OPTIONAL_TEXTS if given.get(name) is not None}
    faults = [Diagnostic(f"{name} must be text, not {value!r}") for name, value in texts.items() if not isinstance(value, str)]
    if faults:
        raise PatternError(faults)
