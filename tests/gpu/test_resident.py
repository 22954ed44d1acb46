"""Arrays on a device as events: left where they are, and read as the same columns from the host would be."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_cep
from gpu_cep.engine.input.device.uploads import load
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.input.read_tables import read_events
from gpu_cep.engine.lowering.programs import load_bank
from gpu_cep.engine.phase_one.device import condition_columns
from gpu_cep.engine.phase_one.device.columns import DeviceColumns
from gpu_cep.engine.phase_one.device.condition_columns import bank_on_device
from gpu_cep.errors import EngineUnavailable, EventError
from gpu_cep.keywords import make_options
from gpu_cep.plan.event_plan import BankLayout
from gpu_cep.plan.settings import Settings
from gpu_cep.queries.plans import make_plan
from gpu_cep_kernels.device import packing
from gpu_cep_kernels.device.interface import DeviceUnavailable
from tests.conformance.expectation import answered
from tests.drawn.queries import whole_language
from tests.gpu.foreign import MASKS, Foreign, bits, flags, strict_if_simulated
from tests.gpu.pieces import PIECES

NUMBERS = ["b1", *(f"{sign}{width}" for sign in "iu" for width in (1, 2, 4, 8)), "f4", "f8"]
TIMES = [f"{kind}8[{unit}]" for kind in "mM" for unit in ("s", "ms", "us", "ns")]


def loaded_rows(device, source, low, high):
    """The rows [low, high) of an input."""
    (rows,) = load(device, [source], low, high)
    return rows


@pytest.fixture(scope="module", autouse=True)
def device(device):
    """The device, also for what the engine opens."""
    found = strict_if_simulated(device)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gpu_cep_kernels.device.selection._find_device", lambda: found)
        yield found


@st.composite
def arrays(draw, kind):
    """Random bits as values of a type, the greatest uint64 excluded."""
    dtype = np.dtype(kind)
    size = draw(st.integers(1, 60))
    if dtype.kind == "b":
        return np.array(draw(st.lists(st.booleans(), min_size=size, max_size=size)))
    words = np.frombuffer(draw(st.binary(min_size=8 * size, max_size=8 * size)), np.uint64) >> np.uint64(dtype == np.uint64)
    return words.view(np.uint8).reshape(size, 8)[:, : dtype.itemsize].copy().view(dtype).reshape(-1)


def views(table):
    plan = make_plan("PATTERN a", table.schema, make_options(), Settings())
    return EventColumns(table, plan.query, threads=1)


@pytest.mark.parametrize("kind", [*NUMBERS, *TIMES])
@given(data=st.data())
def test_like_the_same_columns_on_the_host(device, kind, data):
    values, strided = data.draw(arrays(kind)), data.draw(st.booleans())
    size = len(values)
    valid = np.array(data.draw(st.lists(st.booleans(), min_size=size, max_size=size)))
    masked = data.draw(st.sampled_from(MASKS))(device, valid)
    on_host = pa.table({"ts": np.arange(size), "c": pa.array(values, mask=None if masked is None else ~valid, from_pandas=False)})
    on_device = read_events({"ts": Foreign(device, np.arange(size)), "c": Foreign(device, values, masked, strided=strided)})
    assert on_device.schema == on_host.schema
    assert bytes_of(on_device.to_arrow()["c"]) == bytes_of(on_host["c"])

    host, there = views(on_host), views(on_device)
    rows = np.array(data.draw(st.lists(st.integers(0, size - 1), max_size=9)), np.int64)
    picked, nulls = there.pick(1, rows)
    wanted, absent = host.pick(1, rows)
    known = np.ones(len(rows), np.bool_) if absent is None else ~absent
    assert (np.zeros(len(rows), np.bool_) if nulls is None else nulls).tolist() == (~known).tolist()
    assert picked.dtype == wanted.dtype
    assert picked[known].tobytes() == wanted[known].tobytes()
    some = pa.array(rows, mask=np.arange(len(rows)) % 3 == 1)
    assert bytes_of(there.take(1, some)) == bytes_of(host.take(1, some))

    low, high = sorted(data.draw(st.tuples(st.integers(0, size), st.integers(0, size))))
    columns = DeviceColumns(there, device)
    present, missing = columns.present(1), host.null_mask(1)
    loaded = np.ones(high - low, np.uint8) if present is None else device.download(loaded_rows(device, present, low, high))
    assert loaded.tolist() == (np.ones(high - low) if missing is None else ~missing[low:high]).tolist()
    found = device.download(loaded_rows(device, columns.values(1), low, high))
    assert found.dtype == host.values(1).dtype
    assert found[loaded == 1].tobytes() == host.values(1)[low:high][loaded == 1].tobytes()


def bytes_of(array):
    """Type, NULLs and the bits of the values that are none."""
    whole = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    known = whole.drop_null()
    plain = known.cast(pa.uint8()) if known.type == pa.bool_() else known
    return whole.type, whole.is_null().to_pylist(), np.asarray(plain.to_numpy(zero_copy_only=False)).tobytes()


@pytest.mark.parametrize("mask", [bits, flags])
def test_integers_beyond_64_bits(device, mask):
    values = np.array([1, 2**63, 2**64 - 1], np.uint64)
    hidden = mask(device, np.array([True, False, False]))
    table = read_events({"ts": Foreign(device, np.arange(3)), "c": Foreign(device, values), "d": Foreign(device, values, hidden)})
    columns = DeviceColumns(views(table), device)
    assert device.download(loaded_rows(device, columns.values(2), 0, 3))[0] == 1
    with pytest.raises(EventError) as found:
        loaded_rows(device, columns.values(1), 0, 3)
    with pytest.raises(EventError) as expected:
        views(table).values(1)
    assert str(found.value) == str(expected.value)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (np.zeros(3, np.complex64), "an array of complex64 on the device cannot be read; supported are bool, int8"),
        (np.zeros(3, np.float16), "an array of float16"),
        (np.zeros(3, ">i4"), "an array of >i4"),
        (np.zeros(3, "M8[s]").astype("M8[25s]"), r"an array of datetime64\[25s\]"),
        (np.zeros(3, "U3"), "an array of <U3.*text as a cudf or Arrow column"),
        (np.zeros((3, 1)), "an array of 2 dimensions is no column"),
        ([1, 2, 3], "cannot read list; expected an array on the device"),
    ],
)
def test_columns_that_cannot_be_read(device, column, message):
    foreign = Foreign(device, column) if isinstance(column, np.ndarray) else column
    with pytest.raises(EventError, match=f"column 'c': {message}"):
        read_events({"ts": Foreign(device, np.arange(3)), "c": foreign})


def test_tables_that_are_none(device):
    with pytest.raises(EventError, match="columns of different lengths: ts 3, c 4"):
        read_events({"ts": Foreign(device, np.arange(3)), "c": pa.array([1, 2, 3, 4])})
    with pytest.raises(EventError, match="the name of a column must be text, not 1"):
        read_events({1: Foreign(device, np.arange(3))})


def test_masks_of_another_length(device):
    with pytest.raises(EventError, match=r"column 'c': a mask of shape \(1,\) for 3 rows"):
        read_events({"c": Foreign(device, np.arange(3), flags(device, np.ones(1, np.bool_)))})


def test_without_a_device(device, monkeypatch):
    monkeypatch.setattr("gpu_cep_kernels.device.selection._find_device", lambda: DeviceUnavailable("there is no driver"))
    with pytest.raises(EngineUnavailable, match="arrays on a device cannot be read here: there is no driver"):
        read_events({"ts": Foreign(device, np.arange(3))})


ROWS = 400
TABLE = pa.table(
    {
        "ts": pa.array(np.arange(ROWS) * 7 % ROWS * 1_000_000).cast(pa.timestamp("us")),
        "type": pa.array(["A" if e % 20 == 0 else "B" if e % 20 == 9 else "C" for e in range(ROWS)]).dictionary_encode(),
        "k": pa.array([None if e % 57 == 0 else e % 3 for e in range(ROWS)], pa.int32()),
        "x": [e * 31 % 17 for e in range(ROWS)],
        "y": [float("nan") if e % 11 == 0 else e % 4 / 2 for e in range(ROWS)],
        "f": [e // 10 % 4 < 2 for e in range(ROWS)],
    }
)
QUERIES = [
    ("PATTERN SEQ(A a, B b) WHERE a.x < b.x AND a.f <> b.f WITHIN 90 s", {}),
    ("PATTERN SEQ(A a, B b+) WITHIN 90 s RETURN a.y, sum(b.x) AS s, last(b.y) AS l, b.type AS t", {"partition_by": "k", "order_by": "x"}),
    ("PATTERN SEQ(a, b) WHERE [k] AND a.type = 'A' AND b.type = 'B' AND b.y + b.x > 3 WITHIN 90 s", {"partition_by": "f"}),
    ("PATTERN SEQ(A a, B b) WITHIN 90 s", {"output": "count", "partition_by": "k"}),
]


def on_device(device, table):
    """The columns of a table that arrays on the device can be as such, and the others as they are."""
    return {name: moved(device, table[name].combine_chunks()) for name in table.schema.names}


ON_DEVICE = [pa.from_numpy_dtype(np.dtype(kind)) for kind in NUMBERS + TIMES]


def moved(device, column):
    if column.type not in ON_DEVICE:
        return column
    filled = column.fill_null(pa.scalar(0).cast(column.type)) if column.null_count else column
    mask = bits(device, column.is_valid().to_numpy(zero_copy_only=False)) if column.null_count else None
    return Foreign(device, filled.to_numpy(zero_copy_only=False), mask)


@pytest.mark.parametrize(("text", "options"), QUERIES)
@pytest.mark.parametrize("engine", ["gpu", "cpu"])
def test_same_matches_and_few_rows_downloaded(device, monkeypatch, text, options, engine):
    sizes = []
    download = type(device).download

    def recorded(self, array):
        sizes.append(array.nbytes)
        return download(self, array)

    monkeypatch.setattr(type(device), "download", recorded)
    found = gpu_cep.match(on_device(device, TABLE), text, engine=engine, **options)
    downloaded = max(sizes)
    expected = gpu_cep.match(TABLE, text, engine="cpu", **options)
    assert found.schema == expected.schema
    assert found.num_rows > 0
    assert [repr(row) for row in found.to_pylist()] == [repr(row) for row in expected.to_pylist()]
    # half of a column of eight bytes
    assert (downloaded < 8 * ROWS / 2) is (engine == "gpu")


@pytest.mark.parametrize(("text", "options"), QUERIES)
def test_a_run_is_explained_alike(device, text, options):
    explained = gpu_cep.explain(on_device(device, TABLE), text, engine="gpu", run=True, **options)
    expected = gpu_cep.explain(TABLE, text, engine="cpu", run=True, **options)
    assert explained.fitting == expected.fitting
    assert sum(explained.fitting.values()) > 0


@given(whole_language(max_size=14))
def test_random_queries(device, case):
    wanted = answered(case, engine="cpu", output="indices")
    found = gpu_cep.match(on_device(device, case.events), case.text, engine="gpu", output="indices", **case.options)
    assert found.equals(wanted)


# Of these, phase 1 keeps every event.
KEEPING_ALL = [
    ("PATTERN SEQ(a, b) WITHIN 3", {}),
    ("PATTERN SEQ(a, b) WHERE a.x < b.x WITHIN 3", {"partition_by": "k"}),
    ("PATTERN SEQ(a, b, c) WHERE [k] AND a.x <= c.x WITHIN 4", {"order_by": "n"}),
    ("PATTERN SEQ(a, b) WHERE a.x < b.x WITHIN 3", {"algorithm": "join_tree", "strategy": "skip_till_any_match"}),
    ("PATTERN SEQ(a, b+) WHERE b[i].n > b[i-1].n WITHIN 3 EVENTS", {"partition_by": ["k", "n"], "strategy": "partition_contiguity"}),
]


@st.composite
def unordered_events(draw):
    """Events out of order, of which no value is NULL, so that arrays on the device can be all their columns."""
    size = draw(st.integers(1, 30))

    def column(kind, most):
        return np.array(draw(st.lists(st.integers(0, most), min_size=size, max_size=size)), kind)

    return {"ts": column(np.int64, size), "k": column(np.int64, 2), "n": column(np.int32, 3), "x": column(np.float64, 5)}


@pytest.mark.parametrize(("text", "options"), KEEPING_ALL)
@given(unordered_events(), PIECES)
def test_arrays_of_the_caller_stay_as_they_are(device, text, options, columns, pieces):
    arrays = {name: Foreign(device, values.copy()) for name, values in columns.items()}
    with patch("gpu_cep.engine.phase_one.device.in_pieces.memory_of", lambda device, plan: pieces):
        found = gpu_cep.match(arrays, text, engine="gpu", output="indices", **options)
    assert found.equals(gpu_cep.match(pa.table(columns), text, engine="cpu", output="indices", **options))
    for name, array in arrays.items():
        assert array.held().tobytes() == columns[name].tobytes(), name


@pytest.mark.parametrize("resident", [True, False])
def test_joins_read_numbers_where_they_lie(device, monkeypatch, resident):
    strict, uploaded = strict_if_simulated(device), []
    monkeypatch.setattr("gpu_cep_kernels.device.selection._find_device", lambda: strict)
    upload = type(strict).upload

    def recorded(self, array):
        uploaded.append(array)
        return upload(self, array)

    monkeypatch.setattr(type(strict), "upload", recorded)
    # each array travels by itself
    monkeypatch.setattr(packing, "_SMALL", -1)
    text, options = "PATTERN SEQ(A a, B b) WHERE a.y < b.y WITHIN 90 s", {"algorithm": "join_tree", "strategy": "skip_till_any_match"}
    events = on_device(device, TABLE) if resident else TABLE
    with patch("gpu_cep.engine.run.DEVICE_BATCH", 20):
        found = gpu_cep.match(events, text, engine="gpu", output="indices", **options)
    assert found.num_rows > 0
    assert found.equals(gpu_cep.match(TABLE, text, engine="cpu", output="indices", **options))
    assert any(array.dtype == np.float64 and array.size > 9 for array in uploaded) is not resident


def test_brute_force_over_arrays_on_a_device(device):
    head = TABLE.slice(0, 40)
    options = {"algorithm": "brute_force", "output": "indices"}
    text = "PATTERN SEQ(A a, B b) WHERE a.x <> b.x WITHIN 90 s"
    found = gpu_cep.match(on_device(device, head), text, **options)
    assert found.equals(gpu_cep.match(head, text, **options))
    assert found.num_rows > 0


@pytest.mark.parametrize("kind", [*NUMBERS, *TIMES])
@given(data=st.data())
def test_what_conditions_read_is_gathered_there(device, kind, data):
    values = data.draw(arrays(kind))
    valid = np.array(data.draw(st.lists(st.booleans(), min_size=len(values), max_size=len(values))))
    column = Foreign(device, values, data.draw(st.sampled_from(MASKS))(device, valid), strided=data.draw(st.booleans()))
    columns = views(read_events({"ts": Foreign(device, np.arange(len(values))), "c": column}))
    rows = np.array(data.draw(st.lists(st.integers(0, len(values) - 1), min_size=1, max_size=9)), np.int32)
    layout = BankLayout(ints=(), floats=(1,)) if kind[0] == "f" else BankLayout(ints=(1,), floats=())
    wanted = load_bank(columns, layout, rows)
    with patch.object(condition_columns, "load_bank", side_effect=AssertionError("gathered on the host")):
        found = bank_on_device(columns, layout, device.upload(rows), device)
    for name, known in (("ints", wanted.int_nulls), ("floats", wanted.float_nulls)):
        there, here = device.download(getattr(found, name)), getattr(wanted, name)
        assert (there.dtype, there.shape) == (here.dtype, here.shape)
        present = known == 0 if len(known) else np.ones(len(rows), np.bool_)
        assert there[:, present].tobytes() == here[:, present].tobytes()
    for name in ("int_nulls", "float_nulls"):
        words = device.download(getattr(found, name))
        # a mask may say that nothing is NULL
        assert (words if len(words) else np.zeros(len(rows), np.uint64)).tolist() == (
            getattr(wanted, name).tolist() or [0] * len(rows)
        )  # fmt: skip


RISING = "PATTERN SEQ(A a, B b+, C c) WHERE b[i].x > b[i-1].x AND c.x < last(b.x) WITHIN 60"


def test_a_walk_through_windows_reads_columns_where_they_are(device):
    size, random = 300, np.random.default_rng(3)
    table = pa.table({"ts": range(size), "type": random.choice(list("ABC"), size), "x": random.normal(size=size)})
    profile = gpu_cep.Profile()
    with patch.object(condition_columns, "load_bank", side_effect=AssertionError("gathered on the host")):
        found = gpu_cep.match(on_device(device, table), RISING, engine="gpu", output="indices", profile=profile)
    assert found.equals(gpu_cep.match(table, RISING, engine="cpu", output="indices"))
    assert found.num_rows > 9
    assert "left" not in profile.counts


@pytest.mark.parametrize("kind", ["M8[us]", "m8[ns]"])
def test_no_time_beside_a_mask(device, kind):
    values, valid = np.array([1, "NaT", 3, "NaT"], kind), np.array([True, True, False, False])
    for masked, known in ((None, [1, 0, 1, 0]), (bits(device, valid), [1, 0, 0, 0])):
        table = read_events({"ts": Foreign(device, np.arange(4)), "c": Foreign(device, values, masked)})
        assert device.download(loaded_rows(device, DeviceColumns(views(table), device).present(1), 0, 4)).tolist() == known
        assert table.to_arrow()["c"].is_valid().to_pylist() == [bool(each) for each in known]


def test_a_time_that_is_none(device):
    times = np.array([1, "NaT", 3, "NaT"], "M8[s]")
    for engine in ("cpu", "gpu"):
        with pytest.raises(EventError, match="timestamp column 'ts' holds 2 NULLs"):
            gpu_cep.match({"ts": Foreign(device, times)}, "PATTERN a", engine=engine)
        left = gpu_cep.match({"ts": Foreign(device, times)}, "PATTERN a", engine=engine, nulls="drop", output="indices")
        assert left.to_pylist() == [{"a": 0}, {"a": 2}]
