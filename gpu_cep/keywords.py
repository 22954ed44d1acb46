"""Declare the keywords of the public functions, and make options and settings of their values.

Each keyword stands once: here with its type, in :func:`gpu_cep.match` with its default.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypedDict, Unpack

from gpu_cep.analysis.options import Options
from gpu_cep.choices import (
    AfterMatch,
    Algorithm,
    Allen,
    Detect,
    Engine,
    Nulls,
    OnError,
    Output,
    PruningStep,
    Result,
    Strategy,
    Ties,
    TimeUnit,
)
from gpu_cep.engine.accounting.profile import Profile
from gpu_cep.errors import CepError, Diagnostic, PatternError
from gpu_cep.plan.settings import Settings, memory_bytes, pruning_steps

Names = str | Sequence[str] | None
Functions = Mapping[str, Callable[..., Any]] | None


@dataclass(frozen=True, slots=True)
class Tuning:
    """How queries are run, for many calls: ``match(events, pattern, tuning=Tuning(threads=1))``.

    The fields are keywords of :func:`gpu_cep.match` that leave the matches as
    they are. A call gives each by itself or in `tuning`, not both.
    """

    algorithm: Algorithm = "auto"
    prune: bool | Iterable[PruningStep] = True
    threads: int | None = None
    max_steps: int | None = None
    gpu_memory: int | str | None = None
    memory: int | str | None = None
    profile: Profile | None = None


class RoleOptions(TypedDict, total=False):
    """The keywords that say what the columns of the events are, which :func:`gpu_cep.events` takes."""

    timestamp: str
    partition_by: Names
    order_by: Names
    type_column: str
    time_unit: TimeUnit | None
    nulls: Nulls


class MeaningOptions(TypedDict, total=False):
    """The other keywords that bear on a query's meaning."""

    strategy: Strategy | None
    ties: Ties
    detect: Detect
    allen: Allen
    gap: float | str | None
    functions: Functions


class QueryOptions(RoleOptions, MeaningOptions, total=False):
    """The keywords that bear on a query's meaning: those of :class:`Options`."""


class RunOptions(TypedDict, total=False):
    """The keywords of a run that every public function takes."""

    after_match: AfterMatch
    limit_per_start: int | None
    order_matches_by: str | None
    engine: Engine
    max_matches: int | None
    algorithm: Algorithm
    prune: bool | Iterable[PruningStep]
    max_steps: int | None
    gpu_memory: int | str | None


class OutputOptions(TypedDict, total=False):
    """What a result holds."""

    output: Output
    columns: Names
    timeouts: bool
    detected_at: bool


class SettingOptions(RunOptions, OutputOptions, total=False):
    """The keywords of which :class:`Settings` are made."""


class TuningOptions(TypedDict, total=False):
    """The object that stands for several keywords of a run."""

    tuning: Tuning | None


class SparkChoices(MeaningOptions, SettingOptions, TuningOptions, total=False):
    """The keywords of :func:`gpu_cep.match` that :func:`gpu_cep.gpu_match` takes, without the columns' roles."""


class PlotChoices(MeaningOptions, RunOptions, TuningOptions, total=False):
    """The keywords of :func:`gpu_cep.match` that :func:`gpu_cep.plot` takes, without the columns' roles."""

    threads: int | None
    profile: Profile | None


class ReportChoices(PlotChoices, total=False):
    """The keywords of :func:`gpu_cep.match` that :func:`gpu_cep.report` takes, without the columns' roles."""

    columns: Names


class TableChoices(ReportChoices, total=False):
    """The keywords of :func:`gpu_cep.match` without the columns' roles, and without those that decide what it returns."""

    timeouts: bool
    detected_at: bool
    memory: int | str | None
    complete_until: Any


class PlanChoices(ReportChoices, total=False):
    """The keywords of :func:`gpu_cep.match` that bear on a plan, without the columns' roles."""

    output: Output


class ExplainChoices(PlanChoices, total=False):
    """The keywords of :func:`gpu_cep.match` that :func:`gpu_cep.explain` takes, without the columns' roles."""

    memory: int | str | None


class MatchChoices(ExplainChoices, TableChoices, total=False):
    """The keywords of :func:`gpu_cep.match` without the columns' roles."""

    result: Result


class SparkOptions(RoleOptions, SparkChoices, total=False):
    """The keywords of :func:`gpu_cep.match` that :func:`gpu_cep.gpu_match` takes."""


class PlotOptions(RoleOptions, PlotChoices, total=False):
    """The keywords of :func:`gpu_cep.match` that :func:`gpu_cep.plot` takes."""


class ReportOptions(RoleOptions, ReportChoices, total=False):
    """The keywords of :func:`gpu_cep.match` that :func:`gpu_cep.report` takes."""


class TableOptions(RoleOptions, TableChoices, total=False):
    """The keywords of :func:`gpu_cep.match` without those that decide what it returns."""


class ExplainOptions(RoleOptions, ExplainChoices, total=False):
    """The keywords of :func:`gpu_cep.match` that :func:`gpu_cep.explain` takes."""


class StreamOptions(RoleOptions, PlanChoices, total=False):
    """The keywords of :func:`gpu_cep.match` that :func:`gpu_cep.stream` and :func:`gpu_cep.explain_all` take."""

    timeouts: bool
    detected_at: bool


class ArrivalOptions(TypedDict, total=False):
    """The keywords of :func:`gpu_cep.stream` and :func:`gpu_cep.stream_all` that say how events come, and when matches come out."""

    lateness: float | str
    late: str
    every: float | str | None
    idle: str | None
    time_to_live: float | str | None
    emit: str


class RuleSetOptions(TypedDict, total=False):
    """The keywords of :func:`gpu_cep.match_all` that say what becomes of errors, and in which form matches come."""

    on_error: OnError
    failures: MutableMapping[str, CepError] | None
    split: bool


class SparkProgressOptions(QueryOptions, total=False):
    """The keywords of :func:`gpu_cep.match` that :func:`gpu_cep.gpu_progress` takes."""

    engine: Engine
    max_matches: int | None
    algorithm: Algorithm
    prune: bool | Iterable[PruningStep]
    max_steps: int | None
    gpu_memory: int | str | None
    tuning: Tuning | None


class ProgressOptions(SparkProgressOptions, total=False):
    """The keywords of :func:`gpu_cep.match` that :func:`gpu_cep.progress` takes."""

    threads: int | None
    profile: Profile | None
    memory: int | str | None


class MatchOptions(RoleOptions, MatchChoices, total=False):
    """The keywords of :func:`gpu_cep.match`."""


def read_keywords(keywords: Mapping[str, Any]) -> tuple[Options, Settings]:
    """Return the options and the settings that the keywords of a call make; what is left out has its default.

    Raises
    ------
    PatternError
        A keyword has a value of the wrong kind.
    """
    check_threads(keywords.get("threads"))
    check_profile(keywords.get("profile"))
    settings = make_settings(**_select(keywords, SettingOptions))
    return make_options(**_select(keywords, QueryOptions)), settings


# Types of keywords' values of which what they make is remembered: the same calls are often made of the next events.
_PLAIN = frozenset({str, int, float, bool, type(None)})


def make_settings(**keywords: Unpack[SettingOptions]) -> Settings:
    """Return how a query is to be answered; unknown choices are left to :func:`check_settings`."""
    given: dict[str, Any] = dict(keywords)
    return _settings_of_plain(**given) if _PLAIN.issuperset(map(type, given.values())) else _new_settings(**given)


def _new_settings(**given: Any) -> Settings:
    columns = given.get("columns")
    given["columns"] = None if columns is None else name_tuple(columns)
    given["gpu_memory"] = memory_bytes(given.get("gpu_memory"))
    given["prune"] = pruning_steps(given.get("prune", True))
    return Settings(**given)


def make_options(**keywords: Unpack[QueryOptions]) -> Options:
    """Return what a call says of its query's meaning, a single name as a tuple of one."""
    given: dict[str, Any] = dict(keywords)
    return _options_of_plain(**given) if _PLAIN.issuperset(map(type, given.values())) else _new_options(**given)


def _new_options(**given: Any) -> Options:
    from gpu_cep.engine.input.host_functions import regexp_fault
    from gpu_cep.engine.lowering.user_functions import result_type, scalar_functions

    _check_texts(given)
    keys = given.get("partition_by")
    given["partition_by"] = None if keys is None else name_tuple(keys, "partition_by")
    given["order_by"] = name_tuple(given.get("order_by"), "order_by")
    given["functions"] = scalar_functions(given.get("functions"))
    return Options(**given, result_type=result_type, regexp_fault=regexp_fault)


# By type, too: True equals 1, and 1 equals 1.0.
_settings_of_plain = lru_cache(maxsize=256, typed=True)(_new_settings)
_options_of_plain = lru_cache(maxsize=256, typed=True)(_new_options)


def check_threads(threads: object) -> None:
    """Raise PatternError unless `threads` is None or a number of threads."""
    if threads is not None and (not isinstance(threads, int) or isinstance(threads, bool) or threads < 1):
        raise PatternError(f"threads must be a whole number of at least 1, not {threads!r}")


def check_profile(profile: object) -> None:
    """Raise PatternError unless `profile` is None or a profile."""
    if profile is not None and not isinstance(profile, Profile):
        raise PatternError(f"profile must be a gpu_cep.Profile, which receives the counts of the run, not {profile!r}")


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


# Keywords whose value is text, and those where None leaves the choice to the query.
_TEXTS = ("timestamp", "type_column", "nulls", "ties", "detect", "allen")
_OPTIONAL_TEXTS = ("strategy", "time_unit")


def _check_texts(given: Mapping[str, object]) -> None:
    """Raise PatternError with all keywords whose value should be text and is not."""
    texts = {name: given[name] for name in _TEXTS if name in given}
    texts |= {name: given[name] for name in _OPTIONAL_TEXTS if given.get(name) is not None}
    faults = [Diagnostic(f"{name} must be text, not {value!r}") for name, value in texts.items() if not isinstance(value, str)]
    if faults:
        raise PatternError(faults)
