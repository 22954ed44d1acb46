"""Whatever step of spilling fails, the error names the folder, no file stays open, and the next run gives all events."""

from __future__ import annotations

import os
import re
import resource
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from gpu_cep.errors import CepError
from gpu_cep_spark.tasks.spill import Room, whole_streams
from tests.faults.steps import each_step, failing_writes, full_disk

KEYS = 5
EVENTS = pa.table({"ts": np.arange(200), "k": np.arange(200) % KEYS})


def spilled(folder: Path) -> list[int]:
    """The times of events that are spilled, and come back stream by stream."""
    room = Room(1_000, str(folder), lambda table: table["k"].to_numpy().astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15))
    return [ts for part in whole_streams(EVENTS.to_batches(max_chunksize=100), room) for ts in part["ts"].to_pylist()]


def test_every_step(tmp_path):
    whole = spilled(tmp_path)
    assert sorted(whole) == EVENTS["ts"].to_pylist()
    for steps in each_step(full_disk):
        with failing_writes(tmp_path, steps):
            came = told_while_spilling(tmp_path)
        assert came == whole or re.match(f"events .* cannot wait in {tmp_path}: No space left on device; ", str(came))
        assert steps.reached == isinstance(came, str) or steps.taken[-1] == "close"
        assert os.listdir(tmp_path) == []
        assert not any(place.startswith(str(tmp_path)) for place in open_files())
        assert spilled(tmp_path) == whole


def open_files() -> Iterator[str]:
    """Where the files are that this process has open, those that have been removed, too."""
    for number in os.listdir("/proc/self/fd"):
        # the one that lists the folder is closed by now, and other threads may close theirs
        with suppress(FileNotFoundError):
            yield os.readlink(f"/proc/self/fd/{number}")


def told_while_spilling(folder: Path) -> list[int] | str:
    """What comes back, or the message of the error."""
    try:
        return spilled(folder)
    except CepError as fault:
        return str(fault)


def test_a_folder_that_takes_no_more(tmp_path):
    """The system itself refuses to write on, as on a full disk; what was not written does not come back as less."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500, hard))
    try:
        with pytest.raises(CepError, match="File too large"):
            spilled(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert len(spilled(tmp_path)) == EVENTS.num_rows
