"""Count the events that satisfy the properties of each variable, to explain why there are no matches."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.phase_one.label_events import label_events
from gpu_cep.plan.event_plan import Plan
from gpu_cep_kernels.compile.launch import threads_of
from gpu_cep_kernels.rules.scalars import LABEL_BITS


def events_of_variables(plan: Plan, columns: EventColumns, threads: int | None) -> dict[str, int]:
    """Return, by name, how many events satisfy the properties of each variable of `plan`."""
    labelled = label_events(plan, columns, threads_of(threads))
    names = [variable.name for variable in plan.query.variables]
    return {name: sum(_count_bit(part[v // LABEL_BITS], v % LABEL_BITS) for part in labelled.labels) for v, name in enumerate(names)}


def _count_bit(words: npt.NDArray[np.unsignedinteger[Any]], bit: int) -> int:
    """Count the words that have a bit."""
    return int(np.count_nonzero(words & words.dtype.type(1 << bit)))
