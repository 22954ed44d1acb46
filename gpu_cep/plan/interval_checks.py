"""Refuse queries over situations that nothing can satisfy, and settings that they do not support."""

from __future__ import annotations

from gpu_cep.analysis.bound_intervals import BoundIntervals
from gpu_cep.errors import Diagnostic, PatternError, UnsupportedError
from gpu_cep.plan.allen import clash
from gpu_cep.plan.settings import Settings


def check_solvable(query: BoundIntervals, text: str | None) -> None:
    """Raise PatternError, which quotes `text`, if constraints cannot hold together.

    The error names a minimal set of constraints that clash.
    """
    clashing = clash(query.constraints)
    if clashing:
        texts = " AND ".join(constraint.text for constraint in clashing)
        hint = "leave one of them out, or add an alternative"
        raise PatternError([Diagnostic(f"no situations satisfy {texts}", clashing[-1].span, hint)], text)


def check_interval_settings(settings: Settings) -> None:
    """Raise UnsupportedError if `settings` ask for what only event patterns support; it names all of that."""
    faults = []
    if settings.after_match != "all":
        faults.append(f"after_match={settings.after_match!r} is not supported for situations; supported: all")
    if settings.limit_per_start is not None:
        faults.append("limit_per_start= is not supported for situations; supported: event patterns (PATTERN)")
    if settings.output == "compressed":
        faults.append("output='compressed' is not supported for situations; supported: matches, events, indices, count")
    if (settings.engine, settings.algorithm) == ("gpu", "brute_force"):
        faults.append("algorithm='brute_force' is not supported with engine='gpu'; supported: auto, cpu")
    if settings.timeouts or settings.kind:
        faults.append("timeouts=True is not supported for situations; supported: event patterns (PATTERN)")
    if faults:
        raise UnsupportedError([Diagnostic(fault) for fault in faults])
