"""Ctrl-C ends a command while it matches: soon, with its exit code, and without a traceback or half a file."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

# Says when matching begins, which is when a signal is sent.
COMMAND = """
import sys
from gpu_cep.cli import main
from gpu_cep.engine import answers

answer = answers.answer

def announced(*given, **named):
    print("matching", file=sys.stderr, flush=True)
    return answer(*given, **named)

answers.answer = announced
sys.exit(main(sys.argv[1:]))
"""
SIZE = 1_000_000
TIES, ROWS = "PATTERN AND(A a, B b) WHERE a.x < b.x WITHIN 5", "PATTERN SEQ(a, b+) WITHIN 800000"
SOON = 200.0  # seconds; two on a machine with nothing else to do, and hours without the signal


@pytest.mark.parametrize(("query", "threads"), [(TIES, "2"), (ROWS, "1")], ids=["ties", "rows"])
def test_a_command_that_is_interrupted_ends_soon(tmp_path: Path, query: str, threads: str) -> None:
    rng = np.random.default_rng(0)
    times = np.zeros(SIZE, np.int64) if query == TIES else np.arange(SIZE)
    kinds = np.array(["A", "B"])[rng.integers(0, 2, SIZE)]
    pq.write_table(pa.table({"ts": times, "type": kinds, "x": rng.random(SIZE)}), tmp_path / "events.parquet")
    words = ["match", query, str(tmp_path / "events.parquet"), "-o", str(tmp_path / "found.parquet"), "--threads", threads]
    with subprocess.Popen([sys.executable, "-c", COMMAND, *words], stderr=subprocess.PIPE, text=True) as child:
        assert child.stderr is not None
        assert "matching\n" in iter(child.stderr.readline, "")
        time.sleep(0.5)
        child.send_signal(signal.SIGINT)
        sent = time.monotonic()
        told = child.stderr.read()
    assert time.monotonic() - sent < SOON
    assert (child.returncode, told) == (130, "")
    assert [path.name for path in tmp_path.iterdir()] == ["events.parquet"]
