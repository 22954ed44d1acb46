"""Name the options of the command line where messages name keywords of :func:`gpu_cep.match`."""

from __future__ import annotations

import re
import shlex

from gpu_cep.errors import DiagnosedError, Diagnostic
from gpu_cep.keywords import MatchOptions

# Keywords that are no options.
NO_OPTIONS = ("functions", "profile", "prune", "result", "tuning")
OPTIONS = tuple(name for name in MatchOptions.__annotations__ if name not in NO_OPTIONS)

# A keyword with a text, a number or nothing behind it, unless the message names the option itself or the value is a list.
_KEYWORD = re.compile(rf"(?<![\w.])({'|'.join(OPTIONS)})=(?!\[|\S* \(--)('[^']*'|\d[\d,]*)?")


def tell_options(message: str) -> str:
    """Return a message with each keyword as the option that stands for it: ``engine='cpu'`` as ``--engine cpu``."""
    return _KEYWORD.sub(_option, message)


def tell_options_of(error: DiagnosedError, text: str | None) -> str:
    """Return the message of an error over the query `text`, with options for keywords in all but the lines of the query."""
    told = [Diagnostic(tell_options(each.message), each.span, each.hint and tell_options(each.hint)) for each in error.diagnostics]
    return str(type(error)(told, text))


def _option(keyword: re.Match[str]) -> str:
    option, value = f"--{keyword[1].replace('_', '-')}", keyword[2]
    if not value:
        return option
    number = value.replace(",", "")
    return f"{option} {number if number.isdigit() else shlex.quote(value[1:-1])}"
