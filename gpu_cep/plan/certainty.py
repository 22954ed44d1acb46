"""Say when a match is certain: from when on no event that may still come can change it (docs/streams.md)."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from gpu_cep.analysis.bound import BoundPattern, TimeWindow
from gpu_cep.errors import Diagnostic, UnsupportedError
from gpu_cep.plan.event_plan import EventPlan, Plan, PlannedBranch
from gpu_cep.plan.settings import Settings

# The outputs whose rows say when a match is certain.
_OUTPUTS = ("matches", "indices")


class Certain(Enum):
    """When a match is certain: with its last event, with the next event of its stream or its window's end, and so on."""

    WITH_LAST_EVENT = "with its last event"
    WITH_NEXT_EVENT = "with the next event of its stream, or when its window is over"
    WITH_WINDOW = "when its window is over"
    BY_BRANCH = "with its last event or when its window is over, as the branch says whose variables it binds"
    AT_DETECTION = "when it is detected"


def certainty_of(plan: Plan) -> Certain:
    """Return when the matches of a query are certain.

    For branches of several kinds that is the later time, unless all matches are kept. Matched events are numbered in the
    order of first events, and so reported in it: when the window is over.
    """
    if not isinstance(plan, EventPlan):
        return Certain.AT_DETECTION
    if plan.settings.output == "events":
        return Certain.WITH_WINDOW
    late = [_waits_for_window(plan)(branch) for branch in plan.branches]
    if not any(late):
        return Certain.WITH_LAST_EVENT
    # phase 1 may drop the event behind a match that needs none
    in_contact = plan.query.strategy == "strict_contiguity" and all(late) and not any(map(_is_open_behind, plan.branches))
    if not isinstance(plan.query.window, TimeWindow):
        return Certain.WITH_WINDOW
    if in_contact:
        return Certain.WITH_NEXT_EVENT
    return Certain.BY_BRANCH if not all(late) and plan.settings.keeps_all else Certain.WITH_WINDOW


def check_detection(plan: EventPlan) -> EventPlan:
    """Return the plan if its matches can say when they are certain, or need not.

    Raises
    ------
    UnsupportedError
        They are to, and cannot. One error names all reasons.
    """
    settings, asked = plan.settings, "detected_at=True"
    if not settings.detected_at:
        return plan
    faults = detection_faults(plan.query, settings, asked)
    if settings.limit_per_start is not None:
        faults.append(Diagnostic(f"{asked} is not supported with limit_per_start=: which matches are kept is known later"))
    if not is_reported_in_time(plan):
        message = f"{asked} is not supported with after_match='skip_past_last' where a match is certain later than with its last event"
        faults.append(Diagnostic(f"{message}: which matches are kept is known later still", hint="leave after_match= out"))
    if faults:
        raise UnsupportedError(faults)
    return plan


def detection_faults(query: BoundPattern, settings: Settings, asked: str) -> list[Diagnostic]:
    """Return why rows cannot say when they are certain, which is what is `asked` for."""
    faults = []
    if not isinstance(query.window, TimeWindow):
        hint = "give the window a length of time, such as WITHIN 5 minutes"
        faults.append(Diagnostic(f"{asked} needs a window of time: what comes out is certain when it is over, at the latest", hint=hint))
    if settings.output not in _OUTPUTS:
        faults.append(Diagnostic(f"{asked} is not supported with output={settings.output!r}; supported: {', '.join(_OUTPUTS)}"))
    if settings.algorithm == "brute_force":
        faults.append(Diagnostic(f"{asked} is not supported with algorithm='brute_force'", hint="leave algorithm= out"))
    return faults


def is_reported_in_time(plan: Plan) -> bool:
    """Return whether a match comes out of a stream as soon as it is certain.

    Under ``skip_past_last`` one waits until those that end before it are certain, too.
    """
    return plan.settings.after_match != "skip_past_last" or certainty_of(plan) is Certain.WITH_LAST_EVENT


def waiting_branches(plan: EventPlan) -> frozenset[int]:
    """Return the branches whose matches wait for their window, each as the bits of the variables that it binds."""
    waits = _waits_for_window(plan)
    return frozenset(sum(1 << number for number in branch.positives) for branch in plan.branches if waits(branch))


def _waits_for_window(plan: EventPlan) -> Callable[[PlannedBranch], bool]:
    """Return a function that says whether an event behind a match's last one may change the match of a branch."""
    match plan.query.strategy:
        case "robust_skip_till_next_match":
            return lambda branch: True
        case "skip_till_any_match":
            return _is_open_behind
    return lambda branch: _is_open_behind(branch) or _ends_quantified(plan, branch)


def _is_open_behind(branch: PlannedBranch) -> bool:
    """Return whether the scope of a negation ends with the window."""
    return any(not negation.before for negation in branch.negations)


def _ends_quantified(plan: EventPlan, branch: PlannedBranch) -> bool:
    """Return whether a variable that none follows may bind a number of events that is not fixed."""
    followed = 0
    for before in branch.before:
        followed |= before
    ends = (plan.query.variables[number] for v, number in enumerate(branch.positives) if not followed >> v & 1)
    return any(variable.minimum != variable.maximum for variable in ends)
