"""What `auto` takes by what was measured: trials and runs on a clock that the test sets."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_cep.engine.phase_one import engine_choice, engine_costs, engine_rates
from gpu_cep.engine.phase_one.engine_choice import EngineChoice, choose_engine
from gpu_cep.engine.phase_one.engine_costs import Calibration
from gpu_cep.engine.phase_one.engine_rates import AGAIN, FIRST, NEVER, PARTS, TRIAL, EngineRates, Pace, Timing, Way, fit_pace
from gpu_cep.errors import EventError
from gpu_cep.plan.event_plan import EventPlan
from tests.effort import examples
from tests.engine.phase_one.test_engine_choice import Card, plan_of

JOINED = "PATTERN SEQ(A a, B b) WHERE skip_till_any_match { a.x < b.x } WITHIN 10"
WIDTH = 12
# Nanoseconds of an event: 1 for the transfer, 6.6 for what the CPU is expected to take.
SPEED = Calibration(copy_rate=6e9, transfer_rate=12e9, latency=1e-9)
CPU_EXPECTED = WIDTH * engine_costs.KEEPING_SOME / SPEED.copy_rate


@pytest.fixture(autouse=True)
def card(monkeypatch):
    """A card of that speed; what a process remembers is forgotten before and after each test."""
    found = Card()
    monkeypatch.setattr(engine_choice, "open_device", lambda: found)
    monkeypatch.setattr(engine_choice, "calibrate", lambda device: SPEED)
    forget()
    yield found
    forget()


def forget():
    for kept in (engine_choice._calibrate_once, engine_choice._log_once, engine_rates.rates_of):
        kept.cache_clear()


def pace(nanoseconds: float, milliseconds: float = 0.0) -> Pace:
    return Pace(1e-3 * milliseconds, 1e-9 * nanoseconds)


@dataclass
class World:
    """A machine on which ways take what `paces` says (None: the device cannot answer); `tried` and `ran` tell what was done."""

    paces: Mapping[Way, Pace | None]
    plan: EventPlan = field(default_factory=plan_of)
    tried: list[tuple[Way, int]] = field(default_factory=list)
    ran: list[tuple[Way, int]] = field(default_factory=list)

    def measure(self, choice: EngineChoice, events: int) -> float | None:
        self.tried.append((choice.way, events))
        found = self.paces[choice.way]
        if found is None:
            choice.rates.refuse("no room")
        return None if found is None else found.seconds(events)

    def run(self, events: int) -> EngineChoice:
        """Run over so many events, as a run does."""
        chosen = choose_engine(self.plan, events, WIDTH, 1, measure=self.measure)
        self.ran.append((chosen.way, events))
        if chosen.rates is not None:
            chosen.rates.record(chosen.way, events, self.paces[chosen.way].seconds(events))
        return chosen

    def seconds(self, done: list[tuple[Way, int]]) -> float:
        return sum(self.paces[way].seconds(events) for way, events in done)

    def explained(self, events: int) -> EngineChoice:
        return choose_engine(self.plan, events, WIDTH, 1)


@pytest.mark.parametrize(
    ("gpu", "way"),
    [(pace(2, 3), Way.GPU), (pace(9), Way.CPU), (pace(5), Way.CPU), (pace(4.9), Way.GPU), (pace(1, 900), Way.CPU)],
    ids=["faster", "slower", "equal", "a little faster", "faster for more events only"],
)
def test_the_quicker_engine_is_taken_after_a_trial(gpu, way):
    world = World({Way.CPU: pace(5), Way.GPU: gpu})
    assert world.run(FIRST).way is way
    few = TRIAL // PARTS
    assert world.tried == [(tried, events) for tried in (Way.CPU, Way.GPU) for events in (few, few, TRIAL)]
    # what it has measured holds for later runs, of any size
    assert world.run(FIRST).way is way
    assert len(world.tried) == 6


def test_a_run_that_is_too_short_for_what_the_gpu_takes_in_any_case_stays_on_the_cpu():
    world = World({Way.CPU: pace(5), Way.GPU: pace(2, 3)})
    world.run(FIRST)
    assert world.run(900_000).way is Way.CPU
    assert world.run(1_100_000).way is Way.GPU


def test_windows_are_searched_where_that_is_quicker():
    plan = plan_of(JOINED, algorithm="join_tree")
    for then, way in ((pace(1.5), Way.GPU_THEN_CPU), (pace(2.5), Way.GPU)):
        forget()
        world = World({Way.CPU: pace(5), Way.GPU: pace(2), Way.GPU_THEN_CPU: then}, plan)
        chosen = world.run(FIRST)
        assert (chosen.way, chosen.searches) == (way, way is Way.GPU)
        assert chosen.device is not None


def test_what_the_device_cannot_search_is_not_tried_there():
    world = World({Way.CPU: pace(5), Way.GPU: pace(2)})
    world.run(FIRST)
    assert {way for way, _ in world.tried} == {Way.CPU, Way.GPU}


def test_a_gpu_that_cannot_win_is_not_tried():
    """The CPU takes less time than the transfer alone."""
    world = World({Way.CPU: pace(0.9), Way.GPU: pace(1)})
    assert world.run(FIRST).way is Way.CPU
    assert {way for way, _ in world.tried} == {Way.CPU}
    # by what is measured now, no trial is worth its time
    tried = len(world.tried)
    assert world.run(FIRST).way is Way.CPU
    assert len(world.tried) == tried


def test_a_gpu_that_may_win_over_other_sizes_is_tried_with_these():
    world = World({Way.CPU: pace(0.9, 100), Way.GPU: pace(1, 200)})
    assert world.run(100 * FIRST).way is Way.CPU
    assert {way for way, _ in world.tried} == {Way.CPU}
    assert world.run(TRIAL).way is Way.CPU
    assert {way for way, _ in world.tried} == {Way.CPU, Way.GPU}


def test_nothing_is_tried_where_the_transfer_is_expected_to_take_longer(monkeypatch):
    monkeypatch.setattr(engine_choice, "calibrate", lambda device: Calibration(1e10, 1e9, 1e-9))
    world = World({Way.CPU: pace(5), Way.GPU: pace(2)})
    assert [world.run(FIRST).way for _ in range(3)] == [Way.CPU] * 3
    assert not world.tried


def test_a_gpu_that_cannot_answer_is_left_alone_until_the_next_trial(caplog):
    world = World({Way.CPU: pace(5), Way.GPU: None})
    with caplog.at_level(logging.INFO, "gpu_cep"):
        chosen = world.run(FIRST)
    assert chosen.way is Way.CPU
    assert chosen.reason == "a card could not answer this plan: no room"
    assert [record.getMessage() for record in caplog.records] == [f"engine='auto' runs on the CPU: {chosen.reason}"]
    tried = len(world.tried)
    while sum(events for _, events in world.ran) < AGAIN:
        assert world.run(FIRST).way is Way.CPU
    assert len(world.tried) == tried
    world.paces = {Way.CPU: pace(5), Way.GPU: pace(2)}
    assert world.run(FIRST).way is Way.GPU
    assert "could not" not in world.explained(FIRST).reason


def test_events_that_are_at_fault_end_a_trial_and_choose_nothing():
    def measure(choice, events):
        raise EventError("3 NULLs")

    chosen = choose_engine(plan_of(), FIRST, WIDTH, 1, measure=measure)
    assert chosen.way is Way.GPU
    assert chosen.rates.paces == {}


def test_short_runs_of_one_plan_lead_to_a_trial_together():
    world = World({Way.CPU: pace(5), Way.GPU: pace(9)})
    runs = FIRST // TRIAL
    ways = [world.run(TRIAL).way for _ in range(runs)]
    assert bool(world.tried)
    assert ways[-1] is Way.CPU


def test_a_gpu_that_turns_out_slow_is_left_before_any_trial():
    """The first run there compiles, and tells nothing; the second one does."""
    world = World({Way.CPU: pace(5), Way.GPU: pace(50)})
    assert [world.run(TRIAL).way for _ in range(4)] == [Way.GPU, Way.GPU, Way.CPU, Way.CPU]
    assert not world.tried


def test_a_gpu_that_grows_slow_is_left():
    world = World({Way.CPU: pace(5), Way.GPU: pace(2)})
    world.run(FIRST)
    world.paces = {Way.CPU: pace(5), Way.GPU: pace(20)}
    ways = [world.run(FIRST).way for _ in range(4)]
    assert ways[0] is Way.GPU
    assert ways[-1] is Way.CPU


def test_engines_are_tried_again():
    world = World({Way.CPU: pace(5), Way.GPU: pace(9)})
    world.run(FIRST)
    world.paces = {Way.CPU: pace(5), Way.GPU: pace(2)}
    tried = len(world.tried)
    while len(world.tried) == tried:
        assert sum(events for _, events in world.ran) <= FIRST + AGAIN
        world.run(FIRST)
    assert world.ran[-1][0] is Way.GPU


def test_explaining_tries_nothing_and_says_what_a_run_does():
    world = World({Way.CPU: pace(5), Way.GPU: pace(2, 3)})
    before = world.explained(FIRST)
    assert before.reason.endswith(f"events of {WIDTH} bytes on; engines are first tried on {TRIAL:,} events")
    assert engine_rates.rates_of(world.plan.fingerprint(), 1) == EngineRates()
    world.run(FIRST)
    assert world.explained(FIRST).reason == "measured for this plan: 1 thread 5.0 ns an event, a card 2.0 ns an event and 3.0 ms a run"
    world = World({Way.CPU: pace(0.9), Way.GPU: pace(1)}, plan_of("PATTERN SEQ(A a, C c) WITHIN 10"))
    world.run(FIRST)
    taken = 1e3 * WIDTH * FIRST / SPEED.transfer_rate
    assert world.explained(FIRST).reason == f"measured for this plan: 1 thread 0.9 ns an event, the transfer to a card {taken:,.1f} ms"


def test_the_cpu_is_told_once_however_often_it_is_measured(caplog):
    world = World({Way.CPU: pace(5), Way.GPU: pace(9)})
    with caplog.at_level(logging.INFO, "gpu_cep"):
        for events in (FIRST, FIRST + 1, FIRST + 2):
            world.run(events)
    told = [record.getMessage() for record in caplog.records]
    assert told == ["engine='auto' runs on the CPU: by what was measured, it takes less time for this plan than a card"]


def test_plans_and_threads_are_measured_by_themselves():
    first = World({Way.CPU: pace(5), Way.GPU: pace(2)})
    first.run(FIRST)
    other = World({Way.CPU: pace(5), Way.GPU: pace(9)}, plan_of("PATTERN SEQ(A a, C c) WITHIN 10"))
    assert other.run(FIRST).way is Way.CPU
    assert first.explained(FIRST).way is Way.GPU
    assert "measured" not in choose_engine(first.plan, FIRST, WIDTH, 2).reason


PACES = st.builds(pace, st.floats(0.5, 100), st.floats(0, 200))


@examples(100, 600)
@given(PACES, PACES, PACES, st.lists(st.integers(TRIAL // PARTS, 3 * FIRST), max_size=30), st.booleans())
def test_it_never_loses_to_the_cpu_by_more_than_trials(cpu, gpu, then, sizes, searched):
    """Before the first trial, it may lose what the GPU takes over some first events, whose number is bounded."""
    forget()
    plan = plan_of(JOINED, algorithm="join_tree") if searched else plan_of()
    world = World({Way.CPU: cpu, Way.GPU: gpu, Way.GPU_THEN_CPU: then}, plan)
    untried = 0.0
    for size in sizes:
        chosen = world.run(size)
        if not world.tried and chosen.way is not Way.CPU:
            untried += gpu.seconds(size)
    assert sum(events for way, events in world.ran if way is Way.GPU and not world.tried) < FIRST
    alone = sum(cpu.seconds(size) for size in sizes)
    assert world.seconds(world.ran) <= (1 + 1e-9) * (alone + untried) + 1e-9
    # trials cost no more than a part of the events that led to them
    measured = sum(way is Way.GPU for way, _ in world.tried) // 3
    assert measured <= 1 + sum(sizes) // AGAIN


@given(st.floats(0.1, 1e3), st.floats(0, 10), st.integers(1, 10**6), st.integers(1, 10**6))
def test_two_runs_tell_the_pace(each, fixed, few, more):
    true = Pace(fixed, 1e-3 * each)
    found = fit_pace(*(Timing(events, true.seconds(events)) for events in (few, few + more)))
    assert found.seconds(few + more) == pytest.approx(true.seconds(few + more))
    assert found.seconds(10**7) == pytest.approx(true.seconds(10**7), rel=1e-6)


def test_runs_between_which_the_clock_tells_no_difference():
    assert fit_pace(Timing(10, 2.0), Timing(100, 2.0)) == Pace(0.0, 0.02)
    assert fit_pace(Timing(10, 3.0), Timing(100, 2.0)) == Pace(0.0, 0.02)
    assert fit_pace(Timing(10, 0.1), Timing(20, 9.0)).fixed == 0.0


def test_what_is_recorded():
    rates = EngineRates()
    rates.record(Way.GPU, 100, 50.0)
    assert rates.paces == {}
    rates.record(Way.GPU, 100, 5.0)
    assert rates.paces == {Way.GPU: Pace(0.0, 0.05)}
    rates.record(Way.GPU, 100, 15.0)
    assert rates.paces[Way.GPU].each == pytest.approx(0.1)
    rates.learn(Way.CPU, Pace(1.0, 0.01))
    rates.record(Way.CPU, 100, 1.0)
    assert rates.paces[Way.CPU] == Pace(0.75, 0.0075)
    assert not rates.begin_trial(FIRST - 1)
    rates.refuse("lost")
    assert not rates.is_due(FIRST)
    rates.record(Way.GPU, 100, 5.0)
    assert rates.paces[Way.GPU] == rates.paces[Way.GPU_THEN_CPU] == NEVER
    assert NEVER.seconds(1) == math.inf
