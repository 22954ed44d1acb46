"""Every public function takes the keywords of match(), and each keyword stands once."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, signature
from typing import Any, get_type_hints

import pytest

import gpu_cep as cep
from gpu_cep.analysis.options import Options
from gpu_cep.cli import options as cli
from gpu_cep.keywords import (
    ArrivalOptions,
    ExplainOptions,
    MatchOptions,
    PlotOptions,
    ProgressOptions,
    QueryOptions,
    ReportOptions,
    RoleOptions,
    RuleSetOptions,
    SettingOptions,
    SparkOptions,
    SparkProgressOptions,
    StreamOptions,
    make_options,
    make_settings,
    read_keywords,
)
from gpu_cep.plan.settings import Settings

KEYWORDS = {name: each for name, each in signature(cep.match).parameters.items() if each.kind is Parameter.KEYWORD_ONLY}
# What each function takes of match()'s keywords, and the keywords of its own.
FUNCTIONS: dict[Callable[..., Any], tuple[type, set[str]]] = {
    cep.explain: (ExplainOptions, {"run"}),
    cep.plot: (PlotOptions, {"match", "margin"}),
    cep.report: (ReportOptions, {"rows", "timelines", "margin"}),
    cep.match_all: (MatchOptions, {*RuleSetOptions.__annotations__}),
    cep.explain_all: (StreamOptions, {"rare", "emit", "every", "late", "time_to_live"}),
    cep.stream: (StreamOptions, {*ArrivalOptions.__annotations__}),
    cep.stream_all: (StreamOptions, {*ArrivalOptions.__annotations__, "split"}),
    cep.progress: (ProgressOptions, set()),
    cep.gpu_match: (SparkOptions, {"worker_memory", "slices", "scan", "rare", "report", "emit", "every", "late", "time_to_live"}),
    cep.gpu_progress: (SparkProgressOptions, {"worker_memory", "slices", "scan", "every", "late"}),
    cep.gpu_match_all: (SparkOptions, {"on_error", "failures", "split", "worker_memory", "rare", "emit", "every", "late", "time_to_live"}),
}
LEFT_OUT = {
    cep.explain: {"timeouts", "detected_at", "result", "complete_until"},
    cep.plot: {"timeouts", "detected_at", "result", "memory", "complete_until", "output", "columns"},
    cep.report: {"timeouts", "detected_at", "result", "memory", "complete_until", "output"},
    cep.match_all: set(),
    cep.explain_all: {"result", "memory", "complete_until"},
    cep.stream: {"result", "memory", "complete_until"},
    cep.stream_all: {"result", "memory", "complete_until"},
    cep.progress: {
        "timeouts",
        "detected_at",
        "result",
        "complete_until",
        "output",
        "columns",
        "after_match",
        "limit_per_start",
        "order_matches_by",
    },
    cep.gpu_match: {"result", "memory", "complete_until", "threads", "profile"},
    cep.gpu_progress: {
        "timeouts",
        "detected_at",
        "result",
        "memory",
        "complete_until",
        "threads",
        "profile",
        "output",
        "columns",
        "after_match",
        "limit_per_start",
        "order_matches_by",
    },
    cep.gpu_match_all: {"result", "memory", "complete_until", "threads", "profile"},
}
# The methods that take the keywords of a function, but for the columns' roles.
METHODS: dict[Callable[..., Any], Callable[..., Any]] = {
    cep.Events.match: cep.match,
    cep.Events.explain: cep.explain,
    cep.Events.plot: cep.plot,
    cep.Events.report: cep.report,
    cep.SparkEvents.match: cep.gpu_match,
    cep.SparkEvents.plot: cep.plot,
    cep.SparkEvents.report: cep.report,
}
ROLES = signature(cep.events).parameters.keys() - {"data"}


def test_the_dictionary_has_the_names_and_types_of_match() -> None:
    hints = get_type_hints(cep.match, vars(cep.api) | {"Pattern": Any, "pa": Any})
    assert get_type_hints(MatchOptions) == {name: hints[name] for name in KEYWORDS}
    assert not MatchOptions.__required_keys__


def test_what_is_left_out_has_the_default_of_match() -> None:
    assert read_keywords({}) == read_keywords({name: each.default for name, each in KEYWORDS.items()})


def test_every_keyword_of_a_query_and_of_its_settings_is_a_field() -> None:
    assert QueryOptions.__optional_keys__ == set(Options.__slots__) - {"result_type", "regexp_fault"}
    assert SettingOptions.__optional_keys__ == set(Settings.__slots__) - {"kind"}
    assert RoleOptions.__optional_keys__ == ROLES


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_a_function_shows_the_keywords_of_match(function: Callable[..., Any]) -> None:
    options, own = FUNCTIONS[function]
    shown = keywords_of(function)
    assert shown.keys() - own == options.__optional_keys__ == KEYWORDS.keys() - LEFT_OUT[function]  # type: ignore[attr-defined]
    assert own <= shown.keys()
    assert all(shown[name] == KEYWORDS[name] for name in shown.keys() - own)
    assert all(each.kind is not Parameter.VAR_KEYWORD for each in signature(function).parameters.values())


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.__qualname__)
def test_a_method_shows_the_keywords_of_its_function(method: Callable[..., Any]) -> None:
    function, shown = keywords_of(METHODS[method]), keywords_of(method)
    assert shown == {name: each for name, each in function.items() if name not in ROLES}


def keywords_of(function: Callable[..., Any]) -> dict[str, Parameter]:
    return {name: each for name, each in signature(function).parameters.items() if each.kind is Parameter.KEYWORD_ONLY}


@pytest.mark.parametrize("function", [cep.match, cep.events, *FUNCTIONS], ids=lambda function: function.__name__)
@pytest.mark.parametrize(
    ("wrong", "hint"), [("timestmp", "; did you mean 'timestamp'?"), ("skip", "skip_past_last, skip_to_next"), ("reslt", ""), ("zzz", "")]
)
def test_other_keywords_are_refused(function: Callable[..., Any], wrong: str, hint: str) -> None:
    with pytest.raises(TypeError) as caught:
        function(None, None, **{wrong: 1})
    message = str(caught.value)
    assert message.startswith(f"{function.__name__}() got an unexpected keyword argument {wrong!r}")
    assert message.endswith(hint or message)


def test_the_command_line_takes_the_keywords_that_a_shell_can_give() -> None:
    taken = {**cli.QUERY, **cli.BOUNDS, **cli.OUTPUT, **cli.COLUMNS}
    assert taken.keys() == KEYWORDS.keys() - {"functions", "profile", "prune", "result", "tuning"}


@pytest.mark.parametrize(("make", "name"), [(make_options, "gap"), (make_settings, "max_matches")])
def test_remembered_keywords_keep_the_types_of_their_values(make: Callable[..., Any], name: str) -> None:
    """``1 == 1.0 == True``, and all have one hash."""
    for value in (1, 1.0, True, 1):
        assert type(getattr(make(**{name: value}), name)) is type(value)
    assert make(**{name: 1}) is make(**{name: 1})
