"""Collect the faults that are found while a query is bound, and raise one error for all of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from gpu_cep.errors import Diagnostic, PatternError, UnsupportedError, list_choices, nearest
from gpu_cep.lang.ast import Span


@dataclass(slots=True)
class Faults:
    """The faults found so far.

    `errors`: what makes the query meaningless.
    `refusals`: what is sound, but not supported by this release.
    """

    errors: list[Diagnostic] = field(default_factory=list)
    refusals: list[Diagnostic] = field(default_factory=list)

    @property
    def count(self) -> int:
        """Return how many faults there are."""
        return len(self.errors) + len(self.refusals)

    def error(self, message: str, span: Span | None = None, hint: str | None = None) -> None:
        """Record an error; one that both bounds of a BETWEEN have, or all copies of a group, is recorded once."""
        found = Diagnostic(message, span, hint)
        if all((found.message, span) != (last.message, last.span) for last in self.errors[-1:]):
            self.errors.append(found)

    def unknown(self, what: str, name: str, choices: Iterable[str], span: Span | None = None, *, also: str | None = None) -> None:
        """Record that `name` is none of `choices`.

        The hint names the nearest choice, or some of the choices if none is near; `also` adds what else may have been meant.
        """
        known = tuple(choices)
        hints = [nearest(name, known) or f"there are {list_choices(name, known)};", *filter(None, [also])]
        self.error(f"unknown {what} {name!r}", span, " ".join(hints).removesuffix(";"))

    def refuse(self, construct: str, supported: str, span: Span | None = None) -> None:
        """Record that `construct`, as the user wrote it, is not supported; `supported` says what is."""
        self.refusals.append(Diagnostic(f"{construct} is not supported", span, supported))

    def raise_any(self, text: str | None) -> None:
        """Raise one error with all errors or, if there are none, with all refusals; return if there are no faults."""
        if self.errors:
            raise PatternError(self.errors, text)
        if self.refusals:
            raise UnsupportedError(self.refusals, text)
