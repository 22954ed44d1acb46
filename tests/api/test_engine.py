"""``engine=`` and ``gpu_memory=`` of match and explain: what is refused, and what explain shows of the choice."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pytest

import gpu_cep as cep
from gpu_cep import explanations
from gpu_cep.analysis.options import Options
from gpu_cep.engine.input.device import cudf
from gpu_cep.engine.phase_one import engine_choice
from gpu_cep.engine.phase_one.engine_choice import EngineChoice
from gpu_cep.engine.phase_one.engine_costs import bytes_per_event
from gpu_cep.errors import EngineUnavailable, PatternError
from gpu_cep.plan.settings import Settings, memory_bytes
from gpu_cep.queries.plans import make_plan
from gpu_cep_kernels.device.interface import NoDevice
from gpu_cep_kernels.device.selection import SimulatedDevice

EVENTS = pa.table({"ts": [1, 2], "type": ["A", "B"]})
PATTERN = "PATTERN SEQ(A a, B b) WITHIN 10"


@pytest.fixture
def no_driver(monkeypatch):
    def refuse():
        raise NoDevice("there is no CUDA driver (libcuda.so.1 is missing)")

    for module in (engine_choice, cudf):
        monkeypatch.setattr(module, "open_device", refuse)


@pytest.mark.usefixtures("no_driver")
def test_gpu_is_refused_with_the_cause():
    with pytest.raises(EngineUnavailable, match=r"cannot run on GPU because there is no CUDA driver .*; use engine='auto'"):
        cep.match(EVENTS, PATTERN, engine="gpu")


@pytest.mark.usefixtures("no_driver")
def test_it_is_refused_before_a_file_is_read(tmp_path):
    with pytest.raises(EngineUnavailable):
        cep.match(tmp_path / "missing.parquet", PATTERN, engine="gpu")


@pytest.mark.usefixtures("no_driver")
def test_but_after_settings_that_mean_nothing():
    with pytest.raises(PatternError, match="output='x'"):
        cep.match(EVENTS, PATTERN, engine="gpu", output="x")


@pytest.mark.usefixtures("no_driver")
@pytest.mark.parametrize("pattern", [PATTERN, "DEFINE A AS ts > 1, B AS ts < 2 PATTERN A meets B"])
def test_explain_says_that_it_is_refused(pattern):
    told = str(cep.explain(EVENTS, pattern, engine="gpu"))
    assert re.search(r"engine +gpu.*\(none in this process, which refuses to run the query\).*: .*no CUDA driver", told)
    with pytest.raises(EngineUnavailable):
        cep.explain(EVENTS, pattern, engine="gpu", run=True)


@pytest.mark.usefixtures("no_driver")
def test_explain_says_that_a_row_pattern_is_refused():
    pattern = "MATCH_RECOGNIZE (ORDER BY ts MEASURES count(*) AS n PATTERN (A B) DEFINE A AS ts > 1)"
    assert re.search(r"refused +.*no CUDA driver", str(cep.explain(EVENTS, pattern, engine="gpu")))
    assert "refused" not in str(cep.explain(EVENTS, pattern, engine="auto"))


@pytest.mark.usual
@pytest.mark.usefixtures("no_driver")
def test_explain_says_where_each_step_runs():
    text = str(cep.explain(EVENTS, PATTERN))
    assert "properties (phase 1, in bulk, cpu)" in text
    assert "in each batch of events, phase 2, cpu" in text
    assert "pruning (phase 1, in bulk, cpu)" in text
    assert "\n  reach " in text
    assert text.splitlines()[-1].startswith("engine     cpu: 131,072 events and more")


@pytest.mark.usefixtures("no_driver")
def test_explain_says_why():
    many = pa.table({"ts": np.arange(1 << 17), "type": pa.array(["A"] * (1 << 17))})
    assert "engine     cpu: phase 1 cannot run on GPU because there is no CUDA driver" in str(cep.explain(many, PATTERN))
    assert str(cep.explain(many, PATTERN, engine="cpu")).endswith("engine     cpu: engine='cpu'")


def test_explain_without_events_names_no_engine():
    assert "engine" not in str(cep.explain(PATTERN))


@pytest.mark.usual
def test_explain_names_the_card(monkeypatch):
    asked = []

    def choose(*work, resident):
        asked.append((*work, resident))
        return EngineChoice(SimulatedDevice(), "it pays")

    monkeypatch.setattr(explanations, "choose_engine", choose)
    explained = cep.explain(EVENTS, PATTERN, threads=3)
    assert asked == [(explained.plan, 2, bytes_per_event(explained.plan), 3, False)]
    assert (explained.device, explained.reason) == ("CUDA simulator", "it pays")
    text = str(explained)
    assert "properties (phase 1, in bulk, gpu)" in text
    assert "pruning (phase 1, in bulk, gpu)" in text
    assert "\n  reach " not in text
    assert "in each batch of events, phase 2, gpu (cpu where an event leaves a choice)" in text
    assert text.endswith("engine     gpu for phase 1 (CUDA simulator), gpu (cpu where an event leaves a choice) for phase 2: it pays")
    # the plan knows nothing of the machine
    assert explained.plan == make_plan(PATTERN, EVENTS.schema, Options(), Settings())


@pytest.mark.parametrize(
    ("pattern", "searches", "told"),
    [
        ("PATTERN SEQ(A a, B b) WHERE strict_contiguity { b.ts > a.ts } WITHIN 10", True, "gpu (cpu where labels leave a choice)"),
        ("PATTERN SEQ(A a, B b) WHERE strict_contiguity { b.ts > a.ts } WITHIN 10", False, "cpu"),
        ("PATTERN SEQ(A a, B b) WHERE b.ts > a.ts WITHIN 10", True, "gpu (cpu where an event leaves a choice)"),
        ("PATTERN SEQ(A a, B b) WHERE b.ts > a.ts WITHIN 10", False, "cpu"),
        ("PATTERN SEQ(A a, B b) WHERE skip_till_any_match { b.ts > a.ts } WITHIN 10", True, "cpu"),
    ],
)
def test_explain_says_what_searches(monkeypatch, pattern, searches, told):
    monkeypatch.setattr(explanations, "choose_engine", lambda *_, **__: EngineChoice(SimulatedDevice(), "it pays", searches))
    assert cep.explain(EVENTS, pattern).phase_two == told


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (None, None),
        (4096, 4096),
        ("4096", 4096),
        ("8GB", 8 * 10**9),
        ("8 gb", 8 * 10**9),
        ("512MiB", 512 * 2**20),
        ("1.5GiB", 3 * 2**29),
        ("2k", 2000),
        ("1T", 10**12),
        (" 100 B ", 100),
    ],
)
def test_gpu_memory_as_number_and_text(size, expected):
    assert memory_bytes(size) == expected


@pytest.mark.parametrize("size", [0, -1, 1.5, True, "", "GB", "-1GB", "8 gallons", "1e9", "0.1", "0GB", b"8GB", "٣GB"])
def test_gpu_memory_that_is_no_size(size):
    with pytest.raises(PatternError, match="gpu_memory must be a number of bytes"):
        memory_bytes(size)


def test_gpu_memory_reaches_the_plan():
    assert cep.explain(EVENTS, PATTERN, gpu_memory="1MiB").plan.settings.gpu_memory == 2**20


@pytest.mark.usefixtures("no_driver")
def test_results_on_a_card_need_one(tmp_path):
    with pytest.raises(EngineUnavailable, match="result='cudf' is not available: there is no CUDA driver"):
        cep.match(tmp_path / "missing.parquet", PATTERN, result="cudf")


def test_an_unknown_form_of_result():
    with pytest.raises(PatternError, match=r"result='cudff' is unknown; expected one of arrow, .*, cudf, reader\n.*did you mean 'cudf'"):
        cep.match(EVENTS, PATTERN, result="cudff")
    assert cep.match(EVENTS, PATTERN, result="arrow").equals(cep.match(EVENTS, PATTERN))


def test_gpu_memory_means_nothing_to_the_cpu():
    assert cep.match(EVENTS, PATTERN, engine="cpu", gpu_memory=1).equals(cep.match(EVENTS, PATTERN, engine="cpu"))
