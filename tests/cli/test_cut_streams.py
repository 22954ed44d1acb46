"""Arrow streams between commands: one that is cut fails the command that reads it."""

from __future__ import annotations

import errno
import io
import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet
import pytest

from gpu_cep.cli import main
from tests.cli.forms import EVENTS, put_in

QUERY = "PATTERN SEQ(A a, B b) WITHIN 5 RETURN a.v AS low, b.v AS high"
COUNT = ["match", QUERY, "-", "--output", "count", "--json"]


class Stdout(io.BytesIO):
    """A stdout whose n-th write raises, counted from 1."""

    def __init__(self, fault: BaseException, at: int) -> None:
        super().__init__()
        self.fault, self.at, self.writes = fault, at, 0

    def write(self, held: object) -> int:
        self.writes += 1
        if self.writes == self.at:
            raise self.fault
        return super().write(held)  # type: ignore[arg-type]


def batches(table: pa.Table) -> bytes:
    """A stream with a message for each row."""
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=1)
    return sink.getvalue()


def test_a_stream_in_stdin_that_is_cut_is_an_event_error(monkeypatch, capsys):
    held = batches(EVENTS)
    put_in(monkeypatch, held)
    assert main(COUNT) == 0
    assert json.loads(capsys.readouterr().out) == {"count": 2}
    for size in {*range(1, 9), *range(9, len(held), 40), *(len(held) - end for end in (1, 4, 7, 8, 9))}:
        put_in(monkeypatch, held[:size])
        assert main(COUNT) == 3
        out, err = capsys.readouterr()
        assert "cannot read stdin: the Arrow stream ends in the middle" in err
        assert out == ""


def test_an_arrow_file_in_stdin_that_is_cut_is_an_event_error(monkeypatch, capsys):
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, EVENTS.schema) as writer:
        writer.write_table(EVENTS)
    held = sink.getvalue()
    for size in {*range(1, 9), *range(9, len(held), 40), len(held) - 1}:
        put_in(monkeypatch, held[:size])
        assert main(COUNT) == 3
        assert "cannot read stdin" in capsys.readouterr().err


@pytest.mark.parametrize("held", [b"", None])
def test_a_stdin_without_bytes_is_an_event_error(monkeypatch, capsys, held):
    if held is None:
        monkeypatch.setattr(sys, "stdin", None)
    else:
        put_in(monkeypatch, held)
    assert main(COUNT) == 3
    assert "stdin: it is empty" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["match", "validate", "explain"])
def test_every_command_that_reads_a_stream_file_names_it(tmp_path, capsys, command):
    path = tmp_path / "events.arrows"
    path.write_bytes(batches(EVENTS)[:-8])
    assert main([command, QUERY, str(path)]) == 3
    assert f"{path}: the Arrow stream ends in the middle" in capsys.readouterr().err


@pytest.mark.parametrize("fault", [KeyboardInterrupt(), OSError(errno.EIO, "Input/output error"), MemoryError()])
def test_what_a_failing_command_has_written_is_no_whole_stream(monkeypatch, tmp_path, capsys, fault):
    path, at, code = tmp_path / "events.parquet", 0, None
    pa.parquet.write_table(EVENTS, path)
    while code != 0:
        at += 1
        stdout = io.TextIOWrapper(Stdout(fault, at))
        with monkeypatch.context() as patched:
            patched.setattr(sys, "stdout", stdout)
            try:
                code = main(["match", "PATTERN x", str(path), "-o", "-"])
            except (KeyboardInterrupt, MemoryError):
                code = None
        put_in(monkeypatch, stdout.buffer.getvalue())
        read = main(["match", "PATTERN x", "-", "--timestamp", "match_start"])
        assert read == (0 if code == 0 else 3)
    assert at > 5


def test_a_command_that_is_killed_fails_the_one_that_reads(tmp_path):
    """The writer is killed while the pipe is full."""
    gen = [sys.executable, "-m", "gpu_cep.cli", "gen", "hospital", "-n", "200000", "-o", "-"]
    with subprocess.Popen(gen, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as writer:
        assert writer.stdout is not None
        begin = writer.stdout.read(100_000)
        writer.kill()
        held = begin + writer.stdout.read()
    assert writer.returncode < 0
    assert len(begin) == 100_000
    read = [sys.executable, "-m", "gpu_cep.cli", "match", "PATTERN C c", "-", "-o", str(tmp_path / "found.parquet")]
    ran = subprocess.run(read, input=held, capture_output=True, timeout=300)
    assert ran.returncode == 3
    assert b"cannot read stdin: the Arrow stream ends in the middle" in ran.stderr
    assert not list(Path(tmp_path).iterdir())
