"""A device reports the matches of situations that are detected in a slice of time, as the CPU does."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest

from gpu_cep.engine.answers import answer
from gpu_cep.engine.events.own_events import TimeSlice
from gpu_cep.engine.events.reported import Reported
from gpu_cep.keywords import make_options
from gpu_cep.plan.settings import Settings
from gpu_cep.queries.plans import make_plan
from tests.gpu.spoilt_device import SpoiltDevice, cupy_if_installed

SIZE = 2_000
RANDOM = np.random.default_rng(1)
EVENTS = pa.table({"ts": np.arange(SIZE), "k": RANDOM.integers(0, 4, SIZE), "x": np.repeat(RANDOM.integers(0, 9, SIZE // 5), 5)})
TEXT = "PARTITION BY k DEFINE A AS x > 6, B AS x < 3 PATTERN A before B WITHIN 60"


def found(engine, output, ends):
    settings = Settings(engine=engine, output=output)
    with patch("gpu_cep_kernels.device.selection._find_device", lambda: SpoiltDevice(cupy_if_installed(), 1)):
        return answer(make_plan(TEXT, EVENTS.schema, make_options(), settings), EVENTS, reported=Reported(ends=ends))


@pytest.mark.parametrize("output", ["indices", "count"])
@pytest.mark.parametrize("ends", [TimeSlice(700, 1_500), TimeSlice(1_900, None), TimeSlice(None, 100)], ids=["most", "few", "first"])
def test_matches_of_a_slice(output, ends):
    expected = found("cpu", output, ends)
    assert expected.num_rows > 0
    assert expected != found("cpu", output, TimeSlice())
    assert found("gpu", output, ends) == expected
