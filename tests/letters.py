"""Matches of a pattern over a stream that is written as letters: ``match("SEQ(A, B+)", "ABBC")`` is ``["A0 B1 B2"]``."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa

import gpu_cep
from tests.results import matches_of

# A letter of the pattern that is not followed by a variable's name.
_LETTER = re.compile(r"\b([A-Z])\b(?!\s+[a-z])")


def match(pattern: str, stream: str, **options: Any) -> list[str]:
    """Return the matches in result order, each as its events: the variable's name, then the event's number in the stream, from 0 on.

    Parameters
    ----------
    pattern
        A pattern, perhaps with conditions and WITHIN. A letter is a variable of the events with that letter; ``A a`` names it otherwise.
    stream
        A letter is an event, whose time is the number of those before it. Events in brackets have one time, that of the first of them.
    options
        Of :func:`gpu_cep.match`.
    """
    body, where, rest = pattern.partition(" WHERE ")
    text = "PATTERN " + _LETTER.sub(r"\1 \1", body) + where + rest
    found = gpu_cep.match(events(stream), text, output="indices", **options)
    return [" ".join(f"{name}{row}" for name, rows in each.items() for row in rows) for each in matches_of(found)]


def events(stream: str) -> pa.Table:
    """Return the events of a stream of letters: their times and types."""
    letters: list[str] = []
    times: list[int] = []
    tied = -1
    for character in stream.replace(" ", ""):
        if character == "[":
            tied = len(letters)
        elif character == "]":
            tied = -1
        else:
            times.append(len(letters) if tied < 0 else tied)
            letters.append(character)
    return pa.table({"ts": pa.array(times, pa.int64()), "type": pa.array(letters, pa.string())})
