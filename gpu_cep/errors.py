"""Define the errors that gpu_cep raises, which derive from :class:`CepError`, and its warning.

A :class:`Diagnostic` describes an error in a pattern: a message, its place in
the text, and a hint. Analysis collects all diagnostics of a query and raises
one error that holds them.
"""

from __future__ import annotations

import difflib
import re
import sys
import warnings
from collections.abc import Iterable, Sequence
from contextlib import ContextDecorator
from dataclasses import dataclass

from gpu_cep.lang.ast import Span

LESS_MEMORY = "use output='count' or a narrower pattern"
FEWER_EVENTS = "give Parquet, of which only the columns that the query needs are read, or fewer streams at a time"
_PACKAGES = ("gpu_cep", "gpu_cep_spark")
_EXCERPT = 120  # characters of a line that a message shows
_LONGEST_WORD = 201  # characters of a name or a literal that a message quotes
_LONGEST_MESSAGE = 2_000
_MOST_FAULTS = 20
_MOST_CHOICES = 16  # choices that a hint lists; of more it shows the nearest
_NEAREST_CHOICES = 5
_MOST_RANKED = 1_000  # choices that are ranked, however little alike they are
_LONG_WORD = re.compile(rf"\S{{{_LONGEST_WORD + 1},}}")


def shorten(message: str) -> str:
    """Return a message without the middle of each long word, and without its own middle if it is still long."""
    return _without_middle(_LONG_WORD.sub(lambda word: _without_middle(word[0], _LONGEST_WORD), message), _LONGEST_MESSAGE)


def _without_middle(text: str, longest: int) -> str:
    kept = longest // 2
    return text if len(text) <= longest else f"{text[:kept]}…{text[-kept:]}"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One error in a query: what is wrong, where it stands in the text, and a hint at what may be meant."""

    message: str
    span: Span | None = None
    hint: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", shorten(self.message))
        object.__setattr__(self, "hint", None if self.hint is None else shorten(self.hint))

    def render(self, text: str | None = None) -> str:
        """Return the diagnostic as lines of text; if `text` is given, with its line and a caret under the place."""
        lines = [self.message if self.span is None else f"line {self.span.line}, column {self.span.column}: {self.message}"]
        if text is not None and self.span is not None:
            lines += _excerpt(text, self.span)
        if self.hint is not None:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(lines)


def _excerpt(text: str, span: Span) -> list[str]:
    source = text.split("\n")
    line = source[min(span.line, len(source)) - 1].rstrip().replace("\t", " ")
    end = span.end_column if span.end_line == span.line else len(line) + 1
    left = max(0, span.column - 1 - _EXCERPT // 2)
    caret = "^" * min(max(1, end - span.column), _EXCERPT // 2)
    return [f"  {line[left : left + _EXCERPT]}", f"  {' ' * (span.column - 1 - left)}{caret}"]


def nearest(name: str, choices: Iterable[str]) -> str | None:
    """Return a hint that names the choice most similar to `name`, or None if none is similar."""
    found = similar_choice(name, choices)
    return None if found is None else f"did you mean {found!r}?"


def similar_choice(name: str, choices: Iterable[str]) -> str | None:
    """Return the choice most similar to `name`, or None if none is similar."""
    return next(iter(_most_similar(name, choices, 1, 0.5)), None)


def list_choices(name: str, choices: Iterable[str]) -> str:
    """Return the choices as a list: all of them if they are few, else those most similar to `name`, and how many more there are.

    >>> list_choices("x", ["ts", "v"])
    'ts, v'
    >>> list_choices("n5", [f"n{number}" for number in range(200)])
    'n5, n95, n85, n75, n65 and 195 more'
    """
    known = list(dict.fromkeys(choices))
    if len(known) <= _MOST_CHOICES:
        return ", ".join(known) or "none"
    least = 0.0 if len(known) <= _MOST_RANKED else 0.6
    shown = _most_similar(name, known, _NEAREST_CHOICES, least) or known[:_NEAREST_CHOICES]
    return f"{', '.join(shown)} and {len(known) - len(shown):,} more"


def _most_similar(name: str, choices: Iterable[str], most: int, least: float) -> list[str]:
    """Return the choices most similar to `name` without regard to case, at `most` so many and of `least` this similarity.

    A long name is similar to none, since comparing it would take long.
    """
    if len(name) > _LONGEST_WORD:
        return []
    folded = {choice.lower(): choice for choice in choices}
    return [folded[each] for each in difflib.get_close_matches(name.lower(), folded, n=most, cutoff=least)]


class CepError(Exception):
    """Base class of all errors that gpu_cep raises on purpose; what a message quotes is shortened."""

    def __init__(self, message: str) -> None:
        super().__init__(shorten(message))


class DiagnosedError(CepError):
    """An error of one or more diagnostics, which `diagnostics` holds; the message shows the first twenty."""

    def __init__(self, diagnostics: Sequence[Diagnostic] | str, text: str | None = None) -> None:
        if isinstance(diagnostics, str):
            diagnostics = [Diagnostic(diagnostics)]
        self.diagnostics = tuple(diagnostics)
        self.text = text
        more = len(self.diagnostics) - _MOST_FAULTS
        shown = [diagnostic.render(text) for diagnostic in self.diagnostics[:_MOST_FAULTS]]
        # each one is short already
        Exception.__init__(self, "\n".join([*shown, f"… and {more:,} more faults"] if more > 0 else shown))

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (self.diagnostics, self.text)


class PatternSyntaxError(DiagnosedError):
    """The text is not a query: it breaks the grammar."""


class PatternError(DiagnosedError):
    """The query is well formed, but has no meaning over these events, such as one that names an unknown column."""


class UnsupportedError(DiagnosedError):
    """This algorithm, engine or release cannot run the query; the message names those that can."""


class EventError(CepError):
    """The events have an error: a NULL timestamp, an overflow, an unreadable file."""


class EngineUnavailable(CepError):
    """The requested engine or package cannot be used here; the message says why."""


class AbsentValueWarning(UserWarning):
    """A query without matches asks for a text that no event has, such as ``View`` where events have ``view``."""


class FailedPatternWarning(UserWarning):
    """One of many patterns failed, and the caller asked that it stop no other."""


class MatchLimitExceeded(CepError):
    """There are more matches than the caller allows, or finding them takes more work.

    The message names the stream and the window.
    """


class _EndingIn(ContextDecorator):
    """The context of :func:`ending_in`; a call over few events opens six, and a generator for each would cost more."""

    __slots__ = ("doing", "error", "remedy")

    def __init__(self, error: type[CepError], doing: str, remedy: str) -> None:
        self.error, self.doing, self.remedy = error, doing, remedy

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, fault: BaseException | None, traceback: object) -> None:
        if isinstance(fault, MemoryError):
            raise self.error(f"out of memory while {self.doing}; {self.remedy}") from None


def ending_in(error: type[CepError], doing: str, remedy: str) -> _EndingIn:
    """Turn a lack of memory inside into an `error` that says what was being done, and the remedy."""
    return _EndingIn(error, doing, remedy)


def warn_caller(message: str, category: type[Warning]) -> None:
    """Issue a warning whose place is the line outside of gpu_cep that led here."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals["__name__"].partition(".")[0] in _PACKAGES:
        level, frame = level + 1, frame.f_back
    warnings.warn(shorten(message), category, stacklevel=level)
