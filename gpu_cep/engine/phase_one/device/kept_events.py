"""Hold the events of chunks that are kept on a device, until they are ordered."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from gpu_cep_kernels.device.interface import Array, HostArray

# The keys of no event are greater than every one, and less than every one.
_LEAST, _GREATEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class KeySpan:
    """The least and the greatest key of some events, and whether some key is less than one before it.

    Of no events the least is greater than the greatest.
    """

    least: int
    greatest: int
    falls: bool

    def followed_by(self, other: KeySpan) -> KeySpan:
        """Return the span of these events with others behind them."""
        falls = self.falls or other.falls or (other.least <= other.greatest and other.least < self.greatest)
        return KeySpan(min(self.least, other.least), max(self.greatest, other.greatest), falls)


def span_of_groups(groups: HostArray) -> KeySpan:
    """Return the span of all keys, given the spans of groups of tiles; a group without events has the span of no keys."""
    _, least, greatest, falls = groups
    before = np.maximum.accumulate(greatest)[:-1]
    falling = falls.any() or (least[1:] < before).any()
    return KeySpan(int(least.min(initial=_GREATEST)), int(greatest.max(initial=_LEAST)), bool(falling))


@dataclass(frozen=True, slots=True)
class KeptKey:
    """A stream key of the kept events: integers in the order of the key's values, or codes of text.

    `present` is 0 where the key is NULL; None if it never is. `span` is None if it is not known.
    """

    values: Array
    present: Array | None
    span: KeySpan | None


@dataclass(frozen=True, slots=True)
class KeptEvents:
    """The kept events of one chunk, or of several.

    `rows` are int32, `labels` [word, event], and `times` int64 or float64.
    """

    rows: Array
    labels: Array
    times: Array
    keys: tuple[KeptKey, ...]


def count_kept(parts: Sequence[KeptEvents]) -> int:
    """Return the number of events of the parts."""
    return sum(part.rows.size for part in parts)


def concatenate_kept(xp: Any, parts: Sequence[KeptEvents]) -> KeptEvents:
    """Return the events of several parts, one part after the other."""
    if len(parts) == 1:
        return parts[0]
    columns = [[part.keys[number] for part in parts] for number in range(len(parts[0].keys))]
    return KeptEvents(
        rows=xp.concatenate([part.rows for part in parts]),
        labels=xp.concatenate([part.labels for part in parts], axis=1),
        times=xp.concatenate([part.times for part in parts]),
        keys=tuple(_concatenate_keys(xp, keys) for keys in columns),
    )


def _concatenate_keys(xp: Any, keys: Sequence[KeptKey]) -> KeptKey:
    """Return a key of several parts."""
    spans = [key.span for key in keys if key.span is not None]
    span = reduce(KeySpan.followed_by, spans) if len(spans) == len(keys) else None
    return KeptKey(xp.concatenate([key.values for key in keys]), _concatenate_masks(xp, keys), span)


def _concatenate_masks(xp: Any, keys: Iterable[KeptKey]) -> Array | None:
    """Return the masks as one; None if there are none."""
    masks = [key.present for key in keys]
    return None if masks[0] is None else xp.concatenate(masks)
