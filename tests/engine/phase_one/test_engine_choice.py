"""Which engine runs phase 1: what `auto` takes, from which number of events on, and what it says."""

from __future__ import annotations

import itertools
import logging
import pickle
import weakref
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from gpu_cep.analysis.options import Options
from gpu_cep.engine.phase_one import engine_choice, engine_costs, engine_rates
from gpu_cep.engine.phase_one.engine_choice import choose_engine
from gpu_cep.engine.phase_one.engine_costs import (
    Calibration,
    PhaseOneWork,
    break_even,
    bytes_per_event,
    calibrate,
    copies_worth,
    costs,
    work_of,
)
from gpu_cep.errors import EngineUnavailable, UnsupportedError
from gpu_cep.plan.interval_plan import AnyPlan
from gpu_cep.plan.settings import Settings
from gpu_cep.queries.plans import make_plan
from gpu_cep_kernels.device.interface import DeviceUnavailable, NoDevice

SCHEMA = pa.schema({"ts": pa.int64(), "type": pa.string(), "x": pa.float64(), "key": pa.string()})
PATTERN = "PATTERN SEQ(A a, B b) WITHIN 10"
MANY = 10**9
# 10 GB/s of copies, 20 GB/s of transfers
RATES = Calibration(copy_rate=1e10, transfer_rate=2e10, latency=1e-5)


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


def plan_of(pattern: str = PATTERN, **settings: object) -> AnyPlan:
    return make_plan(pattern, SCHEMA, Options(), Settings(**settings))


@pytest.fixture(autouse=True)
def forgotten():
    """What is kept for a process is forgotten before and after each test."""
    for kept in (engine_choice._calibrate_once, engine_choice._log_once, engine_rates.rates_of):
        kept.cache_clear()
    yield
    for kept in (engine_choice._calibrate_once, engine_choice._log_once, engine_rates.rates_of):
        kept.cache_clear()


@pytest.fixture
def no_driver(monkeypatch):
    def refuse():
        raise NoDevice("there is no CUDA driver (libcuda.so.1 is missing)")

    monkeypatch.setattr(engine_choice, "open_device", refuse)


def with_card(monkeypatch, card: Card, calibration: Calibration | None = None) -> None:
    monkeypatch.setattr(engine_choice, "open_device", lambda: card)
    if calibration is not None:
        monkeypatch.setattr(engine_choice, "calibrate", lambda device: calibration)


@pytest.mark.usefixtures("no_driver")
def test_the_refusal_travels_between_processes():
    with pytest.raises(EngineUnavailable) as caught:
        choose_engine(plan_of(engine="gpu"), MANY, 12)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (type(copy), str(copy)) == (EngineUnavailable, str(caught.value))


@pytest.mark.usefixtures("no_driver")
def test_auto_takes_the_cpu_and_says_so_once(caplog):
    with caplog.at_level(logging.INFO, "gpu_cep"):
        choices = [choose_engine(plan_of(), MANY, 12) for _ in range(3)]
    assert {chosen.device for chosen in choices} == {None}
    (record,) = caplog.records
    assert record.levelno == logging.INFO
    assert "runs on the CPU: phase 1 cannot run on GPU because there is no CUDA driver" in record.getMessage()


@pytest.mark.usefixtures("no_driver")
def test_cpu_says_nothing(caplog):
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


def test_a_card_that_cannot_be_used_keeps_no_callers_alive(monkeypatch):
    def call():
        table = Card()
        choose_engine(plan_of(), MANY, 12)
        return weakref.ref(table)

    with_card(monkeypatch, BrokenCard())
    assert all(call()() is None for _ in range(2))


def test_few_events_open_no_device(monkeypatch):
    monkeypatch.setattr(engine_choice, "open_device", lambda: pytest.fail("a device was opened"))
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
    threshold = break_even(engine_choice._calibration(), PhaseOneWork(0, 12, copies_worth(plan), 1))
    assert choose_engine(plan, threshold - 1, 12, threads=1).device is None
    taken = choose_engine(plan, threshold + 1, 12, threads=1)
    assert taken.device is card
    assert f"phase 1 on 1 thread from about {threshold:,} events of 12 bytes on" in taken.reason


def test_auto_leaves_a_card_alone_that_transfers_too_slowly(monkeypatch):
    with_card(monkeypatch, Card(), Calibration(copy_rate=1e10, transfer_rate=1e9, latency=1e-5))
    chosen = choose_engine(plan_of(), 10**15, 12, threads=4)
    assert chosen.device is None
    assert "takes longer than phase 1 on 4 threads, whatever the number of events" in chosen.reason


def test_auto_goes_where_the_events_lie(monkeypatch):
    card = Card()
    with_card(monkeypatch, card)
    assert choose_engine(plan_of(), 2, 12, resident=True).device is card
    assert choose_engine(plan_of(engine="cpu"), 2, 12, resident=True).device is None
    assert card.launches == 0


def test_brute_force_has_no_phase_1():
    with pytest.raises(UnsupportedError, match="'brute_force' is not supported with engine='gpu'; supported: auto, cpu"):
        plan_of(engine="gpu", algorithm="brute_force")
    assert "no phase 1" in choose_engine(plan_of(algorithm="brute_force"), MANY, 12).reason


def test_threads_divide_a_part_of_the_cpus_work():
    one, four, many = (costs(RATES, PhaseOneWork(10**6, 10, 3.0, threads)) for threads in (1, 4, 10**6))
    assert one.cpu == pytest.approx(3e-3)
    assert many.cpu == pytest.approx(one.cpu * engine_costs.UNDIVIDED, rel=1e-3)
    assert four.cpu - many.cpu == pytest.approx((one.cpu - many.cpu) / 4, rel=1e-3)
    assert one.gpu == four.gpu == pytest.approx(engine_costs.LAUNCHES * 1e-5 + 5e-4)


def gpu_pays(work):
    expected = costs(RATES, work)
    return expected.gpu < expected.cpu


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_the_gpu_pays_from_the_break_even_on(threads):
    threshold = break_even(RATES, PhaseOneWork(0, 16, 3.3, threads))
    assert not gpu_pays(PhaseOneWork(threshold - 1, 16, 3.3, threads))
    assert gpu_pays(PhaseOneWork(threshold + 1, 16, 3.3, threads))


def test_more_threads_than_the_transfer_is_worth():
    work = PhaseOneWork(10**12, 16, 1.3, threads=7)
    assert break_even(RATES, work) is None
    assert not gpu_pays(work)


def test_nothing_to_do_does_not_pay():
    assert not gpu_pays(PhaseOneWork(0, 16, 3.3, 1))
    assert break_even(RATES, PhaseOneWork(10**6, 0, 3.3, 1)) is None


@pytest.mark.parametrize(
    ("pattern", "settings", "copies"),
    [
        (PATTERN, {}, engine_costs.KEEPING_SOME),
        (PATTERN, {"prune": ("partition",)}, engine_costs.KEEPING_ALL),
        ("PATTERN SEQ(A a, b) WITHIN 10", {}, engine_costs.KEEPING_ALL),
        ("PATTERN SEQ(A a, B b) WITHIN 10 EVENTS", {}, engine_costs.KEEPING_ALL),
        ("PATTERN SEQ(A a, B b) WHERE skip_till_any_match { a.x < b.x } WITHIN 10", {}, engine_costs.WITHOUT_WINDOWS),
    ],
)
def test_the_work_of_phase_1_depends_on_what_is_filtered(pattern, settings, copies):
    assert copies_worth(plan_of(pattern, **settings)) == copies


def test_the_work_of_situations():
    plan = plan_of("DEFINE A AS x > 1, B AS x < 0 PATTERN A before B WITHIN 10")
    work = work_of(plan, 10**6, None, 2)
    assert work == PhaseOneWork(10**6, bytes_per_event(plan), engine_costs.SITUATIONS, 2, engine_costs.SITUATION_LAUNCHES)
    assert work_of(plan, 10**6, 12, 2).row_bytes == 12
    # more launches are worth more events
    assert break_even(RATES, work) > break_even(RATES, replace(work, launches=1))


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


@pytest.mark.parametrize(("engine", "events", "begins"), [("cpu", MANY, 0), ("gpu", 1, 1), ("auto", 1, 0), ("auto", MANY, 1)])
def test_kernels_are_compiled_ahead_only_where_a_card_may_run_them(monkeypatch, engine, events, begins):
    begun = []
    monkeypatch.setattr(engine_choice, "compile_ahead", lambda: begun.append(engine))
    monkeypatch.setattr(engine_choice, "open_device", Card)
    monkeypatch.setattr(engine_choice, "_calibration", lambda: RATES)
    plan = plan_of(engine=engine)
    choose_engine(plan, events, bytes_per_event(plan), threads=1)
    assert len(begun) == begins
    # to ask whether there is a card compiles nothing
    assert engine_choice.has_device()
    assert len(begun) == begins
