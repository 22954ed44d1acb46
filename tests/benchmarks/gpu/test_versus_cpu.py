"""The page that sets the GPU against the CPU: with records of cards, made up here, and without; sizes from which on the GPU wins."""

from __future__ import annotations

import json
import math
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from benchmarks.gpu import crossover, findings, first_queries, phase_one, questions, records, report, traffic, versus_cpu
from benchmarks.gpu.cold_start import FirstQuery
from benchmarks.gpu.end_to_end import EndToEnd
from benchmarks.gpu.facts import Fact
from benchmarks.record.folders import RESULTS
from gpu_cep_kernels.compile.jit import Kernel
from gpu_cep_kernels.device.selection import SimulatedDevice

QUESTIONS = (
    *("medical", "medical_dense", "medical_pair", "stocks", "selective", "selective_plain", "stocks_rising"),
    *("stocks_mean", "stocks_unbroken", "stocks_robust", "stocks_either", "stocks_in_a_row", "stocks_apart"),
    *("selective_counted", "selective_joined", "drivers"),
)  # fmt: skip
FACTS = {"compute capability": "0.0", "CUDA, driver": "0.0", "driver": "made up", "processor": "no processor", "commit": "none"}
SECONDS = st.floats(1e-6, 1e3)
FIRST = FirstQuery("one", 1.0, 2.5, 4.0, 0.01), FirstQuery("other", 1.0, 2.5, 6.75, 0.25)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A folder with the records that need no card, and one that is none of the check's."""
    for name in ("gpu-traffic.json", "kernel-resources.json"):
        shutil.copy(RESULTS / name, tmp_path)
    (tmp_path / "other.json").write_text("[1, 2]")
    return tmp_path


def calls(question: str, times: dict[int, tuple[float, float, float]]) -> list:
    return [EndToEnd(question, size, 7, 3, *seconds, 0.25 * seconds[1]) for size, seconds in times.items()]


def write_record(folder: Path, name: str, made_up: list, *, day: str = "2001-01-01", simulated: bool = False, **facts: str) -> Path:
    """The record of a card that there is not, as the check writes it."""
    rows = [findings.row("Facts", Fact(what, value)) for what, value in {"device": name, **FACTS, **facts}.items()]
    rows += [findings.row(crossover.CALLS, call) for call in made_up]
    rows += [findings.row(first_queries.FIRST, first_queries.FirstAnswer.of(found)) for found in FIRST]
    if made_up:
        rows.append(findings.row(crossover.TURNS, crossover.turn(made_up, 200_000)))
    parts = [report.PartResult("crossover", "made up", 1.0, rows)]
    return report.write(report.GpuReport(name, simulated, day, 1.0, parts), folder, ["crossover"])[0]


def lines_of(page: str, question: str) -> list[str]:
    return [line for line in page.splitlines() if line.startswith(f"| {question} |")]


def test_the_page_is_what_the_records_make() -> None:
    """`make pages` writes it."""
    assert versus_cpu.PAGE.read_text(encoding="utf-8") == versus_cpu.page(versus_cpu.RESULTS)


def test_without_a_record_the_page_says_so(results: Path) -> None:
    page = versus_cpu.page(results)
    assert "## On a card: not yet measured" in page
    assert 'make gpu-check GPU_CHECK_ARGS="--only crossover' in page
    for question in QUESTIONS:
        turn, rate, transfer, travels = lines_of(page, question)
        assert turn == f"| {question} |{' not yet measured |' * 3}"
        assert rate == f"| {question} |{' not yet measured |' * 5}"
        assert transfer.count("not yet measured") == 2
        assert "not yet measured" not in travels


def test_first_queries_are_told_by_their_parts(results: Path) -> None:
    write_record(results, "No Card 1", calls("medical", {10_000: (0.001, 0.004, 0.002)}))
    page = versus_cpu.page(results)
    assert lines_of(page, "one") == ["| one | 1.0 s | 2.5 s | 4.0 s | 7.5 s | ≤ 10 s: met | 10 ms |"]
    assert lines_of(page, "other") == ["| other | 1.0 s | 2.5 s | 6.8 s | 10.2 s | ≤ 10 s: not met | 250 ms |"]


def test_a_record_fills_the_page(results: Path) -> None:
    times = {10_000: (0.001, 0.004, 0.002), 1_000_000: (0.1, 0.025, 0.02)}
    write_record(results, "No Card 1", calls("medical", times))
    page = versus_cpu.page(results)
    assert "## On No Card 1, 2001-01-01" in page
    assert "no processor, CUDA 0.0, driver made up, commit none." in page
    assert "`benchmarks/results/no-card-1-2001-01-01-crossover.md`" in page
    turn, *rates, transfer, _ = lines_of(page, "medical")
    assert turn == "| medical | about 100,000 | about 40,000 | 10,000 to 1,000,000 events |"
    assert rates == [
        "| medical | 10,000 | 10.0 M/s | 3 | 2.5 M/s | 5.0 M/s |",
        "| medical | 1,000,000 | 10.0 M/s | 3 | 40.0 M/s | 50.0 M/s |",
    ]
    assert transfer == "| medical | 13.1 | 25% | 5.00 |"
    assert lines_of(page, "stocks")[0] == f"| stocks |{' not yet measured |' * 3}"
    assert "## On a card: not yet measured" not in page


def test_of_each_card_the_newest_record_counts(results: Path) -> None:
    some, more = {10_000: (1.0, 2.0, 3.0)}, {10_000: (1.0, 2.0, 3.0), 100_000: (1.0, 2.0, 3.0)}
    write_record(results, "No Card 1", calls("medical", more), day="2001-01-01")
    newest = write_record(results, "No Card 1", calls("medical", some), day="2001-01-02")
    other = write_record(results, "No Card 2", calls("medical", some), day="2000-01-01")
    write_record(results, "No Card 3", [])
    found = records.newest_records(results)
    assert [record.path for record in found] == [newest, other]


def test_records_of_the_simulator_are_refused(results: Path) -> None:
    made_up = calls("medical", {10_000: (1.0, 2.0, 3.0)})
    path = write_record(results, "CUDA simulator", made_up, simulated=True)
    with pytest.raises(records.NoCard, match="simulator"):
        versus_cpu.page(results)
    record = json.loads(path.read_text())
    record["simulated"] = False
    record["parts"][0]["findings"] = [found for found in record["parts"][0]["findings"] if found["record"].get("what") != "driver"]
    path.write_text(json.dumps(record))
    with pytest.raises(records.NoCard, match="does not tell: driver"):
        versus_cpu.page(results)


def test_a_record_keeps_numbers(results: Path) -> None:
    made_up = calls("stocks", {10_000: (1 / 3, 2 / 3, 0.1), 100_000: (1.0, 0.3, 0.2)})
    path = write_record(results, "No Card 1", made_up)
    (found,) = records.newest_records(results)
    assert found.calls == tuple(made_up)
    assert found.turns == (crossover.turn(made_up, 200_000),)
    assert asdict(made_up[0]) in [finding["record"] for finding in json.loads(path.read_text())["parts"][0]["findings"]]


@given(
    st.floats(1e4, 1e7),
    st.floats(1e-9, 1e-6),
    st.floats(0.1, 10.0),
    st.floats(0.1, 1.0),
    st.lists(st.integers(10**2, 10**9), min_size=2, max_size=8, unique=True),
)
def test_powers_meet_where_they_meet(meeting: float, rate: float, power: float, slower: float, sizes: list[int]) -> None:
    """Times that are powers of the size are interpolated exactly."""
    sizes = sorted(sizes)
    assume(all(abs(math.log(size / meeting)) > 1e-6 for size in sizes))
    cpu = [rate * size**power for size in sizes]
    gpu = [rate * meeting**slower * size ** (power - slower) for size in sizes]
    found = crossover.turning_size(sizes, cpu, gpu)
    if meeting > sizes[-1]:
        assert found is None
    elif meeting < sizes[0]:
        assert found == sizes[0]
    else:
        assert found == pytest.approx(meeting, rel=1e-6, abs=1.5)


@given(st.lists(st.tuples(SECONDS, SECONDS), min_size=1, max_size=8))
def test_the_gpu_wins_from_the_turn_on_and_not_before(times: list[tuple[float, float]]) -> None:
    turning_size = crossover.turning_size
    sizes = [10_000 * 10**step for step in range(len(times))]
    cpu, gpu = zip(*times, strict=True)
    found = turning_size(sizes, cpu, gpu)
    if found is None:
        assert gpu[-1] >= cpu[-1]
        return
    assert all(there < here for size, here, there in zip(sizes, cpu, gpu, strict=True) if size > found)
    lost = [size for size, here, there in zip(sizes, cpu, gpu, strict=True) if there >= here]
    assert found >= max(lost, default=sizes[0])
    assert not lost or found <= sizes[sizes.index(lost[-1]) + 1]
    assert turning_size(sizes, [2 * each for each in cpu], [2 * each for each in gpu]) == found


@pytest.mark.parametrize(("most", "sizes"), [(1, [10_000]), (99_999, [10_000]), (10**8, [10**exponent for exponent in range(4, 9)])])
def test_sizes_grow_tenfold(most: int, sizes: list[int]) -> None:
    assert crossover.sizes_up_to(most) == sizes


class OnCpu(SimulatedDevice):
    """A device whose kernels run compiled on the CPU."""

    def launch(self, kernel: Kernel[..., Any], size: int, *arguments: Any) -> None:
        kernel(0, size, *((0,) if kernel.slotted else ()), *arguments)


def test_sizes_grow_while_time_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a device that the CPU plays."""
    device = OnCpu()
    monkeypatch.setattr("gpu_cep.engine.phase_one.engine_choice.open_device", lambda: device)
    question, calibration = questions.QUESTIONS["stocks"], crossover.calibrate(device)

    def measured(seconds: float) -> list:
        check = findings.Check(device, findings.Deadline.after(seconds), 100_000, False)
        return list(crossover.measured(check, 1e9, calibration, question, check.deadline))

    *rows, turn = measured(600)
    assert [row.record["events"] for row in rows] == [10_000, 100_000]
    assert (turn.record["least"], turn.record["most"]) == (10_000, 100_000)
    row, told, turn = measured(-1)
    assert (row.record["events"], turn.record["most"]) == (10_000, 10_000)
    assert told.text == "stocks: not more than 10,000 events, for want of time."


def test_what_travels_is_counted() -> None:
    """About as many bytes as the columns have, for an event pattern and an interval pattern; codes of text may be narrower there."""
    for name in ("medical", "drivers"):
        question, size = questions.QUESTIONS[name], 20_000
        found = traffic.traffic(question, size)
        table = question.events(size)
        plan = question.plan(size, table.schema, "gpu")
        columns = phase_one.transferred_bytes(plan, table)
        assert columns / 2 < found.up < 1.5 * columns
        assert 0 < found.down < columns
        assert found.on_device[0] == "labels"


@pytest.mark.parametrize("recorded", traffic.read_traffic(RESULTS), ids=lambda row: row.question)
def test_a_run_takes_no_more_of_a_device_than_is_recorded(recorded: traffic.Traffic) -> None:
    """`python -m benchmarks.gpu.traffic` records what it takes, where it takes less."""
    size = 20_000
    found = traffic.traffic(questions.QUESTIONS[recorded.question], size)
    assert found.launches <= recorded.launches
    assert found.calls <= recorded.calls
    assert found.waits <= recorded.waits
    # few events fill a piece of memory less evenly
    for share in ("up", "moved"):
        assert getattr(found, share) / size <= 1.1 * getattr(recorded, share) / recorded.events


def test_the_record_of_what_travels_has_every_question() -> None:
    rows = traffic.read_traffic(RESULTS)
    assert [(row.question, row.about) for row in rows] == [(each.name, each.about) for each in questions.QUESTIONS.values()]
    assert tuple(row.question for row in rows) == QUESTIONS
