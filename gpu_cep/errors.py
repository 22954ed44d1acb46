"""The errors that gpu_cep raises; all derive from :class:`CepError`.

A fault found in a pattern is a :class:`Diagnostic`: a message, where it stands
in the text, and the nearest valid choice. Analysis collects all of them and
raises one error.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gpu_cep.lang.ast import Span

_EXCERPT = 120  # characters of a line that a message shows


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One fault: what is wrong, where, and what might have been meant."""

    message: str
    span: Span | None = None
    hint: str | None = None

    def render(self, text: str | None = None) -> str:
        """The fault as lines of text, with a caret under its place if `text` is at hand."""
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
    """A hint that names the choice most like `name`, or None if none is near."""
    folded = {choice.lower(): choice for choice in choices}
    found = difflib.get_close_matches(name.lower(), folded, n=1, cutoff=0.5)
    return f"did you mean {folded[found[0]]!r}?" if found else None


class CepError(Exception):
    """Base of every error that gpu_cep raises on purpose."""


class DiagnosedError(CepError):
    """An error made of one or more diagnostics; `diagnostics` holds them all."""

    def __init__(self, diagnostics: Sequence[Diagnostic] | str, text: str | None = None) -> None:
        if isinstance(diagnostics, str):
            diagnostics = [Diagnostic(diagnostics)]
        self.diagnostics = tuple(diagnostics)
        self.text = text
        super().__init__("\n".join(d.render(text) for d in self.diagnostics))

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (self.diagnostics, self.text)


class PatternSyntaxError(DiagnosedError):
    """The text is not a query."""


class PatternError(DiagnosedError):
    """The query is well formed but means nothing over these events."""


class UnsupportedError(DiagnosedError):
    """This algorithm, engine or release cannot run the query; the message names what can."""


class EventError(CepError):
    """The events are at fault: a NULL timestamp, an overflow, an unreadable file."""


class EngineUnavailable(CepError):
    """The engine asked for cannot run here; the message says why."""


class MatchLimitExceeded(CepError):
    """More matches, or more work, than the caller allowed; the message names the stream and the window."""
