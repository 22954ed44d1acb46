"""Ask for timeouts beside the matches: which queries have them, and how each kind is asked for by itself."""

from __future__ import annotations

from dataclasses import replace

from gpu_cep.analysis.bound import BoundPattern
from gpu_cep.errors import Diagnostic, UnsupportedError
from gpu_cep.plan.certainty import detection_faults
from gpu_cep.plan.event_plan import EventPlan
from gpu_cep.plan.settings import Settings

# The kinds of rows.
MATCH, TIMEOUT = "match", "timeout"
# Strategies under which a run goes on by a rule of its own, whatever becomes of it.
_STRATEGIES = ("skip_till_next_match", "partition_contiguity", "strict_contiguity")
# Pruning steps that leave out events which no run binds. All others leave out starts without a match.
_PRUNING = ("filter", "partition")


def by_kind(settings: Settings) -> tuple[Settings, Settings]:
    """Return settings that ask for the matches, and others that ask for the timeouts; both have the same columns."""
    matches = replace(settings, timeouts=False, kind=MATCH)
    steps = tuple(step for step in settings.prune if step in _PRUNING)
    every = replace(matches, after_match="all", limit_per_start=None, order_matches_by=None)
    timeouts = replace(every, kind=TIMEOUT, algorithm="ses_automaton", engine="cpu", prune=steps)
    return matches, timeouts


def of_open_runs(settings: Settings) -> Settings:
    """Return settings by which :func:`as_open_runs` plans, whatever bounds and columns are asked for."""
    _, timeouts = by_kind(settings)
    return replace(timeouts, output="indices", columns=None, detected_at=False, max_matches=None, max_steps=None, kind=None)


def as_open_runs(plan: EventPlan) -> EventPlan:
    """Return a plan that was made by :func:`of_open_runs` as one that finds the events of runs without a match.

    It makes no table, so that variables may have the names of a table's own columns.
    """
    return replace(plan, settings=replace(plan.settings, kind=TIMEOUT))


def check_kinds(query: BoundPattern, settings: Settings) -> None:
    """Raise UnsupportedError, which names all reasons, if timeouts are asked for and a query has none."""
    if settings.timeouts:
        known = "match(), gpu_match(), stream(), stream_all(), and gpu_match_all() of streams"
        raise UnsupportedError([Diagnostic(f"timeouts=True is not supported here; supported: {known}")])
    if settings.kind is None:
        return
    faults = []
    if query.strategy not in _STRATEGIES:
        supported = ", ".join(_STRATEGIES)
        faults.append(Diagnostic(f"timeouts=True is not supported under {query.strategy}; supported: {supported}"))
    faults += detection_faults(query, settings, "timeouts=True")
    if faults:
        raise UnsupportedError(faults)
