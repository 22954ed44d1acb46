"""Put the events of negations in buckets by the key that they must have in common with a match.

In ``SEQ(Order o, NOT(Paid p)) WHERE p.order = o.order`` a match then looks at the payments
of its order, and not at all payments in its window.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.lowering.lists import offsets
from gpu_cep.engine.lowering.pattern_tables import MatcherTables
from gpu_cep_kernels.automaton.jump_indexes import value_buckets
from gpu_cep_kernels.rules.scalars import EQ
from gpu_cep_kernels.rules.tables import BY_INTS, ColumnBank, Ints, NegationKeys

# Up to so many events of a negation in a window are looked at in less time than buckets take; windows that are looked at to tell.
_FEW, _SAMPLED = 64, 16
# The last event that has a number of 32 bits, as events in buckets have.
_LAST_NUMBERED = np.iinfo(np.int32).max


class Windows(NamedTuple):
    """The clock of all ordered events, the length of windows on it, and the offsets of streams."""

    clock: npt.NDArray[np.generic]
    length: np.generic
    streams: Indices


class _Key(NamedTuple):
    """What a negated event has in common with a match: its int64 column `own` equals `column` of the event of `variable`."""

    own: int
    variable: int
    column: int


def negation_keys(
    listed: Sequence[Indices], places: Indices, tables: MatcherTables, bank: ColumnBank, windows: Windows
) -> NegationKeys:  # fmt: skip
    """Return the events of each negation in buckets; `listed` are the events of each one, and `places` those of all in this order."""
    found = [_key_of(negation.variable, tables) for negation in tables.branch.negations]
    keys = [key if key is not None and _pay_off(events, windows) else None for key, events in zip(found, listed, strict=True)]
    buckets = [_buckets(events, key, bank) for events, key in zip(listed, keys, strict=True)]
    return NegationKeys(
        variable=np.array([-1 if key is None else key.variable for key in keys], np.int64),
        column=np.array([0 if key is None else key.column for key in keys], np.int64),
        first=offsets([len(sizes) for sizes, _ in buckets]),
        border=offsets(np.concatenate([sizes for sizes, _ in buckets])),
        places=np.concatenate([events for _, events in buckets]) if any(keys) else places,
    )


def _pay_off(events: Indices, windows: Windows) -> bool:
    """Return whether buckets of a negation's events save time; events are in stream order."""
    return len(events) > _FEW and bool(events[-1] <= _LAST_NUMBERED) and _in_a_window(events, windows) > _FEW


def _in_a_window(events: Indices, windows: Windows) -> float:
    """Return how many of the events are in a window, as the mean of some windows that begin at one of them."""
    sampled = np.linspace(0, len(events) - 1, _SAMPLED).astype(np.int64)
    ends = windows.streams[np.searchsorted(windows.streams, events[sampled], "right")]
    behind = [_window_end(int(event), int(end), windows) for event, end in zip(events[sampled], ends, strict=True)]
    return float(np.mean(np.searchsorted(events, behind) - sampled))


def _window_end(event: int, end: int, windows: Windows) -> int:
    """Return the place behind the last event of the window that begins at `event`, whose stream ends before `end`."""
    own = windows.clock[event:end]
    # Python's integers do not overflow
    latest = min(own[0].item() + windows.length.item(), own[-1].item())
    return event + int(np.searchsorted(own, latest, "right"))


def _key_of(negated: int, tables: MatcherTables) -> _Key | None:
    """Return the key that a condition demands of the events of a negated variable; None if none does."""
    table, positives = tables.conditions, len(tables.branch.before)
    for c in np.flatnonzero((table.means == BY_INTS) & (table.comparison == EQ)).tolist():
        left = int(table.left_variable[c]), int(table.left_column[c])
        right = int(table.right_variable[c]), int(table.right_column[c])
        for (own, column), other in ((left, right), (right, left)):
            if own == negated and 0 <= other[0] < positives:
                return _Key(column, *other)
    return None


def _buckets(events: Indices, key: _Key | None, bank: ColumnBank) -> tuple[Ints, Indices]:
    """Return how many events each bucket has, and the events bucket by bucket."""
    if key is None:
        return np.array([len(events)], np.int64), events
    border, grouped = value_buckets(events.astype(np.int32), bank, 0, key.own, floating=False)
    return np.diff(border), grouped.astype(np.int64)
