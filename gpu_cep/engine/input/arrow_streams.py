"""Read Arrow streams that are whole: one without its end marker was cut, and is an error.

Arrow's format ends a stream by a marker, or by closing the pipe. The second looks as if its writer
had failed, so only the first is taken here. What follows the marker is not part of the stream:
zeros are padding, and anything else is an error.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.ipc

from gpu_cep.errors import EventError

CONTINUATION = b"\xff\xff\xff\xff"  # the first bytes of each message; streams from before Arrow 0.15 have none
_END = bytes(4)  # a message of length 0


def read_stream(held: pa.Buffer, name: str) -> pa.Table:
    """Return the table that an Arrow stream holds; `name` is the source that errors name.

    Raises
    ------
    EventError
        The stream ends in the middle, or something follows its end.
    pyarrow.ArrowInvalid, OSError
        It is no stream, or damaged.
    """
    end = _end_of_stream(held, name)
    if np.frombuffer(held, np.uint8)[end:].any():
        raise EventError(
            f"events: cannot read {name}: {held.size - end:,} bytes follow the end of the Arrow stream; "
            "expected one stream: write the tables into one, or each to a file of its own"
        )
    return pa.ipc.open_stream(held).read_all()


def _end_of_stream(held: pa.Buffer, name: str) -> int:
    """Return the number of bytes up to the end marker and with it; of the messages only the heads are read."""
    source = pa.BufferReader(held)
    messages, number, begin = pa.ipc.MessageReader.open_stream(source), 0, 0
    try:
        while True:
            messages.read_next_message()
            number, begin = number + 1, source.tell()
    except StopIteration:
        # the reader takes the end of the bytes for the end of the stream, and a marker of either format
        view = memoryview(held).cast("B")
        marker = CONTINUATION + _END if view[: len(CONTINUATION)] == CONTINUATION else _END
        if view[begin : begin + len(marker)] == marker:
            return begin + len(marker)
        raise _cut(name, number) from None
    except (pa.ArrowInvalid, OSError) as fault:
        if source.tell() < held.size:
            raise
        raise _cut(name, number) from fault


def _cut(name: str, number: int) -> EventError:
    return EventError(
        f"events: cannot read {name}: the Arrow stream ends in the middle, after {number:,} whole message{'' if number == 1 else 's'}; "
        "expected its end marker: what wrote it failed or was stopped, so write it again"
    )
