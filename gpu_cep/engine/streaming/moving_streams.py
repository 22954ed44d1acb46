"""Choose the events on which a run over a stream depends: those of the keys whose events make something certain."""

from __future__ import annotations

import numpy as np

from gpu_cep.analysis.bound import TimeWindow
from gpu_cep.analysis.computed_columns import ComputedCount
from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.events.own_events import WHOLE, TimeSlice
from gpu_cep.engine.events.stream_keys import encode_keys
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.streaming.horizon import Horizon
from gpu_cep.engine.streaming.state import Times
from gpu_cep.plan.certainty import Certain
from gpu_cep.plan.event_plan import Plan

# Events are chosen if they are at most so large a part of all: taking them costs, too.
_MOST = 0.5
# Of fewer events, to look for these keys costs more than to read all.
_FEWEST = 1 << 14


def events_of_keys(plan: Plan, certain: Certain, columns: EventColumns, times: Times, horizon: Horizon) -> Indices | None:
    """Return the numbers of the events whose keys may have a match that is reported; None if these are most of them, or all.

    A match lies in one stream. It begins at an own event, or it is certain with an event that was not known before.
    `columns` and `times` are those of the events that are known.
    """
    own = _deciding(certain, horizon)
    if own is None or len(times) < _FEWEST or not _lies_in_one_stream(plan):
        return None
    keys = encode_keys(columns, plan.stream_keys)
    codes = keys.codes
    assert codes is not None, "there are keys"
    deciding = np.zeros(keys.count, np.bool_)
    deciding[codes[_places(times, own)]] = True
    if np.count_nonzero(deciding) > _MOST * keys.count:
        return None
    chosen = np.flatnonzero(deciding[codes])
    return chosen if len(chosen) <= _MOST * len(codes) else None


def _places(times: Times, own: TimeSlice) -> slice:
    """Return where the times of a slice lie among ascending times."""
    begin, end = (None if at is None else int(np.searchsorted(times, at)) for at in (own.begin, own.end))
    return slice(begin, end)


def _lies_in_one_stream(plan: Plan) -> bool:
    """Return whether a match depends on nothing but the events of its stream, whose keys are columns of the events."""
    query = plan.query
    plain = bool(plan.stream_keys) and all(key < len(query.schema.attributes) for key in plan.stream_keys)
    # a number of events, and a running count, may be those of a wider stream
    return plain and isinstance(query.window, TimeWindow) and not any(isinstance(each, ComputedCount) for each in query.computed)


def _deciding(certain: Certain, horizon: Horizon) -> TimeSlice | None:
    """Return the times of events of which one is in each stream with a match that is reported; None if that is not known."""
    if isinstance(horizon.own, TimeSlice) and horizon.own != WHOLE:
        return horizon.own
    with_event = certain in (Certain.WITH_LAST_EVENT, Certain.AT_DETECTION)
    return horizon.ends if with_event and isinstance(horizon.ends, TimeSlice) and horizon.ends != WHOLE else None

