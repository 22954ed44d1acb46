"""Events that cuDF holds, or reads, stay on the device: little travels there and back, whatever the number of events."""

from __future__ import annotations

import sys

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import gpu_cep as cep
from benchmarks.gpu.counting import CountingDevice
from tests.gpu import cudf_stand_in
from tests.requirements import require_modules

ROWS = 20_000
TYPES = np.array(["C", "D", "E", "F"])[np.arange(ROWS) % 4]
TYPES[[100, 5_000]], TYPES[[107, 5_003]] = "A", "B"
TABLE = pa.table(
    {
        "ts": pa.array(np.arange(ROWS)).cast(pa.timestamp("us")),
        "type": TYPES,
        "k": pa.array([None if e % 9 == 3 else 1 for e in range(ROWS)], pa.int32()),
        "x": np.arange(ROWS) / 3,
        "s": [f"text {e % 50}" for e in range(ROWS)],
    }
)
PATTERN = "PATTERN SEQ(A a, B b) WHERE a.x < b.x AND b.k = 1 WITHIN 20 microseconds"


@pytest.fixture
def device(monkeypatch):
    require_modules("cupy")
    found = CountingDevice()
    monkeypatch.setattr("gpu_cep_kernels.device.selection._find_device", lambda: found)
    monkeypatch.setitem(sys.modules, "cudf", cudf_stand_in.module())
    monkeypatch.setitem(sys.modules, "pylibcudf", cudf_stand_in.pylibcudf_module(found, []))
    return found


def matched(device, events, output):
    """The result over events on the device as rows; no more has travelled than a bit for each event."""
    device.up = device.down = 0
    found = cep.match(events, PATTERN, engine="gpu", output=output, result="cudf").table.to_pylist()
    assert 0 < device.up + device.down < ROWS / 8
    return found


@pytest.mark.parametrize("output", ["matches", "events", "indices", "count"])
def test_little_travels(device, output, tmp_path):
    expected = cep.match(TABLE, PATTERN, engine="cpu", output=output).to_pylist()
    assert expected
    # the values of columns do not travel, but for the rows of matches
    frame = cudf_stand_in.frame(device, TABLE, offset=5)
    assert matched(device, frame, output) == expected
    assert sum(series.downloads for series in frame.series.values()) == 0
    assert max((rows for series in frame.series.values() for rows in series.taken), default=0) <= 4
    parquet.write_table(TABLE, tmp_path / "events.parquet", row_group_size=1_000, use_dictionary=False)
    assert matched(device, cep.gpu_files(tmp_path / "events.parquet"), output) == expected
