"""Number the streams of the kept events on a device: a code for each combination of keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu_cep.analysis.types import Kind
from gpu_cep.engine.events.stream_keys import RANKED, combine_codes, shift_codes, text_ranks
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.phase_one.device.kept_events import KeptEvents, KeptKey
from gpu_cep.plan.event_plan import Plan
from gpu_cep_kernels.device.interface import Array, Device
from gpu_cep_kernels.device.primitives import dense_codes
from gpu_cep_kernels.phase_one.label_tiles import shift_keys

# Codes of several key columns are combined by multiplication up to here, and made dense from there on.
_LARGEST_CODE = 2**31
# So many codes are of 16 bits, which are sorted in half the passes.
_NARROW = 2**16


@dataclass(frozen=True, slots=True)
class StreamCodes:
    """The stream of each event, as a code in [0, count); None if all events are one stream.

    `ordered`: codes ascend with the keys. `falls`: whether some code is less than one before it;
    None if that is not known.
    """

    codes: Array | None
    count: int
    ordered: bool
    falls: bool | None = None

    def narrow(self, xp: Any) -> Array:
        """Return the codes in the narrowest type that events are sorted by; empty if all events are one stream."""
        if self.codes is None:
            return xp.empty(0, np.int32)
        return self.codes.astype(_code_type(self.count), copy=False)


def _code_type(count: int) -> npt.DTypeLike:
    """Return the type of so many codes."""
    return np.uint16 if count <= _NARROW else np.int32


def encode_streams(plan: Plan, columns: EventColumns, kept: KeptEvents, device: Device, most_ranked: int) -> StreamCodes:
    """Return a code for each combination of the kept events' keys.

    NULLs are one key value, and so are NaNs. Text of up to `most_ranked` distinct values gets codes
    in its order.
    """
    encoded = StreamCodes(None, 1, ordered=True, falls=False)
    for column, key in zip(plan.stream_keys, kept.keys, strict=True):
        encoded = _combine_codes(device.xp, encoded, _encode_key(columns, column, key, device, min(RANKED, most_ranked)))
    return encoded


def _encode_key(columns: EventColumns, column: int, key: KeptKey, device: Device, most_ranked: int) -> StreamCodes:
    """Return codes for one key."""
    if columns.type(column).kind is not Kind.STRING:
        return _integer_codes(device, key)
    values = columns.texts.values(column)
    if len(values) >= most_ranked:
        return StreamCodes(key.values, len(values) + 1, ordered=False)
    return StreamCodes(device.upload(text_ranks(values))[key.values], len(values) + 1, ordered=True)


def _integer_codes(device: Device, key: KeptKey) -> StreamCodes:
    """Return codes in the order of the values, NULL first.

    They are distances from the least value if these are small, else ranks.
    """
    xp, values, nulls = device.xp, key.values, None if key.present is None else key.present == 0
    if not values.size:
        return StreamCodes(values, 1, ordered=True)
    falls = None if key.span is None else key.span.falls
    if nulls is not None:
        # whatever stands at a NULL must not widen the range: the first value that is present takes its place
        values = xp.where(nulls, values[xp.argmax(key.present)], values)
    low, high = (int(values.min()), int(values.max())) if key.span is None else (key.span.least, key.span.greatest)
    if high - low + 1 >= _LARGEST_CODE:
        values, count = dense_codes(xp, values)
        return StreamCodes(*shift_codes(xp, values, 0, count - 1, nulls), ordered=True, falls=falls)
    if nulls is None:
        return StreamCodes(_distances(device, values, low, high - low + 1), high - low + 1, ordered=True, falls=falls)
    return StreamCodes(*shift_codes(xp, values.astype(xp.int64), low, high, nulls), ordered=True, falls=falls)


def _distances(device: Device, values: Array, least: int, count: int) -> Array:
    """Return the distances of `values` from the least of them, of which there are `count`, in a narrow type."""
    if least == 0 and values.dtype == _code_type(count):
        return values
    codes = device.xp.empty(values.size, _code_type(count))
    device.launch(shift_keys, values.size, values, least, codes)
    return codes


def _combine_codes(xp: Any, left: StreamCodes, right: StreamCodes) -> StreamCodes:
    """Return a code for each pair of two keys' codes."""
    if left.codes is None or right.codes is None:
        return right if left.codes is None else left
    codes, count, _ = combine_codes(xp, left.codes, right.codes, left.count, right.count, _LARGEST_CODE)
    return StreamCodes(codes, count, left.ordered and right.ordered)
