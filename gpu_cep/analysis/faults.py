"""The faults found while a query is bound: all are collected, then one error is raised."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from gpu_cep.errors import Diagnostic, PatternError, UnsupportedError, nearest
from gpu_cep.lang.ast import Span


@dataclass(slots=True)
class Faults:
    """`errors` make the query meaningless; `refusals` are what this release does not run."""

    errors: list[Diagnostic] = field(default_factory=list)
    refusals: list[Diagnostic] = field(default_factory=list)

    @property
    def count(self) -> int:
        return len(self.errors) + len(self.refusals)

    def error(self, message: str, span: Span | None = None, hint: str | None = None) -> None:
        self.errors.append(Diagnostic(message, span, hint))

    def unknown(self, what: str, name: str, choices: Iterable[str], span: Span | None = None, *, also: str | None = None) -> None:
        """Record that `name` is none of `choices`; the hint is the nearest of them, and what `also` may have been meant."""
        known = tuple(choices)
        hints = [nearest(name, known) or f"there are {', '.join(known) or 'none'};", *filter(None, [also])]
        self.error(f"unknown {what} {name!r}", span, " ".join(hints).removesuffix(";"))

    def refuse(self, construct: str, supported: str, span: Span | None = None) -> None:
        """Record that `construct`, as the user wrote it, is not supported; `supported` says what is."""
        self.refusals.append(Diagnostic(f"{construct} is not supported", span, supported))

    def raise_any(self, text: str | None) -> None:
        """Raise one error with all faults of the graver kind, if there are any."""
        if self.errors:
            raise PatternError(self.errors, text)
        if self.refusals:
            raise UnsupportedError(self.refusals, text)
