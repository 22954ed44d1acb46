"""Trials of engines over the first events of whole queries: a device that the CPU plays, and a clock that the test sets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pytest

import gpu_cep as cep
from gpu_cep.engine import answers, trials
from gpu_cep.engine import run as engine_run
from gpu_cep.engine.accounting.match_budget import Spent
from gpu_cep.engine.accounting.resources import Resources
from gpu_cep.engine.answers import answer
from gpu_cep.engine.events.own_events import TimeSlice
from gpu_cep.engine.events.reported import Reported
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.input.input_events import Origin
from gpu_cep.engine.input.picked_rows import PickedRows
from gpu_cep.engine.intervals.run import find_situations
from gpu_cep.engine.phase_one import engine_choice, engine_rates
from gpu_cep.engine.phase_one.engine_costs import Calibration
from gpu_cep.engine.phase_one.engine_rates import Pace, Way
from tests.engine.phase_one.test_engine_rates import forget, pace
from tests.gpu.spoilt_device import SpoiltDevice, cupy_if_installed

# Sizes that a test can afford: a device is looked for from so many events on, tried on so many, after so many.
LEAST, TRIED, FIRST = 8, 64, 256
SIZE = 400
RISING = "PATTERN SEQ(A a, B b+, C c) WHERE b[i].x > b[i-1].x WITHIN 20"
PLAIN = "PATTERN SEQ(A a, B b+, C c) WITHIN 20"
JOINED = "PATTERN SEQ(A a, B b) WHERE skip_till_any_match { a.x < b.x } WITHIN 5"
IN_A_ROW = "PATTERN SEQ(A a, b+) WHERE partition_contiguity { b[1].x > a.x AND b[i].x > b[i-1].x } WITHIN 20"
APART = {"after_match": "skip_past_last"}
KINK = "PATTERN SEQ(A a, B b+) WHERE partition_contiguity { b.x > a.x } WITHIN 20"
SITUATIONS = "DEFINE X AS x > 5, Y AS x < 3 PATTERN X before Y WITHIN 20"
FASTER = {Way.CPU: pace(5e4), Way.GPU: pace(2e4), Way.GPU_THEN_CPU: pace(3e4)}
SLOWER = {Way.CPU: pace(5e4), Way.GPU: pace(9e4), Way.GPU_THEN_CPU: pace(9e4)}
SEARCHED_BY_THE_CPU = {Way.CPU: pace(5e4), Way.GPU: pace(3e4), Way.GPU_THEN_CPU: pace(2e4)}


@dataclass
class Machine:
    """What phase 1 takes in each way, and in which ways it was run, over how many events."""

    device: SpoiltDevice
    paces: Mapping[Way, Pace]
    now: float = 0.0
    runs: list[tuple[Way, int]] = field(default_factory=list)

    def ways(self) -> list[Way]:
        """The ways of all runs, each once after another of its kind."""
        return [way for k, (way, _) in enumerate(self.runs) if k == 0 or self.runs[k - 1][0] is not way]


@pytest.fixture
def machine(monkeypatch) -> Iterator[Machine]:
    device = SpoiltDevice(cupy_if_installed(), 7)
    device.simulated, device.name = False, "a card"
    found, phase_one = Machine(device, FASTER), engine_run.phase_one

    def timed(run, chosen):
        found.runs.append((chosen.way, len(run.columns)))
        found.now += found.paces[chosen.way].seconds(len(run.columns))
        return phase_one(run, chosen)

    def timed_situations(run, chosen, choose_order):
        found.runs.append((chosen.way, len(run.columns)))
        found.now += found.paces[chosen.way].seconds(len(run.columns))
        return find_situations(run, chosen, choose_order)

    monkeypatch.setattr(engine_run, "phase_one", timed)
    monkeypatch.setattr(answers, "find_situations", timed_situations)
    monkeypatch.setattr(trials, "clock", lambda: found.now)
    monkeypatch.setattr(engine_choice, "open_device", lambda: device)
    monkeypatch.setattr(engine_choice, "calibrate", lambda device: Calibration(copy_rate=1e5, transfer_rate=1e9, latency=1e-9))
    monkeypatch.setattr(engine_choice, "FEWEST_EVENTS", LEAST)
    monkeypatch.setattr(engine_choice, "TRIAL", TRIED)
    monkeypatch.setattr(engine_rates, "FIRST", FIRST)
    forget()
    yield found
    forget()


def events(size: int = SIZE, seed: int = 3) -> pa.Table:
    random = np.random.default_rng(seed)
    return pa.table(
        {
            "ts": np.sort(random.integers(0, 2 * size, size)),
            "type": pa.array([*"ABCD"]).take(pa.array(random.integers(0, 4, size))),
            "x": random.integers(0, 9, size).astype(float),
            "s": pa.array([*"pq"]).take(pa.array(random.integers(0, 2, size))),
        }
    )


def found(pattern: str, table: pa.Table | None = None, engine: str = "auto", **options: object) -> pa.Table:
    options = {"partition_by": "s", "output": "indices", **options}
    return cep.match(events() if table is None else table, pattern, engine=engine, **options)


WAYS = {"faster": (FASTER, Way.GPU), "slower": (SLOWER, Way.CPU), "searched by the CPU": (SEARCHED_BY_THE_CPU, Way.GPU_THEN_CPU)}


@pytest.mark.parametrize("paces", WAYS)
@pytest.mark.parametrize(
    ("pattern", "options"),
    [(RISING, {}), (JOINED, {"algorithm": "join_tree"}), (RISING, APART), (PLAIN, APART), (IN_A_ROW, APART)],
    ids=["walked", "joined", "taken apart", "labels, taken apart", "neighbours, taken apart"],
)
@pytest.mark.parametrize("output", ["indices", "count", "compressed"])
def test_the_whole_query_takes_the_engine_that_was_quickest_in_a_trial(machine, paces, pattern, options, output):
    machine.paces, expected = WAYS[paces]
    wanted = found(pattern, engine="cpu", output=output, **options)
    machine.runs.clear()
    profile = cep.Profile()
    got = found(pattern, output=output, profile=profile, **options)
    if output == "compressed":
        assert got.count() == wanted.count() > 0
    else:
        assert got.equals(wanted)
    few, searched = TRIED // engine_rates.PARTS, output != "compressed" or pattern == JOINED
    tried = [Way.CPU, Way.GPU, Way.GPU_THEN_CPU][: 3 if searched else 2]
    assert machine.runs[:-1] == [(way, size) for way in tried for size in (few, few, TRIED)]
    assert machine.runs[-1] == (expected if searched or expected is Way.CPU else Way.GPU, SIZE)
    assert profile.engines == {"cpu" if expected is Way.CPU else "gpu": 1}
    assert profile.seconds["trial"] > 0


@pytest.mark.parametrize("paces", ["faster", "slower"])
@pytest.mark.parametrize("output", ["indices", "count"])
def test_situations_are_found_by_the_engine_that_was_quickest_in_a_trial(machine, paces, output):
    machine.paces, expected = WAYS[paces]
    wanted = found(SITUATIONS, engine="cpu", output=output)
    machine.runs.clear()
    profile = cep.Profile()
    assert found(SITUATIONS, output=output, profile=profile).equals(wanted)
    assert wanted.num_rows > 1
    few = TRIED // engine_rates.PARTS
    assert machine.runs == [*((way, size) for way in (Way.CPU, Way.GPU) for size in (few, few, TRIED)), (expected, SIZE)]
    assert profile.engines == {"cpu" if expected is Way.CPU else "gpu": 1}


def test_a_card_without_room_leaves_situations_to_the_cpu(machine):
    wanted = found(SITUATIONS, engine="cpu")
    assert found(SITUATIONS, gpu_memory=1).equals(wanted)
    assert machine.runs[-1] == (Way.CPU, SIZE)


@pytest.mark.parametrize("pattern", [RISING, PLAIN, KINK, SITUATIONS])
def test_trials_leave_no_trace_in_what_a_run_counts(machine, pattern):
    machine.paces, counted = SLOWER, []
    for engine in ("cpu", "auto"):
        profile = cep.Profile()
        number = found(pattern, engine=engine, profile=profile).num_rows
        counted.append((profile.counts, number))
    assert counted[0] == counted[1]
    # nor do they use up what the run may find
    assert found(pattern, max_matches=number).num_rows == number


def test_later_runs_try_nothing(machine):
    wanted = found(RISING, engine="cpu")
    found(RISING)
    machine.runs.clear()
    assert found(RISING).equals(wanted)
    assert machine.runs == [(Way.GPU, SIZE)]


def test_runs_measure_an_engine_too(machine):
    found(RISING)
    machine.paces = {**FASTER, Way.GPU: pace(5e5)}
    for _ in range(2):
        found(RISING)
    assert machine.runs[-1] == (Way.GPU_THEN_CPU, SIZE)


def test_a_card_without_room_is_left_after_one_attempt(machine, caplog):
    wanted = found(RISING, engine="cpu")
    for _ in range(2):
        machine.runs.clear()
        assert found(RISING, gpu_memory=1).equals(wanted)
        assert machine.runs[-1] == (Way.CPU, SIZE)
    assert machine.runs == [(Way.CPU, SIZE)]
    told = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(told) == 1
    assert "cannot run on GPU because its memory does not suffice: the query takes" in told[0]
    reason = cep.explain(events(), RISING, partition_by="s", output="indices", gpu_memory=1).reason
    assert reason.startswith("a card could not answer this plan: the query takes")


def test_a_card_that_fails_in_the_run_itself_is_left(machine, monkeypatch):
    wanted = found(RISING, engine="cpu")
    found(RISING)
    monkeypatch.setattr(engine_run, "phase_one", _failing(engine_run.phase_one))
    machine.runs.clear()
    assert found(RISING).equals(wanted)
    assert found(RISING).equals(wanted)
    assert machine.runs == [(Way.GPU, SIZE), (Way.CPU, SIZE)]


def _failing(phase_one):
    """Phase 1 on a card that turns out to have no room."""

    def failing(run, chosen):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr("gpu_cep.engine.phase_one.device.in_pieces._LEAST_MEMORY", 1 << 62)
            patched.setattr("gpu_cep.engine.phase_one.device.on_device._phase_one", lambda *_, **__: (_ for _ in ()).throw(MemoryError))
            return phase_one(run, chosen)

    return failing


@pytest.mark.usefixtures("machine")
def test_events_at_fault_are_told_of_the_whole_run():
    table = events()
    times = table.column("ts").to_pylist()
    table = table.set_column(0, "ts", pa.array([None, *times[1:-2], None, None]))
    with pytest.raises(cep.CepError, match="'ts' holds 3 NULLs"):
        found(RISING, table)
    with pytest.raises(cep.MatchLimitExceeded, match="more than max_matches=1 "):
        found(RISING, max_matches=1)


def test_explain_tells_what_was_measured(machine):
    text = str(cep.explain(events(), RISING, partition_by="s", output="indices"))
    assert "; engines are first tried on 64 events" in text
    assert not machine.runs
    machine.paces = SEARCHED_BY_THE_CPU
    lines = str(cep.explain(events(), RISING, partition_by="s", output="indices", run=True, threads=1)).splitlines()
    (line,) = [line for line in lines if line.startswith("engine")]
    told = "1 thread 50,000.0 ns an event, a card 30,000.0 ns an event, a card and then 1 thread 20,000.0 ns an event"
    assert line == f"engine     gpu for phase 1 (a card), cpu for phase 2: measured for this plan: {told}"


def test_parts_of_an_input_are_tried_by_their_own_first_rows(machine):
    """Rows that were picked, computed columns, and a slice of time."""
    pattern = "PATTERN SEQ(A a, B b+) WHERE a.x * 2 > 6 AND b.x > a.x WITHIN 20"
    plan = cep.explain(events(), pattern, partition_by="s", output="indices").plan
    rows = np.arange(0, SIZE, 1, dtype=np.int32)[SIZE // 8 :]
    table = events()
    picked = PickedRows(EventColumns(table, plan.query, plan.dictionaries, threads=1), rows)
    options = {"origin": Origin(numbers=rows.astype(np.int64)), "reported": Reported(TimeSlice(begin=100))}
    got = answer(plan, picked, **options)
    assert [size for _, size in machine.runs] == [8, 8, 64] * (len(machine.runs) // 3) + [len(rows)]
    assert machine.runs[-1][0] is Way.GPU
    machine.runs.clear()
    machine.paces = SLOWER
    forget()
    spent = Spent()
    assert answer(plan, picked, resources=Resources(spent=spent), **options).equals(got)
    assert got.num_rows == spent.matches > 0
    assert machine.ways()[-1] is Way.CPU
