"""End a command with an exit code, and print errors to stderr and outcomes to stdout."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn

import pyarrow as pa
import typer
from rich.console import Console
from rich.text import Text

from gpu_cep.cli.told_options import tell_options, tell_options_of
from gpu_cep.cli.whole_files import give_up_stdout, print_line
from gpu_cep.errors import AbsentValueWarning, CepError, DiagnosedError, EventError, FailedPatternWarning

QUERY_FAULT = 1
USAGE_FAULT = 2
EVENT_FAULT = 3
OTHER_FAULT = 4
# The warnings about queries.
_TOLD = (AbsentValueWarning, FailedPatternWarning)


@contextmanager
def report_faults(text: str | None = None) -> Iterator[None]:
    """Print an error raised inside to stderr, and end the command with its exit code.

    `text` is the text of the query; diagnostics show the line of it that they are about.
    """
    try:
        yield
    except DiagnosedError as error:
        fail(tell_options_of(error, text), QUERY_FAULT)
    except EventError as error:
        fail(tell_options(str(error)), EVENT_FAULT)
    except BrokenPipeError:
        give_up_stdout()
        raise typer.Exit(OTHER_FAULT) from None
    except MemoryError:
        fail("out of memory", OTHER_FAULT)
    except (CepError, OSError, pa.ArrowException) as error:
        fail(tell_options(str(error)), OTHER_FAULT)


def fail(message: str, code: int) -> NoReturn:
    """Print `message` to stderr, with red carets on a terminal, and end the command with `code`."""
    written = Text(f"gpu-cep: {message}")
    written.highlight_regex(r"\^+", "bold red")
    Console(stderr=True).print(written, soft_wrap=True)
    raise typer.Exit(code)


@contextmanager
def print_warnings() -> Iterator[None]:
    """Print a line to stderr for each warning about the query that is given inside."""
    with warnings.catch_warnings():
        for told in _TOLD:
            warnings.simplefilter("always", told)
        plain = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
            if issubclass(category, _TOLD):
                Console(stderr=True).print(Text(f"gpu-cep: warning: {message}"), soft_wrap=True)
            else:
                plain(message, category, *place, **more)

        warnings.showwarning = show
        yield


def say(message: str, facts: Mapping[str, Any], *, as_json: bool, aside: bool = False) -> None:
    """Print `message`, or with `as_json` the `facts` as a JSON object.

    `aside` prints to stderr, for when stdout holds the result itself. Raises as :func:`write_whole`.
    """
    told = json_of(facts) if as_json else message
    if aside:
        print(told, file=sys.stderr)
    else:
        print_line(told)


def json_of(facts: Mapping[str, Any]) -> str:
    """Return `facts` as a JSON object on one line."""
    return json.dumps(facts, ensure_ascii=False)
