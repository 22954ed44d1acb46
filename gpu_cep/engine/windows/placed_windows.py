"""Keep the windows that satisfy the necessary match conditions, on the host or on a card.

How windows come about differs: the host finds them in sequential passes
(:mod:`gpu_cep.engine.windows.candidates`), a card by parallel primitives
(:mod:`gpu_cep.engine.phase_one.device.windows`). From there on the steps are the same.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpu_cep.engine.accounting.profile import Profile
from gpu_cep.plan.event_plan import EventPlan
from gpu_cep.records import record
from gpu_cep_kernels.device.interface import HOST, Array, Backend
from gpu_cep_kernels.phase_one.window_conditions import NextEvents, chain_windows, judge_windows, keep_windows
from gpu_cep_kernels.phase_one.windows import WindowLimits, window_ends
from gpu_cep_kernels.rules.tables import PatternTable


@record()
class PlacedWindows:
    """The events of a batch, numbered from its first, and the windows that start at them; all arrays are at `place`.

    ``labels[word, e]`` is the label of event e. `limits` say where windows end, and `next_events`
    which events follow e, for some of the query's variables.
    """

    place: Backend
    labels: Array
    limits: WindowLimits
    next_events: NextEvents

    def ends(self, starts: Array, inside: Array | None = None) -> Array:
        """Return where the windows of `starts` end.

        `inside` is an event of each window, from which on the end is sought (None: the start).
        """
        found = self.place.xp.empty(len(starts), np.int32)
        self.place.launch(window_ends, len(starts), starts, starts if inside is None else inside, self.limits, found)
        return found


@record()
class Candidates:
    """The starts (int64) of the windows that satisfy the tested necessary match conditions.

    ``earliest[variable, candidate]`` is the event that the chained condition found. `earliest` is
    None if that was not the last condition tested.
    """

    starts: Array
    earliest: Array | None


def candidate_ends(windows: PlacedWindows, candidates: Candidates) -> Array:
    """Return where the candidates' windows end."""
    inside = None if candidates.earliest is None else candidates.earliest.max(axis=0)
    return windows.ends(candidates.starts, inside)


def keep_candidates(
    plan: EventPlan, windows: PlacedWindows, starts: Array, count: Callable[[], Array], pattern: PatternTable, fewest: int, profile: Profile
) -> Candidates:  # fmt: skip
    """Return the candidates among `starts` that the plan's steps ``summary`` and ``chain`` leave.

    `count` returns the counts for ``summary``: ``counts[v, e]`` events before e have the bit of
    variable v. `fewest` is the least number of events of a match.
    """
    candidates = Candidates(starts, None)
    if "summary" in plan.pruning:
        with profile.stage("summary"):
            # the counts are let go before the next step
            candidates = _keep_summarised(windows, starts, count(), pattern, fewest)
        profile.add("summarised", len(candidates.starts))
    if "chain" in plan.pruning:
        with profile.stage("chain"):
            candidates = keep_chained(windows, candidates.starts, pattern, exact=False)
    profile.add("candidates", len(candidates.starts))
    return candidates


def _keep_summarised(windows: PlacedWindows, starts: Array, counts: Array, pattern: PatternTable, fewest: int) -> Candidates:
    """Return those of `starts` whose windows hold enough events of each variable."""
    holds = windows.place.xp.empty(len(starts), np.bool_)
    ends = windows.ends(starts)
    windows.place.launch(judge_windows, len(starts), starts, ends, windows.next_events, pattern, fewest, counts, holds)
    return Candidates(starts[holds], None)


def judge_chained(windows: PlacedWindows, starts: Array, pattern: PatternTable, *, exact: bool) -> tuple[Array, Array]:
    """Return whether the windows of `starts` satisfy the chained condition, and the earliest event of each variable in them.

    With `exact`, the condition finds the match itself where labels decide matches.
    """
    place, xp, variables = windows.place, windows.place.xp, len(pattern.order)
    earliest, holds = xp.empty((variables + 1, len(starts)), np.int32), xp.empty(len(starts), np.bool_)
    place.launch(chain_windows, len(starts), starts, windows.limits, windows.next_events, pattern, exact, earliest, holds)
    return holds, earliest[:variables]


def keep_chained(windows: PlacedWindows, starts: Array, pattern: PatternTable, *, exact: bool) -> Candidates:
    """Return those of `starts` whose windows satisfy the chained condition, judged as by :func:`judge_chained`."""
    holds, earliest = judge_chained(windows, starts, pattern, exact=exact)
    return _select(windows.place, holds, starts, earliest)


def _select(place: Backend, holds: Array, starts: Array, earliest: Array) -> Candidates:
    """Return the candidates that hold."""
    if place is HOST:
        # one pass in place, which is faster than to gather
        kept = np.empty(len(starts) + 1, np.int64)
        count = keep_windows(holds, starts, earliest, kept)
        return Candidates(kept[:count], earliest[:, :count])
    chosen = place.xp.flatnonzero(holds)
    return Candidates(starts[chosen], place.xp.take(earliest, chosen, axis=1))
