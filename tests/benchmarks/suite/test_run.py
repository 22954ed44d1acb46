"""The benchmarks' command: its page, its guard by ratio, and the comparison of two records."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.baselines import floors, measure
from benchmarks.baselines.environment import environment
from benchmarks.spark import peer
from benchmarks.suite import compare, extents, guard, memory, report, run, startup
from benchmarks.workloads import questions

WORKLOADS = ("medical", "selective")


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Any:
    """An extent of seconds."""
    sizes = {"events": 20_000, "curve_events": 10_000, "algorithm_events": 5_000, "repeats": 1}
    found = replace(extents.QUICK, **sizes, streams=(10, 100), windows=(1, 2))
    monkeypatch.setitem(extents.EXTENTS, "quick", found)
    return found


@pytest.fixture
def results(small: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder to which the command writes."""
    monkeypatch.setattr(run, "RESULTS", tmp_path)
    monkeypatch.setattr(guard, "RECORDED", tmp_path / "stage-ratios.json")
    return tmp_path


def test_page_record_and_plots(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main(["--only", *WORKLOADS, "--without", "memory", "startup", "spark", "--record"]) == 0
    (page,), plots = results.glob("*.md"), sorted(path.name for path in results.glob("*/*.svg"))
    assert plots == ["events.svg", "stages.svg", "streams.svg", "window.svg"]
    text = page.read_text()
    assert all(f"({page.stem}/{plot})" in text for plot in plots)
    assert all(f"## {title}" in text for title in ("Events per second", "By algorithm", "Guard", "Stages", "Cost per event by window"))
    record = json.loads(page.with_suffix(".json").read_text())
    assert {timing["workload"] for timing in record["timings"]} == set(WORKLOADS)
    assert {rate["algorithm"] for rate in record["algorithms"] if rate["seconds"]} >= {"auto", "ses_automaton", "nfab", "lazy_chain"}
    recorded = json.loads((results / "stage-ratios.json").read_text())
    assert recorded["events"] == 20_000
    assert {name.split("/")[0] for name in recorded["ratios"]} == set(WORKLOADS)
    assert str(page) in capsys.readouterr().out


def test_a_stage_beyond_its_recorded_ratio_fails_the_run(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    short = ["--only", "medical", "--without", "algorithms", "curves", "memory", "startup", "spark"]
    assert run.main(short) == 0
    assert "No ratios are recorded for this number of events" in capsys.readouterr().out
    (results / "stage-ratios.json").write_text(json.dumps({"events": 20_000, "ratios": {"medical/count/order": -1.0}}))
    assert run.main(short) == 1
    assert "0 of 1 stages" in capsys.readouterr().out


def record_of(scale: float, copy: float) -> dict[str, Any]:
    """A record in which everything takes `scale` times as long, the copy of the columns `copy` times."""
    found = report.Report(
        replace(environment(report.PACKAGES), processors=2, commit=f"c{scale}"),
        "quick",
        timings=[measure.Timing("medical", 1_000, 10, 1, "count", "gpu_cep", 1, 0.5 * scale, 7)],
        floors=[floors.Floor("medical", floors.COPY, 0.1 * copy)],
        stages=[measure.Stages("medical", "count", {"events": 1_000}, {"labels": 0.2 * scale, "keys": 1e-6}, 0.4 * scale)],
        startup=[startup.StartUp("warm", 0.1 * scale, 1.0 * scale, 0.1, 0.1)],
        memory=[memory.MemoryUse("medical", "count", 100, 2_000, int(4_000 * scale))],
    )
    return asdict(found)


def test_comparison_is_in_multiples_of_each_runs_own_floor() -> None:
    found = compare.changes(record_of(1.0, 1.0), record_of(3.0, 2.0))
    changes = {(change.part, change.name.split(", ")[-1]): change for change in found}
    assert changes["stages", "labels"].ratio == pytest.approx(3.0)
    assert changes["stages", "labels"].in_floors == pytest.approx(1.5)
    assert ("stages", "keys") not in changes  # too short to say anything
    assert changes["floors", "copy of the columns"].in_floors == pytest.approx(1.0)
    assert changes["startup", "first_match"].in_floors == pytest.approx(3.0)  # has no floor
    assert changes["memory", "count"].in_floors == pytest.approx(3.0)


def test_compare_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, scale in (("before", 1.0), ("after", 2.0)):
        (tmp_path / f"{name}.json").write_text(json.dumps(record_of(scale, 1.0)))
    paths = [str(tmp_path / "before.json"), str(tmp_path / "after.json")]
    assert compare.main(paths) == 0
    assert "| timings | 1 | 2.00 | 2.00 |" in capsys.readouterr().out
    assert compare.main([*paths, "--limit", "1.5"]) == 1
    assert "is 2.00 × what it was, limit 1.5" in capsys.readouterr().err
    assert compare.main([*paths[::-1], "--limit", "1.5"]) == 0


def test_compare_refuses_runs_of_other_sizes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    few, many = record_of(1.0, 1.0), record_of(1.0, 1.0)
    many["timings"][0]["events"] = 2_000
    paths = [tmp_path / "few.json", tmp_path / "many.json"]
    for path, record in zip(paths, (few, many), strict=True):
        path.write_text(json.dumps(record))
    with pytest.raises(SystemExit):
        compare.main([str(path) for path in paths])
    assert "questions of [1000] events" in capsys.readouterr().err


@pytest.mark.parametrize(("text", "said"), [("{", "cannot be read"), ("[]", "no record"), ('{"environment": {}}', "has no 'extent'")])
def test_compare_refuses_other_files(tmp_path: Path, text: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "other.json"
    other.write_text(text)
    with pytest.raises(SystemExit) as ended:
        compare.main([str(other), str(other)])
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


@pytest.mark.full
def test_spark_and_its_loop_count_alike(tmp_path: Path) -> None:
    timings = peer.measure_spark(questions.WORKLOADS["medical"], 20_000, 5_000, tmp_path, 1)
    assert [timing.contestant for timing in timings].count("gpu_match") == 2
    assert any(timing.contestant.startswith("applyInPandas") and timing.answer > 0 for timing in timings)
