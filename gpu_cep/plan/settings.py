"""Hold and check what the caller chose, apart from the query itself."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import get_args

from gpu_cep.choices import AfterMatch, Algorithm, Engine, EventAlgorithm, Output, PruningStep
from gpu_cep.errors import Diagnostic, PatternError, UnsupportedError, nearest
from gpu_cep.identity import Identity

PRUNING_STEPS = get_args(PruningStep)
OUTPUTS = get_args(Output)
EVENT_ALGORITHMS = get_args(EventAlgorithm)
ALGORITHMS = get_args(Algorithm)
ENGINES = get_args(Engine)
AFTER_MATCH = get_args(AfterMatch)

# Searches hold at most so many matches of a first event to leave out those that come after them.
MOST_HELD = 1 << 10

# Values of other libraries, and what they are here.
_ELSEWHERE = {"cuda": "gpu", "device": "gpu", "rapids": "gpu"}
_KNOWN = {"output": OUTPUTS, "algorithm": ALGORITHMS, "engine": ENGINES, "after_match": AFTER_MATCH}


@dataclass(frozen=True, slots=True)
class Settings:
    """How a query is to be answered.

    `output`, `engine`, `algorithm`, `after_match`: the keywords of :func:`gpu_cep.match`.
    `limit_per_start`: the most matches of one first event that are kept (None: all).
    `order_matches_by`: an expression of the match, by which those of one first event are kept first, as text (None: result order).
    `max_matches`: the most matches of the output; those that a search finds and drops may count, too.
    `max_steps`: the most steps of the whole run.
    `prune`: the pruning steps that may be used (:data:`PRUNING_STEPS`); none changes the matches.
    `columns`: the input columns that the output carries (None: all).
    `gpu_memory`: the most bytes of a GPU's memory (None: a share of what is free).
    `timeouts`: whether timeouts are asked for beside the matches; :func:`gpu_cep.plan.timeouts.by_kind` asks for each by itself.
    `detected_at`: whether each match says when it is certain.
    `kind`: of which kind the rows are, for a result that says so (None: matches, and it does not).
    """

    output: str = "matches"
    engine: str = "auto"
    algorithm: str = "auto"
    after_match: str = "all"
    limit_per_start: int | None = None
    order_matches_by: str | None = None
    max_matches: int | None = None
    max_steps: int | None = None
    prune: tuple[str, ...] = PRUNING_STEPS
    columns: tuple[str, ...] | None = None
    gpu_memory: int | None = None
    timeouts: bool = False
    detected_at: bool = False
    kind: str | None = None

    @property
    def keeps_all(self) -> bool:
        """Return whether every match is kept."""
        return self.after_match == "all" and self.limit_per_start is None

    @property
    def searched(self) -> str:
        """Return the value of `after_match` by which searches leave matches out: those kept of a first event are the first to complete."""
        first = self.limit_per_start is not None and self.limit_per_start <= MOST_HELD and self.order_matches_by is None
        return "skip_to_next" if first else self.after_match


DEFAULT_SETTINGS = Settings()
"""What holds where the caller chose nothing."""


def pruning_steps(prune: bool | Iterable[str]) -> tuple[str, ...]:
    """Return the pruning steps that the keyword ``prune=`` selects: all, none, or those named."""
    if isinstance(prune, bool):
        return PRUNING_STEPS if prune else ()
    if not isinstance(prune, Iterable):
        raise PatternError(f"prune must be True, False or some of {', '.join(PRUNING_STEPS)}, not {prune!r}")
    chosen = (prune,) if isinstance(prune, str) else tuple(prune)
    faults = [
        Diagnostic(f"prune: unknown step {step!r}; the steps are {', '.join(PRUNING_STEPS)}", hint=nearest(str(step), PRUNING_STEPS))
        for step in chosen
        if step not in PRUNING_STEPS
    ]
    if faults:
        raise PatternError(faults)
    return tuple(step for step in PRUNING_STEPS if step in chosen)


_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?|[kmgt]i)b?", re.IGNORECASE | re.ASCII)


def memory_bytes(size: int | str | None, argument: str = "gpu_memory") -> int | None:
    """Return the number of bytes that `size` means.

    It is a number, or text such as ``8GB`` (10⁹ bytes each) or ``512MiB`` (2²⁰); `argument` is the
    keyword that it was given by, for errors.
    """
    if size is None:
        return None
    found = _SIZE.fullmatch(size.strip()) if isinstance(size, str) else None
    number = int(Decimal(found[1]) * _UNITS[found[2].lower()]) if found else size
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise PatternError(f"{argument} must be a number of bytes, at least 1, or text such as '8GB' or '512MiB', not {size!r}")
    return number


def check_settings(settings: Settings) -> None:
    """Refuse unknown choices (PatternError) and choices that exclude each other (UnsupportedError).

    One error names all of them.
    """
    _check(Identity(settings))


# Settings that are equal may differ in type, as 1 and True do.
@lru_cache(maxsize=64)
def _check(checked: Identity[Settings]) -> None:
    """Check settings as :func:`check_settings` does; those that passed are remembered."""
    settings = checked.value
    unknown, apart = [], []
    for argument, known in _KNOWN.items():
        value = getattr(settings, argument)
        if value not in known:
            message = f"{argument}={value!r} is unknown; expected one of {', '.join(known)}"
            unknown.append(Diagnostic(message, hint=nearest(_ELSEWHERE.get(str(value), str(value)), known)))
    if (settings.output, settings.algorithm) == ("compressed", "brute_force"):
        supported = ", ".join(name for name in EVENT_ALGORITHMS if name != "brute_force")
        apart.append(Diagnostic(f"output='compressed' is not supported with algorithm='brute_force'; supported: {supported}"))
    for argument in ("max_matches", "max_steps"):
        limit = getattr(settings, argument)
        if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 0):
            unknown.append(Diagnostic(f"{argument} must be a whole number of at least 0, not {limit!r}"))
    unknown += _limit_faults(settings)
    for argument in ("timeouts", "detected_at"):
        asked = getattr(settings, argument)
        if not isinstance(asked, bool):
            unknown.append(Diagnostic(f"{argument} must be True or False, not {asked!r}"))
    if unknown:
        raise PatternError(unknown)
    if apart:
        raise UnsupportedError(apart)


def _limit_faults(settings: Settings) -> list[Diagnostic]:
    """Return what is wrong with the limit of matches per first event, and with the order that it keeps them by."""
    limit, order, faults = settings.limit_per_start, settings.order_matches_by, []
    if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 1):
        faults.append(Diagnostic(f"limit_per_start must be a whole number of at least 1, not {limit!r}"))
    if limit is not None and settings.after_match in AFTER_MATCH and settings.after_match != "all":
        message = f"limit_per_start= has nothing to limit with after_match={settings.after_match!r}, which keeps one match of a first event"
        faults.append(Diagnostic(message, hint="leave one of them out"))
    if order is not None and not isinstance(order, str):
        faults.append(Diagnostic(f"order_matches_by must be text such as 'sum(b.x) desc', not {order!r}"))
    if order is not None and limit is None:
        faults.append(Diagnostic("order_matches_by= says which matches limit_per_start= keeps", hint="give limit_per_start=, too"))
    return faults
