"""Choose the events on which a run over a stream depends: those of the keys whose events make something certain."""

from __future__ import annotations

import numpy as np

from gpu_cep.engine.events.key_hashes import are_among
from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.events.own_events import WHOLE, TimeSlice
from gpu_cep.engine.events.stream_keys import encode_keys
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.streaming.event_tags import Role, Tagging, Tags
from gpu_cep.engine.streaming.horizon import Horizon
from gpu_cep.engine.streaming.state import StreamState, Times
from gpu_cep.plan.certainty import Certain

# Events are chosen if they are at most so large a part of all: taking them costs, too.
_MOST = 0.5
# Of fewer events, to look for these keys costs more than to read all.
_FEWEST = 1 << 12


def events_of_keys(
    tagging: Tagging | None, certain: Certain, state: StreamState, horizon: Horizon, columns: EventColumns
) -> Indices | None:  # fmt: skip
    """Return the numbers of the known events whose keys may have a match to report; None if these are most events.

    A match lies in one stream. It begins at an own event, or it is certain with an event that was not known before. If none of these
    may be the first or the last one of a match, the result is empty. Events of a few other keys may be among them, whose hashes are the
    same. `columns` are those of the known events.
    """
    own, role = _deciding(certain, horizon)
    known = horizon.known
    if tagging is None or own is None:
        return None
    places = _places(state.times[:known], own)
    if state.tags is not None and not (state.tags[places] & np.uint32(role)).any():
        return np.empty(0, np.int64)
    if known < _FEWEST:
        return None
    if state.tags is None:
        if places.stop - places.start > _MOST * known:
            return None
        chosen = _of_same_codes(columns, tagging.keys, places)
    else:
        chosen = _of_same_keys(state.tags[:known], state.tags[places], role)
    return chosen if len(chosen) <= _MOST * known else None


def _of_same_codes(columns: EventColumns, keys: tuple[int, ...], places: slice) -> Indices:
    """Return the places of the events with the key of some event at these places, whatever its role: labels of all would cost more."""
    encoded = encode_keys(columns, keys)
    codes = encoded.codes
    assert codes is not None, "there are keys"
    deciding = np.zeros(encoded.count, np.bool_)
    deciding[codes[places]] = True
    return np.flatnonzero(deciding[codes])


def _of_same_keys(tags: Tags, new: Tags, role: Role) -> Indices:
    """Return the places of the events that have the key of a new one that may have the `role`."""
    return np.flatnonzero(are_among(tags, new[new & np.uint32(role) != 0]))


def _places(times: Times, own: TimeSlice) -> slice:
    """Return where the times of a slice lie among ascending times."""
    begin, end = (None if at is None else int(np.searchsorted(times, at)) for at in (own.begin, own.end))
    return slice(*slice(begin, end).indices(len(times)))


def _deciding(certain: Certain, horizon: Horizon) -> tuple[TimeSlice | None, Role]:
    """Return a slice of time in which each reported match has an event, and the role of that event.

    The slice is None if it is not known.
    """
    if isinstance(horizon.own, TimeSlice) and horizon.own != WHOLE:
        return horizon.own, Role.FIRST
    with_event = certain in (Certain.WITH_LAST_EVENT, Certain.AT_DETECTION)
    return horizon.ends if with_event and isinstance(horizon.ends, TimeSlice) and horizon.ends != WHOLE else None, Role.LAST
