"""The choice of an engine: what is refused, what `auto` takes and says, and what explain shows of it.

None of these tests needs a device, or is disturbed by one; those that do need one stand in tests/gpu.
"""

from __future__ import annotations

import itertools
import logging
import pickle
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import gpu_cep as cep
from gpu_cep.analysis.options import Options
from gpu_cep.api import make_plan
from gpu_cep.engine import choice
from gpu_cep.engine.choice import Calibration, break_even, bytes_per_event, calibrate, choose_engine, copies_worth, costs
from gpu_cep.errors import CepError, EngineUnavailable, PatternError, UnsupportedError
from gpu_cep.plan.settings import Settings, memory_bytes
from gpu_cep_kernels.device import DeviceUnavailable, NoDevice

EVENTS = pa.table({"ts": [1, 2], "type": ["A", "B"], "x": [1.0, 2.0], "key": ["k", "k"]})
PATTERN = "PATTERN SEQ(A a, B b) WITHIN 10"
MANY = 10**9
NO_DRIVER = NoDevice("there is no CUDA driver (libcuda.so.1 is missing)")


class Card:
    """A device whose copies and launches take the time that a test says, on the clock of `seconds`."""

    name = "a card"
    simulated = False

    def __init__(self, transfer_rate: float = 1e9, latency: float = 1e-5) -> None:
        self.transfer_rate, self.latency, self.seconds, self.launches = transfer_rate, latency, 0.0, 0

    def upload(self, array: np.ndarray) -> np.ndarray:
        self.seconds += array.nbytes / self.transfer_rate
        return array.copy()

    def launch(self, kernel: object, size: int, *arguments: object) -> None:
        self.launches += 1
        self.seconds += self.latency

    def synchronize(self) -> None:
        """Nothing is ever under way."""


class BrokenCard(Card):
    name = "a broken card"

    def launch(self, kernel: object, size: int, *arguments: object) -> None:
        raise RuntimeError("the driver is too old")


def plan_of(pattern: str = PATTERN, **settings: object):
    return make_plan(pattern, EVENTS.schema, Options(), Settings(**settings))


@pytest.fixture(autouse=True)
def forgotten():
    """What is kept for a process is forgotten before and after each test."""
    for kept in (choice._calibrated, choice._log_once):
        kept.cache_clear()
    yield
    for kept in (choice._calibrated, choice._log_once):
        kept.cache_clear()


@pytest.fixture
def no_driver(monkeypatch):
    def refuse():
        raise NO_DRIVER

    monkeypatch.setattr(choice, "open_device", refuse)


def with_card(monkeypatch, card: Card, calibration: Calibration | None = None) -> None:
    monkeypatch.setattr(choice, "open_device", lambda: card)
    if calibration is not None:
        monkeypatch.setattr(choice, "calibrate", lambda device: calibration)


@pytest.mark.usefixtures("no_driver")
class TestWithoutADevice:
    def test_gpu_is_refused_with_the_cause(self):
        with pytest.raises(EngineUnavailable, match="cannot run on GPU because there is no CUDA driver .*use engine='auto' or engine='cpu'"):
            cep.match(EVENTS, PATTERN, engine="gpu")

    def test_it_is_refused_before_a_file_is_read(self, tmp_path):
        with pytest.raises(EngineUnavailable):
            cep.match(tmp_path / "missing.parquet", PATTERN, engine="gpu")

    def test_but_after_settings_that_mean_nothing(self):
        with pytest.raises(PatternError, match="output='x'"):
            cep.match(EVENTS, PATTERN, engine="gpu", output="x")

    def test_explain_refuses_it_too(self):
        with pytest.raises(EngineUnavailable):
            cep.explain(PATTERN, EVENTS, engine="gpu")

    def test_the_refusal_travels_between_processes(self):
        with pytest.raises(CepError) as caught:
            choose_engine(plan_of(engine="gpu"), MANY, 12)
        copy = pickle.loads(pickle.dumps(caught.value))
        assert (type(copy), str(copy)) == (EngineUnavailable, str(caught.value))

    def test_auto_takes_the_cpu_and_says_so_once(self, caplog):
        with caplog.at_level(logging.INFO, "gpu_cep"):
            choices = [choose_engine(plan_of(), MANY, 12) for _ in range(3)]
        assert {chosen.device for chosen in choices} == {None}
        (record,) = caplog.records
        assert record.levelno == logging.INFO
        assert "runs on the CPU: phase 1 cannot run on GPU because there is no CUDA driver" in record.getMessage()

    def test_cpu_says_nothing(self, caplog):
        with caplog.at_level(logging.DEBUG, "gpu_cep"):
            assert choose_engine(plan_of(engine="cpu"), MANY, 12).device is None
        assert not caplog.records


def test_a_card_that_cannot_be_used_is_worth_a_warning(monkeypatch, caplog):
    with_card(monkeypatch, BrokenCard())
    with caplog.at_level(logging.INFO, "gpu_cep"):
        chosen = [choose_engine(plan_of(), MANY, 12) for _ in range(2)]
    assert chosen[0].device is None
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "cannot run on GPU because measuring its speed failed: RuntimeError: the driver is too old" in record.getMessage()


def test_few_events_open_no_device(monkeypatch):
    monkeypatch.setattr(choice, "open_device", lambda: pytest.fail("a device was opened"))
    assert "131,072 events and more" in choose_engine(plan_of(), 1000, 12).reason


def test_the_simulator_is_never_picked(monkeypatch):
    card = Card()
    card.simulated = True
    with_card(monkeypatch, card)
    chosen = choose_engine(plan_of(), MANY, 12)
    assert chosen.device is None
    assert "cannot run on GPU because CUDA is simulated" in chosen.reason
    assert choose_engine(plan_of(engine="gpu"), 2, 12).device is card


def test_auto_takes_a_card_where_the_transfer_pays(monkeypatch):
    card = Card()
    with_card(monkeypatch, card, Calibration(copy_rate=1e9, transfer_rate=1e10, latency=1e-3))
    plan = plan_of()
    threshold = break_even(choice._calibration(), 12, copies_worth(plan), threads=1)
    assert choose_engine(plan, threshold - 1, 12, threads=1).device is None
    taken = choose_engine(plan, threshold + 1, 12, threads=1)
    assert taken.device is card
    assert f"phase 1 on 1 thread from about {threshold:,} events of 12 bytes on" in taken.reason


def test_auto_leaves_a_card_alone_that_transfers_too_slowly(monkeypatch):
    with_card(monkeypatch, Card(), Calibration(copy_rate=1e10, transfer_rate=1e9, latency=1e-5))
    chosen = choose_engine(plan_of(), 10**15, 12, threads=4)
    assert chosen.device is None
    assert "takes longer than phase 1 on 4 threads, whatever the number of events" in chosen.reason


def test_brute_force_has_no_phase_1():
    with pytest.raises(UnsupportedError, match="'brute_force' is not supported with engine='gpu'; supported: auto, cpu"):
        plan_of(engine="gpu", algorithm="brute_force")
    assert "no phase 1" in choose_engine(plan_of(algorithm="brute_force"), MANY, 12).reason


class TestCosts:
    """Costs are made of three measured rates and a recorded multiple."""

    calibration = Calibration(copy_rate=1e10, transfer_rate=2e10, latency=1e-5)

    def test_the_cpu_shares_the_work_among_its_threads(self):
        one, four = (costs(self.calibration, 10**6, 10, copies=3.0, threads=threads) for threads in (1, 4))
        assert one.cpu == pytest.approx(3e-3)
        assert four.cpu == pytest.approx(one.cpu / 4)
        assert one.gpu == four.gpu == pytest.approx(choice.LAUNCHES * 1e-5 + 5e-4)

    @pytest.mark.parametrize("threads", [1, 2, 5])
    def test_the_gpu_pays_from_the_break_even_on(self, threads):
        threshold = break_even(self.calibration, 16, 3.3, threads)
        assert not costs(self.calibration, threshold - 1, 16, 3.3, threads).gpu_pays
        assert costs(self.calibration, threshold + 1, 16, 3.3, threads).gpu_pays

    def test_more_threads_than_the_transfer_is_worth(self):
        assert break_even(self.calibration, 16, 3.3, threads=7) is None
        assert not costs(self.calibration, 10**12, 16, 3.3, threads=7).gpu_pays

    def test_nothing_to_do_does_not_pay(self):
        assert not costs(self.calibration, 0, 16, 3.3, threads=1).gpu_pays
        assert break_even(self.calibration, 0, 3.3, threads=1) is None


@pytest.mark.parametrize(
    ("pattern", "settings", "copies"),
    [
        (PATTERN, {}, choice.KEEPING_SOME),
        (PATTERN, {"prune": ("partition",)}, choice.KEEPING_ALL),
        ("PATTERN SEQ(A a, b) WITHIN 10", {}, choice.KEEPING_ALL),
        ("PATTERN SEQ(A a, B b) WITHIN 10 EVENTS", {}, choice.KEEPING_ALL),
        ("PATTERN SEQ(A a, B b) WHERE skip_till_any_match { a.x < b.x } WITHIN 10", {}, choice.WITHOUT_WINDOWS),
    ],
)
def test_the_work_of_phase_1_depends_on_what_is_filtered(pattern, settings, copies):
    assert copies_worth(plan_of(pattern, **settings)) == copies


def test_the_bytes_of_phase_1_are_those_of_the_columns_that_it_reads():
    assert bytes_per_event(plan_of()) == 8 + 4  # ts, type
    assert bytes_per_event(plan_of("PARTITION BY key PATTERN SEQ(A a, B b) WHERE a.x > 1 AND b.x > 2 WITHIN 10")) == 8 + 4 + 4 + 8
    # a condition between bindings is phase 2
    assert bytes_per_event(plan_of("PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 10")) == 8 + 4


def test_calibration_measures_what_the_device_takes():
    card = Card(transfer_rate=2e9, latency=3e-5)
    ticks = itertools.count()
    # time that passes outside the device, too
    found = calibrate(card, lambda: card.seconds + 1e-9 * next(ticks))
    assert found.transfer_rate == pytest.approx(2e9, rel=1e-3)
    assert found.latency == pytest.approx(3e-5, rel=1e-3)
    assert found.copy_rate > 0
    assert card.launches > 1


def test_a_device_that_fails_at_it_is_unavailable():
    with pytest.raises(DeviceUnavailable, match="the driver is too old"):
        calibrate(BrokenCard())


def test_a_process_measures_once(monkeypatch):
    card = Card()
    with_card(monkeypatch, card)
    choose_engine(plan_of(), MANY, 12)
    launches = card.launches
    choose_engine(plan_of(), MANY, 12)
    assert card.launches == launches > 0


@pytest.mark.usefixtures("no_driver")
class TestExplain:
    def test_it_says_where_each_step_runs(self):
        text = str(cep.explain(PATTERN, EVENTS))
        assert "properties (phase 1, in bulk, cpu)" in text
        assert "conditions between bindings (phase 2, cpu)" in text
        assert "pruning (phase 1, in bulk, cpu)" in text
        assert text.splitlines()[-1].startswith("engine     cpu: 131,072 events and more")

    def test_it_says_why(self):
        many = pa.table({"ts": np.arange(1 << 17), "type": pa.array(["A"] * (1 << 17))})
        assert "engine     cpu: phase 1 cannot run on GPU because there is no CUDA driver" in str(cep.explain(PATTERN, many))
        assert str(cep.explain(PATTERN, many, engine="cpu")).endswith("engine     cpu: engine='cpu'")

    def test_without_events_there_is_no_engine(self):
        assert "engine" not in str(cep.explain(PATTERN))


def test_explain_names_the_card_and_the_threshold(monkeypatch):
    with_card(monkeypatch, Card(), Calibration(copy_rate=1e9, transfer_rate=1e10, latency=1e-6))
    many = pa.table({"ts": np.arange(1 << 18), "type": pa.array(["A"] * (1 << 18))})
    explained = cep.explain(PATTERN, many, threads=2)
    text = str(explained)
    assert explained.device == "a card"
    assert "properties (phase 1, in bulk, gpu)" in text
    assert "phase 2, cpu" in text
    assert "engine     gpu for phase 1 (a card), cpu for phase 2: the transfer to a card takes less time than phase 1 on 2 threads" in text
    # the plan knows nothing of the machine
    assert explained.plan == plan_of_table(many)


def plan_of_table(table: pa.Table):
    return make_plan(PATTERN, table.schema, Options(), Settings())


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
    assert cep.explain(PATTERN, EVENTS, gpu_memory="1MiB").plan.settings.gpu_memory == 2**20
    assert pickle.loads(pickle.dumps(plan_of(gpu_memory=5))) == replace(plan_of(), settings=Settings(gpu_memory=5))


def test_gpu_memory_means_nothing_to_the_cpu():
    assert cep.match(EVENTS, PATTERN, engine="cpu", gpu_memory=1).equals(cep.match(EVENTS, PATTERN, engine="cpu"))
