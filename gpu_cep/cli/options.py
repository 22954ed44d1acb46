"""Declare the options of commands that take a query; they are keywords of :func:`gpu_cep.match`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from gpu_cep.analysis.bind import TIES
from gpu_cep.analysis.bind_intervals import ALLEN, DETECT
from gpu_cep.analysis.streams import NULLS
from gpu_cep.analysis.windows import TIME_UNITS
from gpu_cep.cli.files import WRITERS
from gpu_cep.cli.outcome import USAGE_FAULT, fail, print_warnings, report_faults
from gpu_cep.cli.tables import TERMINAL_ROWS
from gpu_cep.cli.whole_files import PIPE
from gpu_cep.engine.input.event_files import shorten_name, split_suffix
from gpu_cep.engine.input.file_systems import is_uri
from gpu_cep.engine.input.formats import PARQUET, READERS
from gpu_cep.lang.ast import STRATEGIES
from gpu_cep.plan.settings import AFTER_MATCH, ALGORITHMS, ENGINES, OUTPUTS
from gpu_cep.queries.plans import are_swapped

Command = Callable[..., None]

# The groups of options in help.
ABOUT_EVENTS, ABOUT_MATCHES, ABOUT_RUN, ABOUT_OUTPUT = "What the events are", "What matches", "How it runs", "What comes out"

EVENTS = "Events: files (.parquet, .csv, .jsonl, .arrow, …, also .gz and .zst), folders of Parquet, globs, URIs, or - for stdin."
PATTERN = "A file with the query's text, or the text itself"
PatternArgument = Annotated[str, typer.Argument(metavar="PATTERN", help=f"{PATTERN}.")]
PatternOrEvents = Annotated[str | None, typer.Argument(metavar="PATTERN", help=f"{PATTERN}; left out with --rules.")]
EventsArgument = Annotated[list[str], typer.Argument(metavar="EVENTS", help=EVENTS)]
OptionalEvents = Annotated[list[str] | None, typer.Argument(metavar="EVENTS", help=EVENTS)]
TimestampFormat = Annotated[
    str | None,
    typer.Option(
        metavar="FORMAT",
        help="How a timestamp that is text is written, such as '%d.%m.%Y %H:%M' (default: ISO 8601).",
        rich_help_panel=ABOUT_EVENTS,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of words.", rich_help_panel=ABOUT_OUTPUT)]

MatchesOut = Annotated[
    str | None,
    typer.Option(
        "--out",
        "-o",
        metavar="FILE",
        help=f"Result: {', '.join(WRITERS)}, or - for an Arrow stream on stdout.",
        rich_help_panel=ABOUT_OUTPUT,
    ),
]
Limit = Annotated[
    int | None,
    typer.Option(
        min=0, metavar="N", help=f"Print the first N only (default: {TERMINAL_ROWS} on a terminal, else all).", rich_help_panel=ABOUT_OUTPUT
    ),
]

_EXPECTED = "expected a file with the query's text, or the text itself in quotes"

_literal: Any = Literal


def _text(group: str, metavar: str, help: str) -> Any:
    return Annotated[str | None, typer.Option(metavar=metavar, help=help, rich_help_panel=group)]


def _names(group: str, help: str) -> Any:
    return Annotated[list[str] | None, typer.Option(metavar="COLUMN", help=f"{help}; repeat for several.", rich_help_panel=group)]


def _number(group: str, help: str) -> Any:
    return Annotated[int | None, typer.Option(metavar="N", help=help, rich_help_panel=group)]


def _choice(group: str, choices: Sequence[str], help: str) -> Any:
    return Annotated[_literal[tuple(choices)] | None, typer.Option(help=help, rich_help_panel=group)]


def _flag(name: str, help: str) -> Any:
    return Annotated[bool | None, typer.Option(name, help=help, rich_help_panel=ABOUT_OUTPUT)]


# What a query means, and where and how it is run.
QUERY: dict[str, Any] = {
    "timestamp": _text(ABOUT_EVENTS, "COLUMN", "The timestamp (default: ts)."),
    "partition_by": _names(ABOUT_EVENTS, "A stream key"),
    "order_by": _names(ABOUT_EVENTS, "What breaks ties in time"),
    "type_column": _text(ABOUT_EVENTS, "COLUMN", "The event type (default: type)."),
    "time_unit": _choice(ABOUT_EVENTS, TIME_UNITS, "What a bare number counts, as a timestamp or as a length of time."),
    "nulls": _choice(ABOUT_EVENTS, NULLS, "Whether events without a timestamp are an error (default) or left out."),
    "strategy": _choice(ABOUT_MATCHES, STRATEGIES, "The event selection strategy (default: skip_till_next_match)."),
    "ties": _choice(ABOUT_MATCHES, TIES, "Which of two events of equal time is before the other: none (strict, default), or by position."),
    "after_match": _choice(ABOUT_MATCHES, AFTER_MATCH, "Which of the matches are kept (default: all)."),
    "limit_per_start": _number(ABOUT_MATCHES, "Keep at most N matches of each first event (default: all)."),
    "order_matches_by": _text(ABOUT_MATCHES, "EXPRESSION", "By what --limit-per-start keeps matches: 'sum(b.x) desc'."),
    "detect": _choice(ABOUT_MATCHES, DETECT, "When matches of situations are reported (default: final)."),
    "allen": _choice(ABOUT_MATCHES, ALLEN, "How 'finishes' is read: as TPStream prints it (default), or as Allen did in 1983."),
    "gap": _text(ABOUT_MATCHES, "LENGTH", "The longest time without events that ends no situation: 30 seconds, …, or a bare number."),
    "engine": _choice(ABOUT_RUN, ENGINES, "Where phase 1 runs (default: auto)."),
    "gpu_memory": _text(ABOUT_RUN, "SIZE", "How much of a GPU's memory to use: bytes, or 8GB, 512MiB, …"),
    "algorithm": _choice(ABOUT_RUN, ALGORITHMS, "How matches are found (default: auto)."),
    "threads": _number(ABOUT_RUN, "How many threads to use (default: all cores)."),
}
BOUNDS: dict[str, Any] = {
    "max_matches": _number(ABOUT_RUN, "Fail rather than find more than N matches."),
    "max_steps": _number(ABOUT_RUN, "Fail rather than make more than N steps to find them."),
}
OUTPUT: dict[str, Any] = {
    "output": _choice(ABOUT_OUTPUT, OUTPUTS, "What the result holds (default: matches)."),
    "timeouts": _flag("--timeouts", "Also give the starts without a match: what was bound, and what was missing."),
    "detected_at": _flag("--detected-at", "Also give the time from which on each match is certain."),
    "complete_until": _text(ABOUT_EVENTS, "TIME", "Until when all events are there: only what is certain then is found."),
    "memory": _text(ABOUT_RUN, "SIZE", "How much memory events of Parquet may take: bytes, or 2GiB, … (default: a share of what is free)."),
}
COLUMNS: dict[str, Any] = {
    "columns": _names(ABOUT_OUTPUT, "An input column that whole events carry in the result"),
}


def takes(options: Mapping[str, Any]) -> Callable[[Command], Command]:
    """Make a decorator that turns a function into a command with a pattern argument and `options`.

    The function receives the query's text as `text`. It receives the options that the command line
    gives as `asked`; others keep the library's defaults. An error in it is printed and ends the
    command with an exit code.
    """

    def command_of(function: Command) -> Command:
        @wraps(function)
        def command(pattern: str | None = None, **values: Any) -> None:
            given = {name: values.pop(name) for name in options}
            text = _text_asked(function.__name__, pattern, values)
            with report_faults(text), print_warnings():
                function(text, asked={name: value for name, value in given.items() if value not in (None, [])}, **values)

        own = [each for each in signature(function, eval_str=True).parameters.values() if each.name not in ("text", "asked")]
        many = "rules" in signature(function).parameters
        pattern = {"annotation": PatternOrEvents, "default": None} if many else {"annotation": PatternArgument}
        first = Parameter("pattern", Parameter.POSITIONAL_OR_KEYWORD, **pattern)
        added = [Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=kind) for name, kind in options.items()]
        command.__signature__ = signature(function).replace(parameters=[first, *own, *added])  # type: ignore[attr-defined]
        return command

    return command_of


def named_files(tables: Sequence[str]) -> dict[str, str]:
    """Return the files of arguments of the form ``NAME=FILE`` by their names, or end the command with an error."""
    found: dict[str, str] = {}
    for each in tables:
        name, sign, file = each.partition("=")
        if not sign or not file or not name.isidentifier():
            fail(f"a table is given as NAME=FILE, such as ticks=ticks.parquet, not {shorten_name(each)}", USAGE_FAULT)
        if name.lower() in map(str.lower, found):
            fail(f"two tables are called {name}; SQL does not tell upper from lower case", USAGE_FAULT)
        found[name] = file
    return found


def _text_asked(command: str, pattern: str | None, values: dict[str, Any]) -> str:
    """Return the text of the query that a command is given; none with ``--rules``, where the first argument is the events."""
    events, has_rules = values.get("events") or [], values.get("rules") is not None
    if "" in events or (has_rules and pattern == ""):
        fail("EVENTS is empty; expected a file, a folder of Parquet, a glob, a URI, or - for stdin", USAGE_FAULT)
    if not has_rules and values.get("on_error", "raise") != "raise":
        fail("--on-error is for --rules, which gives many patterns: leave it out", USAGE_FAULT)
    if has_rules:
        if events and pattern is not None and not _names_events(pattern):
            fail(f"--rules stands for PATTERN: gpu-cep {command} EVENTS --rules RULES", USAGE_FAULT)
        values["events"] = events if pattern is None else [pattern, *events]
        return ""
    if pattern is None:
        fail("PATTERN is missing; --rules gives many patterns in its place", USAGE_FAULT)
    _refuse_swapped(command, pattern, events)
    return query_text(pattern)


def query_text(pattern: str, argument: str = "PATTERN") -> str:
    """Return the text of the query that an argument gives: the text itself, or that of the file which it names."""
    if _is_text(pattern):
        return pattern
    if not pattern.strip():
        fail(f"{argument} is empty; {_EXPECTED}", USAGE_FAULT)
    if pattern != PIPE and not os.path.isdir(pattern) and _names_events(pattern):
        fail(f"{shorten_name(pattern)} names events, where {argument} is expected; {_EXPECTED}", USAGE_FAULT)
    try:
        # without the mark that some editors write before the text
        return Path(pattern).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        fail(f"cannot read the {argument.lower()} {shorten_name(pattern)}: {_reason(error)}; {_EXPECTED}", USAGE_FAULT)


def _reason(error: OSError | UnicodeDecodeError) -> str:
    """Return why a pattern file cannot be read."""
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8"
    reasons = {FileNotFoundError: "there is no such file", IsADirectoryError: "it is a folder"}
    return reasons.get(type(error)) or error.strerror or str(error)


def _refuse_swapped(command: str, pattern: str, events: Sequence[str]) -> None:
    """End the command if the events come first and the pattern second."""
    if not events or _names_events(events[0]):
        return
    if are_swapped(events[0], pattern) or (_names_events(pattern) and not _is_text(pattern)):
        fail(f"PATTERN comes first, then EVENTS: gpu-cep {command} PATTERN EVENTS", USAGE_FAULT)


def _names_events(name: str) -> bool:
    """Return whether an argument is stdin, a URI, a folder or a name with a suffix of events."""
    return name == PIPE or is_uri(name) or split_suffix(name)[0] in (*PARQUET, *READERS) or os.path.isdir(name)


def _is_text(pattern: str) -> bool:
    """Return whether an argument is a query's text: it has blanks, and names no file."""
    return len(pattern.split()) > 1 and not _is_file(Path(pattern))


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # too long for a name
        return False
