"""Arrow streams: whole ones read, and those cut anywhere are errors that name their source."""

from __future__ import annotations

import io
import os
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pytest

from gpu_cep.engine.input.arrow_streams import read_stream
from gpu_cep.engine.input.read_tables import read_events
from gpu_cep.errors import EventError

MARKER = b"\xff\xff\xff\xff\0\0\0\0"
# the rows end like a stream: the last bytes of a message are those of a marker
TABLE = pa.table(
    {
        "name": pa.chunked_array([pa.array(["p", "q", "p"]).dictionary_encode()] * 4),
        "text": pa.chunked_array([["x", None, "z"]] * 4),
        "v": pa.chunked_array([pa.array(np.tile(np.array([-1, 0], np.int32), 8)[:6].view(np.int64))] * 4),
    }
)


def stream(table: pa.Table = TABLE, **options: object) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table)
    return sink.getvalue()


def borders(held: bytes) -> list[int]:
    """The places between messages, the begin among them; the last is before the marker."""
    source = pa.BufferReader(held)
    messages, places = pa.ipc.MessageReader.open_stream(source), [0]
    for _ in messages:
        places.append(source.tell())
    return places


def read(held: bytes) -> pa.Table:
    return read_stream(pa.py_buffer(held), "the wire")


FORMS = {
    "plain": stream(),
    "compressed": stream(compression="lz4"),
    "deltas": stream(emit_dictionary_deltas=True),
    "before 0.15": stream(use_legacy_format=True),
    "no rows": stream(TABLE.slice(0, 0)),
    "no messages": stream(TABLE.slice(0, 0).select(["v"])),
}


@pytest.mark.parametrize("held", FORMS.values(), ids=FORMS)
def test_a_whole_stream_reads(held):
    assert read(held).equals(pa.ipc.open_stream(held).read_all())


@pytest.mark.parametrize("held", FORMS.values(), ids=FORMS)
def test_a_stream_cut_at_any_byte_is_an_error(held):
    assert len(borders(held)) > 1
    for size in range(len(held)):
        with pytest.raises(EventError, match="cannot read the wire: the Arrow stream ends in the middle") as raised:
            read(held[:size])
        whole = sum(border <= size for border in borders(held)[1:])
        assert f"after {whole:,} whole message{'' if whole == 1 else 's'}; " in str(raised.value)


@pytest.mark.parametrize("held", FORMS.values(), ids=FORMS)
def test_zeros_after_the_end_are_padding_and_anything_else_is_an_error(held):
    assert read(held + bytes(100)).equals(read(held))
    for more in (held, b"\n", bytes(7) + b"\1"):
        with pytest.raises(EventError, match=f"the wire: {len(more):,} bytes follow the end of the Arrow stream"):
            read(held + more)


def test_zeros_do_not_end_a_stream_that_has_markers():
    """A crash may leave zeros where a file had no bytes yet; to the old format they are a marker."""
    held = FORMS["plain"]
    for border in borders(held)[1:]:
        with pytest.raises(EventError, match="ends in the middle"):
            read(held[:border] + bytes(64))


def test_a_damaged_stream_is_not_said_to_be_cut():
    held = bytearray(FORMS["plain"])
    held[40:80] = os.urandom(40)
    with pytest.raises((pa.ArrowInvalid, OSError)):
        read(bytes(held))


def test_a_file_is_named(tmp_path):
    path = tmp_path / "events.arrows"
    held = FORMS["plain"]
    path.write_bytes(held)
    assert read_events(path).num_rows == 12
    for size in (0, 3, *borders(held), len(held) - 1):
        path.write_bytes(held[:size])
        with pytest.raises(EventError, match=r"events\.arrows: the Arrow stream ends in the middle"):
            read_events(str(path))


def feed(path: Path, held: bytes) -> threading.Thread:
    feeder = threading.Thread(target=path.write_bytes, args=(held,))
    feeder.start()
    return feeder


def test_a_named_pipe_is_read(tmp_path):
    path = tmp_path / "events.arrows"
    os.mkfifo(path)
    feeder = feed(path, FORMS["plain"])
    assert read_events(path).num_rows == 12
    feeder.join()
    feeder = feed(path, FORMS["plain"][: -len(MARKER)])
    with pytest.raises(EventError, match=r"events\.arrows: the Arrow stream ends in the middle"):
        read_events(path)
    feeder.join()


def test_a_file_with_a_footer_cut_at_any_byte_is_an_error(tmp_path):
    path, sink = tmp_path / "events.arrow", io.BytesIO()
    with pa.ipc.new_file(sink, TABLE.schema) as writer:
        writer.write_table(TABLE)
    held = sink.getvalue()
    for size in range(len(held)):
        path.write_bytes(held[:size])
        with pytest.raises(EventError, match=r"cannot read .*events\.arrow"):
            read_events(path)
