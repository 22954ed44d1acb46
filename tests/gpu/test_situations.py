"""Interval patterns on the device against the oracle: whole and in pieces, on arrays that never mix with the host's, within its memory."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_cep
from gpu_cep.engine.accounting import match_budget
from gpu_cep.engine.accounting.match_budget import Budget
from gpu_cep.engine.answers import answer
from gpu_cep.engine.events.own_events import OwnRows, TimeSlice
from gpu_cep.engine.events.reported import Reported
from gpu_cep.engine.intervals import on_device as situations
from gpu_cep.engine.intervals import run as intervals
from gpu_cep.engine.phase_one.device import in_pieces
from gpu_cep.engine.phase_one.device.card_memory import DeviceMemory
from gpu_cep.errors import EngineUnavailable, EventError, MatchLimitExceeded
from gpu_cep.keywords import make_options
from gpu_cep.plan.settings import Settings
from gpu_cep.queries.plans import make_plan
from gpu_cep_kernels.compile.jit import Kernel
from tests.conformance.test_intervals import ALGORITHMS, OUTPUTS, answered, expected, expected_or_failing, outcome
from tests.drawn.queries import Case
from tests.drawn.situations import Size, situation_cases
from tests.effort import examples
from tests.gpu.foreign import Foreign
from tests.results import matches_of

# The simulator takes its time.
briefly, slowly = examples(8, 25), examples(10, 50)


@dataclass(frozen=True)
class Pieces:
    """As DeviceMemory, for a device that holds next to nothing."""

    bytes: int
    chunk: int
    kept_events: int
    sought: int
    candidates: int
    bound_events: int
    ranked_values: int

    def chunk_rows(self, labelling):
        return self.chunk

    def sought_events(self, resident):
        return self.sought

    def paired_borders(self, resident):
        return 1000

    def joined_candidates(self, resident, situations):
        return self.candidates


PIECES = st.builds(
    Pieces,
    bytes=st.just(1),
    chunk=st.integers(1, 9),
    kept_events=st.sampled_from([3, 1000]),
    sought=st.integers(1, 7),
    candidates=st.sampled_from([0, 1, 3, 1000]),
    bound_events=st.sampled_from([1, 5, 1000]),
    ranked_values=st.sampled_from([2, 1000]),
)
# Situations of a part, windows of a slice of time.
SEAMS = st.tuples(st.integers(4, 12), st.integers(1, 3))


def cut_to_pieces(pieces, seams, case: Case, **options):
    """The outcome on the device where all is cut into small parts."""
    part, windows = seams
    with ExitStack() as patches:
        patches.enter_context(patch.object(in_pieces, "memory_of", lambda device, plan: pieces))
        patches.enter_context(patch.object(situations, "_CHUNK", part))
        patches.enter_context(patch("gpu_cep.engine.intervals.chunks.WINDOWS", windows))
        return outcome(case, engine="gpu", **options)


@slowly
@given(situation_cases(returns=(False,)), ALGORITHMS)
def test_same_matches_in_the_same_order(case, algorithm):
    wanted = [match.rows for match in expected(case)]
    assert matches_of(answered(case, engine="gpu", algorithm=algorithm, output="indices")) == wanted


@slowly
@given(situation_cases(Size(events=40, names=3)), OUTPUTS)
def test_every_form_of_output_is_that_of_the_cpu(case, output):
    expected_or_failing(case)
    assert outcome(case, engine="gpu", output=output) == outcome(case, engine="cpu", output=output)


@slowly
@given(situation_cases(Size(events=30, names=3)), PIECES, SEAMS, OUTPUTS)
def test_pieces_change_nothing(case, pieces, seams, output):
    expected_or_failing(case)
    assert cut_to_pieces(pieces, seams, case, output=output) == outcome(case, engine="cpu", output=output)


@slowly
@given(situation_cases(Size(events=40, names=2), partitions=(("n",), ("n", "k"))), PIECES, SEAMS, OUTPUTS)
def test_many_tiny_streams(case, pieces, seams, output):
    assert cut_to_pieces(pieces, seams, case, output=output) == outcome(case, engine="cpu", output=output)


def test_host_and_device_never_mix(strict):
    @briefly
    @given(situation_cases(), PIECES, SEAMS, OUTPUTS)
    def check(case, pieces, seams, output):
        expected_or_failing(case)
        assert cut_to_pieces(pieces, seams, case, output=output) == outcome(case, engine="cpu", output=output)

    check()


SIZE = 600
LANES = pa.table(
    {
        "ts": [e // 2 for e in range(SIZE)],
        "k": [None if e % 50 == 0 else e % 4 for e in range(SIZE)],
        "x": [e * 7919 % 101 for e in range(SIZE)],
        "y": [e // 7 % 3 for e in range(SIZE)],
    }
)
LASTING = "DEFINE A AS x > 30 AT LEAST 2, B AS y > 0 PATTERN A overlaps B; A during B; A before B WITHIN 40"
BOTH = pytest.mark.parametrize("detect", ["final", "early"])


def on_cpu(text=LASTING, **options):
    return gpu_cep.match(LANES, text, engine="cpu", partition_by="k", **options)


def on_gpu(text=LASTING, **options):
    return gpu_cep.match(LANES, text, engine="gpu", partition_by="k", **options)


def memory(found):
    """Patches what a run may take of the device's memory."""
    return patch.object(in_pieces, "memory_of", lambda device, plan: found)


@BOTH
def test_the_device_does_the_work(device, detect):
    """From labels to the last join; no sequential kernel passes over events or borders."""
    launched, called = set(), set()
    launch, call = type(device).launch, Kernel.__call__

    def noted_launch(self, kernel, *arguments):
        launched.add(kernel.__name__)
        launch(self, kernel, *arguments)

    def noted_call(self, *arguments):
        called.add(self.__name__)
        return call(self, *arguments)

    with patch.object(type(device), "launch", noted_launch), patch.object(Kernel, "__call__", noted_call):
        found = on_gpu(detect=detect, output="count")
    derived = {"mark_borders", "cross_borders"} | ({"first_reaching"} if detect == "early" else set())
    assert launched >= derived | {"judge_further", "find_candidates", "keep_fitting"}
    assert called <= {"find_candidates", "keep_fitting"}  # of a sample, on the host
    assert found.equals(on_cpu(detect=detect, output="count"))


@BOTH
@pytest.mark.parametrize("output", ["matches", "events", "indices", "count"])
def test_events_that_lie_on_the_device(device, detect, output):
    columns = LANES.to_pydict() | {"k": [0 if key is None else key for key in LANES["k"].to_pylist()]}
    events = {name: Foreign(device, np.array(values)) for name, values in columns.items()}
    options = {"partition_by": "k", "detect": detect, "output": output}
    expected = gpu_cep.match(pa.table(columns), LASTING, engine="cpu", **options)
    assert gpu_cep.match(events, LASTING, engine="gpu", **options).equals(expected)
    assert len(expected)


def test_the_waterfall_is_that_of_the_cpu():
    counts = []
    for run in (on_cpu, on_gpu):
        profile = gpu_cep.Profile()
        run(profile=profile, threads=1)
        counts.append({name: count for name, count in profile.counts.items() if name != "pairs"})
    assert counts[0] == counts[1]
    assert counts[0]["matches"] > 0


@BOTH
@pytest.mark.parametrize("lacking", ["kept_events", "borders", "joined_candidates"])
def test_what_does_not_fit_goes_on_on_the_host(detect, lacking):
    """Events, the borders of their runs, or the situations and their join."""
    nothing = {
        "kept_events": property(lambda self: SIZE // 6),
        "borders": lambda self, resident: 10,
        "joined_candidates": lambda self, resident, situations: 0,
    }
    cramped = type("Cramped", (DeviceMemory,), {{"borders": "paired_borders"}.get(lacking, lacking): nothing[lacking]})
    with memory(cramped(1 << 26)):
        found = on_gpu(detect=detect)
    assert found.equals(on_cpu(detect=detect))


def test_a_failed_allocation_is_tried_again_with_less_memory():
    tried = []
    original = intervals._find_on_device

    def failing_twice(plan, choose, run, memory):
        tried.append(memory.bytes)
        found = original(plan, choose, run, memory)
        if len(tried) < 3:
            raise MemoryError("out of memory")
        return found

    profile = gpu_cep.Profile()
    wanted = on_cpu()
    with memory(DeviceMemory(1 << 26)), patch.object(intervals, "_find_on_device", failing_twice):
        found = on_gpu(max_matches=len(wanted), profile=profile)
    assert tried == [1 << 26, 1 << 25, 1 << 24]
    assert found.equals(wanted)
    assert profile.counts["matches"] == len(wanted)


@BOTH
@pytest.mark.parametrize("own", [OwnRows(np.arange(SIZE) % 3 != 1), TimeSlice(60, 200)], ids=["rows", "times"])
def test_matches_that_start_elsewhere_are_left_out(strict, detect, own):
    options = make_options(partition_by="k", detect=detect)
    found = []
    for engine in ("cpu", "gpu"):
        plan = make_plan(LASTING, LANES.schema, options, Settings(engine=engine, output="indices"))
        found.append(answer(plan, LANES, reported=Reported(own)))
    assert found[1].equals(found[0])
    assert 0 < len(found[0]) < len(on_cpu())


def test_allocations_that_never_succeed_are_an_error():
    failing = patch.object(intervals, "_find_on_device", side_effect=MemoryError("2 GiB"))
    with failing, pytest.raises(EngineUnavailable, match=r"memory.*2 GiB.*engine='cpu'"):
        on_gpu()


@BOTH
@pytest.mark.parametrize("output", ["indices", "count"])
@pytest.mark.parametrize("limit", ["max_matches", "max_steps"])
def test_limits_that_are_exceeded_are_named_with_their_window(detect, output, limit):
    with pytest.raises(MatchLimitExceeded, match=rf"more than {limit}=5 .*, in the window that starts at ts=\d+ .*k"):
        on_gpu(detect=detect, output=output, **{limit: 5})


def test_what_is_counted_is_that_of_the_cpu():
    """What an attempt on the device counts is part of the run's."""
    budgets = []

    def noted(*arguments, **spent):
        budgets.append(Budget(*arguments, **spent))
        return budgets[-1]

    with patch.object(match_budget, "Budget", noted):
        found = on_cpu(), on_gpu()
    assert [each.matches for each in budgets] == [len(found[0])] * 2
    assert budgets[0].bytes == budgets[1].bytes > 0


def test_the_size_of_the_result_is_accounted_for():
    with patch.multiple(match_budget, memory_for_results=lambda _: 10_000, SMALL_RESULT=0):
        for run in (on_cpu, on_gpu):
            with pytest.raises(MatchLimitExceeded, match="takes more than"):
                run()


@pytest.mark.parametrize(("times", "what"), [([1, None, None], "2 NULLs"), ([1.0, float("nan"), 2.0], "1 NaN")])
def test_times_that_are_none(times, what):
    events = pa.table({"ts": times, "a": [True, False, True]})
    with pytest.raises(EventError, match=f"timestamp column 'ts' holds {what}"):
        gpu_cep.match(events, "DEFINE A AS a, B AS NOT a PATTERN A meets B", engine="gpu")


@BOTH
@pytest.mark.parametrize("rows", [0, 1, 2])
def test_hardly_any_events(detect, rows):
    events = LANES.slice(0, rows)
    for output in ("matches", "events", "indices", "count"):
        options = {"detect": detect, "output": output, "partition_by": "k"}
        expected = gpu_cep.match(events, LASTING, engine="cpu", **options)
        assert gpu_cep.match(events, LASTING, engine="gpu", **options).equals(expected)


def test_explain_says_where_situations_are_found():
    text = str(gpu_cep.explain(LANES, LASTING, engine="gpu"))
    assert "situations (phase 1, in bulk, gpu)" in text
    assert "phase 2, gpu" in text
    assert "engine     gpu (" in text


@pytest.mark.parametrize("engine", ["auto", "cpu", "gpu"])
def test_every_engine_finds_situations_of_events_on_a_device(device, engine):
    """A simulated device is not taken by ``auto``: the CPU then downloads what it reads."""
    events = {name: Foreign(device, LANES[name].fill_null(9).to_numpy()) for name in LANES.column_names}
    options = {"partition_by": "k", "output": "indices"}
    expected = gpu_cep.match(LANES.set_column(1, "k", LANES["k"].fill_null(9)), LASTING, engine="cpu", **options)
    assert gpu_cep.match(events, LASTING, engine=engine, **options).equals(expected)
    assert expected.num_rows > 9
