"""How a command ends and what it says: exit codes, faults on stderr, results on stdout."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn

import pyarrow as pa
import typer
from rich.console import Console
from rich.text import Text

from gpu_cep.errors import CepError, DiagnosedError, EventError

QUERY_FAULT = 1
USAGE_FAULT = 2
EVENT_FAULT = 3
OTHER_FAULT = 4


@contextmanager
def report_faults(text: str | None = None) -> Iterator[None]:
    """Say on stderr what goes wrong inside, and end with its exit code; `text` is the query's, into which faults point."""
    try:
        yield
    except DiagnosedError as error:
        fail("\n".join(each.render(text) for each in error.diagnostics), QUERY_FAULT)
    except EventError as error:
        fail(str(error), EVENT_FAULT)
    except BrokenPipeError:
        # whoever read the output has gone; nothing is to be flushed into the pipe when the process ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(OTHER_FAULT) from None
    except (CepError, OSError, pa.ArrowException) as error:
        fail(str(error), OTHER_FAULT)


def fail(message: str, code: int) -> NoReturn:
    """End the command with `code`, and `message` on stderr; its carets are red on a terminal."""
    written = Text(f"gpu-cep: {message}")
    written.highlight_regex(r"\^+", "bold red")
    Console(stderr=True).print(written, soft_wrap=True)
    raise typer.Exit(code)


def say(message: str, facts: Mapping[str, Any], *, as_json: bool, aside: bool = False) -> None:
    """Print the outcome: `message`, or `facts` as a JSON object; `aside` puts it on stderr, where stdout holds the result itself."""
    print(json_of(facts) if as_json else message, file=sys.stderr if aside else sys.stdout)


def json_of(facts: Mapping[str, Any]) -> str:
    """Facts as a JSON object on one line."""
    return json.dumps(facts, ensure_ascii=False)
