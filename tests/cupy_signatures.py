"""With which arguments CuPy's functions and methods may be called: by their signatures, or by the line of documentation that has one."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import cache
from typing import Any

_DOCUMENTED = re.compile(r"^[\w.]+\((?P<parameters>.*?)\)(?: ->.*)?$")
# A parameter of compiled code: its type in C, which Python does not know, its name, its default.
_TYPED = re.compile(r"^(?:[\w ]+ )?(?P<rest>\w+(?:=.*)?|\*|/|\*\*?\w+)$")


class Documented:
    """No function: it has a documentation alone."""

    def __init__(self, text: str) -> None:
        self.__doc__ = text


@cache
def signature_of(function: Any) -> inspect.Signature | None:
    """The signature of a function or method, without ``self``; None if it is told nowhere."""
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return _documented(function.__doc__ or "")


def _documented(text: str) -> inspect.Signature | None:
    """The signature in the first line of a documentation."""
    found = _DOCUMENTED.match(text.partition("\n")[0].replace("\\*", "*"))
    if found is None:
        return None
    parameters = [part.strip() for part in found["parameters"].split(",") if part.strip() not in ("", "self")]
    plain = [typed["rest"] if (typed := _TYPED.match(parameter)) else parameter for parameter in parameters]
    # defaults matter by their presence alone
    named: dict[str, Callable[..., None]] = {}
    exec(f"def documented({', '.join(re.sub('=.*', '=None', parameter) for parameter in plain)}): pass", named)
    return inspect.signature(named["documented"])


def refusal(function: Any, arguments: int, keywords: tuple[str, ...]) -> str:
    """Why a function may not be called with so many arguments and these keywords; empty if it may, or its signature is not told."""
    signature = signature_of(function)
    try:
        if signature is not None:
            signature.bind(*[None] * arguments, **dict.fromkeys(keywords))
    except TypeError as fault:
        return str(fault)
    return ""
