"""What the oracle and the engine answer to a random case."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import assume

import gpu_cep
from gpu_cep.errors import UnsupportedError
from gpu_cep.oracle import events
from gpu_cep.oracle.events import Match
from gpu_cep.oracle.options import EventOptions
from tests.drawn.queries import Case
from tests.event_queries import event_query

LIMIT = 2_000


def expected(case: Case) -> list[Match]:
    """The oracle's matches; cases that are too much work for it are left out."""
    try:
        return events.matches(event_query(case.text), case.events, EventOptions(**case.options), limit=LIMIT)
    except UnsupportedError:
        assume(False)
        raise


def answered(case: Case, **options: Any) -> pa.Table:
    """What the engine answers; cases with functions that it computes for events but not for aggregates are left out."""
    try:
        return gpu_cep.match(case.events, case.text, **case.options, **options)
    except UnsupportedError as refusal:
        assume("() of these arguments is not supported" not in str(refusal))
        raise
