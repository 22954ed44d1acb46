"""Name the condition whose computation failed in a window."""

from __future__ import annotations

from gpu_cep.engine.accounting.match_budget import WindowError
from gpu_cep.engine.lowering.programs import WIDER, failure
from gpu_cep.errors import EventError
from gpu_cep.plan.event_plan import PlannedCondition


class ConditionOverflow(WindowError):
    """A condition overflows int64; `start` is the ordered event at which the window starts."""

    error = EventError
    remedy = WIDER

    def __init__(self, condition: PlannedCondition, start: int) -> None:
        super().__init__(start, f"{failure(condition.program)} in {condition.text}")
