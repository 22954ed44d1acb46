"""Choose whether streams are cut into slices of time, and how long slices are."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from gpu_cep.analysis.bound import BoundQuery, CountWindow, TimeWindow
from gpu_cep.analysis.faults import Faults
from gpu_cep.analysis.windows import bind_length, length_of
from gpu_cep.errors import Diagnostic, PatternError, UnsupportedError
from gpu_cep.plan.interval_plan import AnyPlan, IntervalPlan
from gpu_cep_spark.slices.cut import LONGEST, SHORTEST, Slicing
from gpu_cep_spark.slices.stream_costs import ASSUMED_CORES, cutting_pays

AUTO = "auto"
# The length in windows of a slice if the span of the times is not known (one event in so many is copied), and the shortest in any case.
WINDOWS, FEWEST_WINDOWS = 16, 4
# If the span of the times is known: slices for each task behind a shuffle, so many that hashing spreads them evenly, and fewer for the
# sake of slices that are longer than `WINDOWS`.
SLICES_PER_TASK, FEWEST_PER_TASK = 32, 8


@dataclass(frozen=True, slots=True)
class KnownStreams:
    """What is known of a DataFrame's events without a job; functions are called only if the choice depends on them.

    Parameters
    ----------
    cores
        The tasks that run at a time, None if that is not known.
    tasks
        Returns the number of tasks behind a shuffle.
    span
        Returns the latest minus the earliest time, None if it is not known.
    shares
        Returns the shares of the rows that the largest streams have, None if they are not known.
    rows
        Returns the number of rows, None if it is not known.
    keyed
        Whether streams have keys by which their rows are sent to different tasks.
    """

    cores: int | None
    tasks: Callable[[], int]
    span: Callable[[], int | float | None]
    shares: Callable[[], Sequence[float] | None]
    rows: Callable[[], int | None]
    keyed: bool


class SlicingChoice(NamedTuple):
    """How to cut streams, None if they stay whole; and why, for a report."""

    slicing: Slicing | None
    why: str


class Wording(NamedTuple):
    """How messages call what stays whole, and what is cut; `kind` is the kind of query, behind "not supported"."""

    whole: str
    cut: str
    kind: str = ""


_STREAMS = Wording("streams", "streams")


def settle_slices(
    wanted: float | str | None, reason: str | None, words: Wording, given: Callable[[float | str], Slicing],
    by_itself: Callable[[], SlicingChoice],
) -> SlicingChoice:  # fmt: skip
    """Return how to cut into slices of the length that is `wanted`: a length of time, ``auto`` or None.

    Parameters
    ----------
    reason
        Why the query cannot be cut; None if it can.
    given
        Returns the slices of a length of time.
    by_itself
        Returns the choice that ``auto`` makes.

    Raises
    ------
    PatternError
        `wanted` is not a length of time, lacks a unit, or is shorter than the window.
    UnsupportedError
        `wanted` is a length, but the query cannot be cut.
    """
    if wanted is None:
        return SlicingChoice(None, f"{words.whole} are whole: slices=None")
    if wanted != AUTO:
        if reason is not None:
            message = f"slices={wanted!r} is not supported{words.kind} {reason}"
            raise UnsupportedError([Diagnostic(message, hint="supported: slices='auto' or None")])
        return SlicingChoice(given(wanted), f"{words.cut} are cut: slices={wanted!r}")
    if reason is not None:
        return SlicingChoice(None, f"{words.whole} are whole: {'they' if words.whole == words.cut else words.cut} cannot be cut {reason}")
    return by_itself()


def choose_slicing(plan: AnyPlan, wanted: float | str | None, time_unit: str | None, known: KnownStreams) -> SlicingChoice:
    """Return how to cut streams into slices of the length that is `wanted`.

    Raises as :func:`settle_slices`.

    Parameters
    ----------
    plan
        The plan over whole streams.
    wanted
        A length of time, ``auto`` or None.
    time_unit
        What bare numbers count, as in :func:`gpu_cep.match`.
    known
        What is known of the events.
    """
    given = partial(_given, plan, time_unit)
    return settle_slices(wanted, reason_against(plan), _STREAMS, given, partial(_by_itself, plan, known))


def _by_itself(plan: AnyPlan, known: KnownStreams) -> SlicingChoice:
    """Return the choice of ``auto`` for streams that can be cut."""
    if not isinstance(plan.query.window, TimeWindow):
        # in a stream with bursts, a count window may need many copies
        return SlicingChoice(None, "streams are whole: slices of a window of events need a length")
    if isinstance(plan, IntervalPlan) and plan.query.partition_by:
        # finding the event before a slice costs a pass over all events; streams with a key spread without slices
        return SlicingChoice(None, "streams are whole: situations with a key are not cut by themselves")
    return _by_costs(plan, plan.query.window.length, known)


def _by_costs(plan: AnyPlan, window: int | float, known: KnownStreams) -> SlicingChoice:
    """Return the cheaper way for a window of time; where nothing is known of streams with keys, they stay whole."""
    shares = known.shares() if known.keyed else None
    if known.keyed and shares is None:
        return SlicingChoice(None, "streams are whole: they have keys, and how large they are is not known")
    span = known.span()
    slicing = Slicing(default_length(window, span, known.tasks()), window, looks_back(plan), before=int(isinstance(plan, IntervalPlan)))
    if shares is None:
        return SlicingChoice(slicing, "streams are cut: they have no keys")
    cores = known.cores or ASSUMED_CORES
    copies = window / slicing.length * (2 if slicing.looks_back else 1)
    slices, rows = math.inf if span is None else span / slicing.length, known.rows()
    pays = cutting_pays(shares, cores, copies, slices, math.inf if rows is None else rows)
    number = "" if rows is None else f" {rows:,}"
    told = f"the largest of a sample has {max(shares, default=0):.1%} of the{number} rows, for {cores} cores"
    return SlicingChoice(slicing, f"streams are cut: {told}") if pays else SlicingChoice(None, f"streams are whole: {told}")


def _given(plan: AnyPlan, time_unit: str | None, wanted: float | str) -> Slicing:
    """Return the slices of the length that the user wants."""
    query = plan.query
    match query.window:
        case TimeWindow(length=window):
            length = given_length(query, window, wanted, time_unit)
            return Slicing(length, window, looks_back(plan), before=int(isinstance(plan, IntervalPlan)))
        case CountWindow(events=events):
            before = events - 1 if looks_back(plan) else 0
            return Slicing(given_length(query, 0, wanted, time_unit), 0, looks_back=False, behind=events - 1, before=before)
    raise AssertionError("a query without a window was refused")


def reason_against(plan: AnyPlan) -> str | None:
    """Return why Spark cannot cut streams, None if it can."""
    reason = reason_against_times(plan)
    # the event that shows a gap may come however late
    return "with gap=" if reason is None and isinstance(plan, IntervalPlan) and plan.query.gap is not None else reason


def reason_against_times(plan: AnyPlan) -> str | None:
    """Return why streams cannot be cut by times, even if each slice is told the events outside it; None if they can."""
    match plan.query.window:
        case None:
            return "without a window"
        case TimeWindow(length=window) if not window <= LONGEST // WINDOWS:
            return "with so long a window"
        case CountWindow(events=events) if events > LONGEST:
            return "with so long a window"
    return "with output='compressed'" if plan.settings.output == "compressed" else None


def looks_back(plan: AnyPlan) -> bool:
    """Return whether events before a match's first one bear on it."""
    branches = () if isinstance(plan, IntervalPlan) else plan.branches
    return any(not negation.after for branch in branches for negation in branch.negations)


def default_length(window: int | float, span: int | float | None, tasks: int) -> int | float:
    """Return the length of slices that ``auto`` takes.

    It is a number of windows. If the `span` of the times is known, it is a share of that, but at
    least a few windows.
    """
    exact = type(window)
    if span is None:
        return WINDOWS * window or exact(WINDOWS)
    shortest, longest = (exact(span / (number * tasks)) for number in (SLICES_PER_TASK, FEWEST_PER_TASK))
    length = max(shortest, min(WINDOWS * window, longest), FEWEST_WINDOWS * window)
    return min(length, exact(LONGEST)) or exact(WINDOWS)


def given_length(query: BoundQuery, window: int | float, wanted: float | str, time_unit: str | None) -> int | float:
    """Return the length that the user wants, in ticks; it is at least the window."""
    given, faults = length_of(wanted), Faults()
    if given is None:
        hint = "write 'auto', None, a number, or text such as '30 minutes'"
        raise PatternError([Diagnostic(f"slices={wanted!r} is no length of time", hint=hint)])
    timestamp = query.schema.attributes[query.timestamp]
    length = bind_length("length of slices", given, timestamp, time_unit, faults, form="slices='{}'")
    if length is not None and not (length >= window and 0 < length <= LONGEST):
        faults.error(f"slices={wanted!r} must be at least as long as the window, and longer than nothing")
    faults.raise_any(None)
    assert length is not None, "no length is a fault"
    return length if isinstance(length, float) else max(length, SHORTEST)
