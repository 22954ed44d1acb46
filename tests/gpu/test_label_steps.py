"""The label steps of the CPU and of a device, built from one plan, write the same labels."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.phase_one.device.chunks import Chunk, Sources
from gpu_cep.engine.phase_one.device.columns import DeviceColumns
from gpu_cep.engine.phase_one.device.label_engine import DeviceLabelEngine
from gpu_cep.engine.phase_one.label_events import make_labeller
from gpu_cep.engine.phase_one.label_steps import label_steps
from gpu_cep.errors import EventError
from gpu_cep.keywords import make_options
from gpu_cep.plan.settings import Settings
from gpu_cep.queries.plans import make_plan
from tests.gpu.foreign import strict_if_simulated

SIZE = 60
EVENTS = pa.table(
    {
        "ts": range(SIZE),
        "type": [("A", "B", None, "C")[e % 4] for e in range(SIZE)],
        "s": pa.array([f"s{e % 7}" for e in range(SIZE)]).dictionary_encode(),
        "x": [None if e % 10 == 0 else e * 31 % 17 for e in range(SIZE)],
        "y": [float("nan") if e % 11 == 0 else None if e % 13 == 0 else e % 4 / 2 for e in range(SIZE)],
    }
)
CONDITIONS = {
    "codes": "a.type = 'A' AND b.type <> 'A' AND b.s IN ('s1', 's2', 's3') AND c.s LIKE '%4'",
    "comparisons": "a.x > 3 AND a.x <= 12 AND b.x <> 7 AND a.y = 0.5 AND c.y < 1 AND c.x IS NULL",
    "programs": "a.x * 2 + a.y > 3 AND (b.type = 'B' OR b.x > 4) AND (c.y > 0.5 OR c.s < c.type)",
    "keys": "[x] AND a.y < 1",
}


def plan_of(condition):
    options = make_options()
    return make_plan(f"PATTERN SEQ(a, b, c) WHERE {condition} WITHIN 9", EVENTS.schema, options, Settings())


@pytest.mark.parametrize("condition", CONDITIONS.values(), ids=[*CONDITIONS])
def test_both_engines_write_the_same_labels(device, condition):
    device, plan = strict_if_simulated(device), plan_of(condition)
    columns = EventColumns(EVENTS, plan.query, plan.dictionaries, threads=1)
    expected = make_labeller(plan, columns)
    on_device = DeviceColumns(EventColumns(EVENTS, plan.query, plan.dictionaries, threads=1), device)
    steps = label_steps(plan, DeviceLabelEngine(on_device))
    assert len(steps.all()) == len(expected.steps.all())
    for low, high in ((0, SIZE), (7, 41), (30, 30)):
        labels = steps.room(device.xp, high - low)
        steps.fill(Chunk(Sources(on_device), low, high), labels)
        assert np.array_equal(device.download(labels)[:, : high - low], expected.labels(low, high))
    assert len(np.unique(expected.labels(0, SIZE))) > 1


def test_both_engines_name_the_row_of_an_overflow(device):
    events = pa.table({"ts": range(3), "type": ["A"] * 3, "s": ["s"] * 3, "x": [1, 2, 2**62], "y": [0.5] * 3})
    plan = plan_of("a.x * 2 > 3")
    message = r"integer overflow in a.x \* 2 > 3 at input row 2"
    with pytest.raises(EventError, match=message):
        make_labeller(plan, EventColumns(events, plan.query, plan.dictionaries, threads=1)).labels(1, 3)
    columns = DeviceColumns(EventColumns(events, plan.query, plan.dictionaries, threads=1), device)
    steps = label_steps(plan, DeviceLabelEngine(columns))
    with pytest.raises(EventError, match=message):
        steps.fill(Chunk(Sources(columns), 1, 3), steps.room(device.xp, 2))
