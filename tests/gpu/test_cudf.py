"""cuDF's DataFrames as events and as results, with a stand-in for cuDF."""

from __future__ import annotations

import re
import sys

import numpy as np
import pyarrow as pa
import pytest

import gpu_cep
from gpu_cep.engine.input.device.cudf import to_cudf
from gpu_cep.engine.input.read_tables import read_events
from gpu_cep.engine.output.cudf_types import in_types_of_cudf
from gpu_cep.errors import EngineUnavailable, EventError, UnsupportedError
from gpu_cep_kernels.device.interface import DeviceUnavailable
from tests.gpu import cudf_stand_in
from tests.gpu.foreign import Foreign, strict_if_simulated

ROWS = 300
WORDS = ["x", None, "y", "xy", ""]
TABLE = pa.table(
    {
        "ts": pa.array(np.arange(ROWS) * 7 % ROWS).cast(pa.timestamp("ns")),
        "type": ["A" if e % 20 == 0 else "B" if e % 20 == 9 else "C" for e in range(ROWS)],
        "s": [WORDS[e // 7 % 5] for e in range(ROWS)],
        "c": pa.array([WORDS[e // 11 % 5] for e in range(ROWS)]).dictionary_encode(),
        "x": pa.array([None if e % 7 == 0 else e * 31 % 17 for e in range(ROWS)], pa.int16()),
        "f": [e // 10 % 4 < 2 for e in range(ROWS)],
        "n": pa.nulls(ROWS, pa.string()),
    }
)
QUERIES = [
    ("PATTERN SEQ(A a, B b) WHERE a.s < b.c AND b.x > 3 WITHIN 90 ns", {}),
    ("PATTERN SEQ(A a, B b+) WHERE a.n IS NULL AND b.s LIKE 'x%' WITHIN 90 ns RETURN a.c, b.s AS s, max(b.c) AS m", {"partition_by": "f"}),
    ("PATTERN SEQ(a, b) WHERE [c] AND a.type = 'A' AND b.type = 'B' WITHIN 300 ns", {"partition_by": "s", "columns": ["x", "s", "c"]}),
    ("PATTERN SEQ(A a, B b) WITHIN 300 ns", {"output": "count", "partition_by": ["n", "c"]}),
    ("PATTERN SEQ(A a, B b) WITHIN 9 ns", {"order_by": "s", "output": "events", "ties": "position"}),
]
TEXT_TYPES = [cudf_stand_in.OBJECT, cudf_stand_in.StringDtype()]


@pytest.fixture
def device(device, monkeypatch):
    found = strict_if_simulated(device)
    monkeypatch.setattr("gpu_cep_kernels.device.selection._find_device", lambda: found)
    monkeypatch.setitem(sys.modules, "cudf", cudf_stand_in.module())
    return found


@pytest.mark.parametrize(("masked", "offset"), [(False, 0), (True, 0), (True, 13)], ids=["coded", "masked", "sliced"])
@pytest.mark.parametrize("text", TEXT_TYPES, ids=["object", "str"])
def test_schema_and_values(device, text, masked, offset):
    found = read_events(cudf_stand_in.frame(device, TABLE, text, masked, offset))
    assert found.schema == TABLE.schema
    assert found.to_arrow().equals(TABLE)


@pytest.mark.parametrize("engine", ["gpu", "cpu"])
@pytest.mark.parametrize(("pattern", "options"), QUERIES)
def test_same_matches(device, pattern, options, engine):
    frame = cudf_stand_in.frame(device, TABLE, offset=5)
    found = gpu_cep.match(frame, pattern, engine=engine, **options)
    expected = gpu_cep.match(TABLE, pattern, engine="cpu", **options)
    assert found.schema == expected.schema
    assert found.num_rows > 0
    assert found.to_pylist() == expected.to_pylist()
    assert sum(series.downloads for series in frame.series.values()) == 0
    assert max((rows for series in frame.series.values() for rows in series.taken), default=0) < ROWS / 2


def test_columns_of_a_frame_beside_arrays(device):
    frame = cudf_stand_in.frame(device, TABLE)
    named = {"ts": frame["ts"], "type": frame["type"], "x": Foreign(device, np.arange(ROWS)), "c": TABLE["c"]}
    pattern = "PATTERN SEQ(A a, B b) WHERE a.c = b.c OR a.x < b.x WITHIN 30 ns"
    expected = pa.table({"ts": TABLE["ts"], "type": TABLE["type"], "x": np.arange(ROWS), "c": TABLE["c"]})
    found = gpu_cep.match(named, pattern, engine="gpu")
    assert found.num_rows > 0
    assert found.equals(gpu_cep.match(expected, pattern, engine="cpu"))


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pa.array([0], pa.timestamp("us", "UTC")), r"a cudf column of datetime64\[us, UTC\] cannot be read on the device; supported are"),
        (pa.array([1]).cast(pa.decimal128(19)), r"a cudf column of decimal128"),
        (pa.array([[1]]), r"a cudf column of list"),
        (pa.array([{"x": 1}]), r"a cudf column of struct"),
        (pa.array([1]).dictionary_encode(), r"a cudf column of category.*events.to_arrow\(\) brings the table to the host"),
    ],
)
def test_columns_that_cannot_be_read(device, column, message):
    with pytest.raises(EventError, match=f"column 'c': {message}"):
        read_events(cudf_stand_in.frame(device, pa.table({"ts": [1], "c": column})))


def test_frames_where_kernels_cannot_run(device, monkeypatch):
    monkeypatch.setattr("gpu_cep_kernels.device.selection._find_device", lambda: DeviceUnavailable("numba-cuda is not installed"))
    assert read_events(cudf_stand_in.frame(device, TABLE)).equals(TABLE)


@pytest.mark.parametrize("output", ["matches", "events"])
def test_results(device, output):
    pattern = "PATTERN SEQ(A a, C c+) WITHIN 3 ns"
    found = gpu_cep.match(TABLE, pattern, output=output, result="cudf")
    assert isinstance(found, cudf_stand_in.DataFrame)
    assert found.table.num_rows > 0
    assert found.table.to_pylist() == gpu_cep.match(TABLE, pattern, output=output).to_pylist()
    coded = [field.name for field in found.table.schema if pa.types.is_dictionary(field.type)]
    assert coded == (["c"] if output == "events" else [])


CODED = [pa.array(["x", None], pa.string()).dictionary_encode(), pa.array(["y", "x"]).dictionary_encode()]
TWICE = pa.DictionaryArray.from_arrays(pa.array([2, 0, 3], pa.int32()), ["x", "y", "x", "z"])


@pytest.mark.parametrize("chunks", [CODED, [TWICE], [TWICE, *CODED], []], ids=["unlike", "twice", "both", "none"])
def test_codes_of_results(device, chunks):
    table = pa.table({"c": pa.chunked_array(chunks, pa.dictionary(pa.int32(), pa.string()))})
    assert to_cudf(in_types_of_cudf(table)).table.to_pylist() == table.to_pylist()


@pytest.mark.parametrize("kind", [pa.time64("us"), pa.list_(pa.binary()), pa.decimal256(40), pa.large_list(pa.int8())])
def test_results_of_which_cudf_has_no_type(kind):
    message = re.escape(f"result='cudf': cuDF has no type for column 'c' ({kind})")
    with pytest.raises(UnsupportedError, match=message):
        in_types_of_cudf(pa.table({"c": pa.nulls(1, kind)}))


def test_results_without_cudf(device, monkeypatch):
    monkeypatch.setitem(sys.modules, "cudf", None)
    with pytest.raises(EngineUnavailable, match=r"result='cudf' is not available: .*cudf.*pip install 'gpu_cep\[rapids\]'"):
        to_cudf(TABLE)


def test_results_without_a_device(device, monkeypatch):
    monkeypatch.setattr("gpu_cep_kernels.device.selection._find_device", lambda: DeviceUnavailable("there is no driver"))
    with pytest.raises(EngineUnavailable, match="result='cudf' is not available: there is no driver"):
        to_cudf(TABLE)
