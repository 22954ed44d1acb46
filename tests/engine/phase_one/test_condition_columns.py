"""What conditions read of events from Arrow: gathered on the host, or carried whole to a device and gathered there."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.lowering.programs import load_bank
from gpu_cep.engine.phase_one.device import condition_columns
from gpu_cep.engine.phase_one.device.condition_columns import bank_on_device
from gpu_cep.keywords import make_options
from gpu_cep.plan.event_plan import BankLayout
from gpu_cep.plan.settings import Settings
from gpu_cep.queries.plans import make_plan
from tests.gpu.spoilt_device import SpoiltDevice, cupy_if_installed

SIZE = 40
EVENTS = pa.table(
    {
        "ts": range(SIZE),
        "i8": pa.array([e % 100 - 50 for e in range(SIZE)], pa.int8()),
        "i": pa.array([None if e % 3 == 0 else 7 * e for e in range(SIZE)], pa.int64()),
        "u": pa.array([e * 2**26 for e in range(SIZE)], pa.uint32()),
        "truth": pa.array([None if e % 7 == 0 else e % 2 == 0 for e in range(SIZE)]),
        "text": pa.array([None if e % 5 == 0 else f"t{e % 4}" for e in range(SIZE)]),
        "coded": pa.array([None if e % 11 == 0 else f"t{e % 6}" for e in range(SIZE)]).dictionary_encode(),
        "f4": pa.array([e / 8 for e in range(SIZE)], pa.float32()),
        "f": pa.array([None if e % 9 == 0 else float("nan") if e % 8 == 0 else -e / 3 for e in range(SIZE)]),
    }
)
TEXT = (
    "PATTERN SEQ(a, b) WHERE a.i8 < b.i8 AND a.i < b.i AND a.u < b.u AND a.truth = b.truth AND a.text = b.text AND a.coded = b.coded "
    "AND a.f4 < b.f4 AND a.f < b.f"
)
PLAN = make_plan(f"{TEXT} WITHIN 9", EVENTS.schema, make_options(), Settings())
LAYOUT = BankLayout(ints=(1, 2, 3, 4, 5, 6), floats=(7, 8))


def columns_of(table):
    return EventColumns(table, PLAN.query, PLAN.dictionaries, threads=1)


def assert_same(device, found, wanted, rows):
    for name, nulls in (("ints", "int_nulls"), ("floats", "float_nulls")):
        there, here = device.download(getattr(found, name)), getattr(wanted, name)
        words = device.download(getattr(found, nulls))
        assert words.tolist() == getattr(wanted, nulls).tolist()
        known = np.array([(words >> np.uint64(c)) & np.uint64(1) == 0 for c in range(len(here))])
        assert (there.dtype, there.shape) == (here.dtype, (len(here), rows))
        assert there[known].tobytes() == here[known].tobytes()


@given(st.lists(st.integers(0, SIZE - 1), min_size=1, max_size=60), st.integers(0, 5), st.integers(1, 2))
def test_values_that_travel_are_those_gathered_on_the_host(rows, skipped, few):
    table, device = EVENTS.slice(skipped), SpoiltDevice(cupy_if_installed(), 1)
    rows = np.minimum(np.array(rows, np.int32), SIZE - 1 - skipped)
    wanted = load_bank(columns_of(table), LAYOUT, rows)
    on_host = patch.object(condition_columns, "load_bank", side_effect=AssertionError("gathered on the host"))
    with on_host, patch.object(condition_columns, "_FEW", few), patch.object(condition_columns, "_TRAVELS", SIZE):
        found = bank_on_device(columns_of(table), LAYOUT, device.upload(rows), device)
    assert_same(device, found, wanted, len(rows))


@pytest.mark.parametrize("threads", [1, 3])
def test_few_rows_are_gathered_on_the_host(threads):
    device, rows = SpoiltDevice(cupy_if_installed(), 1), np.array([31, 2, 2], np.int32)
    wanted = load_bank(columns_of(EVENTS), LAYOUT, rows)
    with patch.object(condition_columns, "_travelled_bank", side_effect=AssertionError("travelled")):
        found = bank_on_device(columns_of(EVENTS), LAYOUT, device.upload(rows), device, threads)
    assert_same(device, found, wanted, 3)


def test_threads_gather_what_one_gathers():
    size, random = 50_000, np.random.default_rng(0)
    table, rows = EVENTS.take(random.integers(0, SIZE, size)), random.permutation(size).astype(np.int32)
    one, some = (load_bank(columns_of(table), LAYOUT, rows, threads) for threads in (1, 3))
    assert all(left.tobytes() == right.tobytes() for left, right in zip(one, some, strict=True))
