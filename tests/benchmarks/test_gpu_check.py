"""The GPU check: whole on the CUDA simulator, refused without a device, and able to fail."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

import gpu_cep
from benchmarks.gpu import check, conformance, findings
from benchmarks.gpu.process import finished
from tests.drawn.queries import Case

ROOT = Path(__file__).resolve().parents[2]


def gpu_check(*arguments: str, simulated: bool) -> subprocess.CompletedProcess[str]:
    paths = [str(ROOT), str(ROOT / "kernels"), os.environ.get("PYTHONPATH", "")]
    settings = {"PYTHONPATH": os.pathsep.join(paths), "NUMBA_ENABLE_CUDASIM": "1" if simulated else "0", "CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, "-m", "benchmarks.gpu.check", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **settings}, cwd=ROOT, check=False)


@pytest.mark.full
def test_all_parts_run_on_the_simulator(tmp_path: Path) -> None:
    # time for a busy machine to compile what the CPU's side runs, too
    done = gpu_check("--out", str(tmp_path), "--minutes", "40", simulated=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "CUDA simulator: times mean nothing." in done.stdout
    (written,) = tmp_path.glob("*.json")
    report = json.loads(written.read_text())
    tables = {found["table"] for part in report["parts"] for found in part["findings"] if found["kind"] == "row"}
    assert report["simulated"]
    assert tables == {
        "Facts",
        "Corners",
        "Random cases",
        "Same situations",
        "Same tables",
        "Kernels with the CPU's outputs, bit for bit",
        "Primitives against their floors",
        "Kernels against their floors",
        "Whole calls, output='count'",
        "Phase 1 alone",
        "Whole calls by size, output='count'",
        "From which size on the GPU wins",
    }
    assert written.with_suffix(".md").read_text().startswith("# GPU check on CUDA simulator")


def test_without_a_device_it_says_why() -> None:
    done = gpu_check("--quick", simulated=False)
    assert done.returncode == 2
    assert done.stdout.startswith("EngineUnavailable: there is no GPU to check: ")


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(check, "REQUIRED", ("numpy", "no_such_package"))
    assert check.main([]) == 2
    assert capsys.readouterr().out == "EngineUnavailable: not installed: no_such_package (python -m pip install no_such_package)\n"


def test_a_part_that_hangs_is_ended() -> None:
    status, output = finished([sys.executable, "-uc", "print('begun'); import time; time.sleep(60)"], 3.0)
    assert (status, output) == (None, "begun\n")
    (found,) = check.ending(status, output)
    assert found.kind == "fault"
    assert "ran out of time" in found.text
    assert "begun" in found.text


def test_what_a_part_found_before_it_broke_off_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "findings"

    def measure(item: str):
        if item == "bad":
            raise ValueError("no good")
        yield findings.note(item)

    items = {"first": "one", "second": "bad", "third": "two"}
    findings.write_findings(path, findings.in_time(findings.Deadline.after(60), items, measure))
    with path.open("a") as lines:
        lines.write('{"kind": "no')
    found = [(each.kind, each.text) for each in findings.read_findings(path)]
    assert found == [("note", "one"), ("fault", "second: ValueError: no good"), ("note", "two")]


def test_time_that_is_up_leaves_a_note() -> None:
    (found,) = findings.in_time(findings.Deadline.after(-1), {"a": 1, "b": 2}, lambda item: [findings.fault("ran")])
    assert (found.kind, found.text) == ("note", "out of time before: a, b")


def test_each_item_has_an_even_share_of_what_is_left() -> None:
    shares = findings.in_turn(findings.Deadline.after(100), {"a": 1, "b": 2}, lambda item, own: [findings.note(str(own.left))])
    assert [float(share.text) for share in shares] == [pytest.approx(50, abs=5), pytest.approx(100, abs=5)]


def test_engines_that_differ_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    match = gpu_cep.match

    def differing(*arguments, engine: str, **options):
        table = match(*arguments, engine="cpu", **options)
        return table.slice(1) if engine == "gpu" else table

    monkeypatch.setattr(gpu_cep, "match", differing)
    with pytest.raises(conformance.Disagreement, match="PATTERN a"):
        conformance.compare(Case("PATTERN a", conformance.CORNERS["int64 times from end to end"].events()), output="indices")


@pytest.mark.parametrize("kind", ["products and sums, which must not be fused", "NaN, infinities, -0.0, NULLs and the ends of int64"])
def test_corners_have_matches(kind: str) -> None:
    answers = [conformance.answer(case, engine="cpu", output="indices") for case in conformance.CORNERS[kind].cases(conformance.MODES)]
    assert all(answer.startswith("error EventError") or "{" in answer for answer in answers)
    assert sum("{" in answer for answer in answers) > len(answers) / 2


def test_fused_products_would_be_noticed() -> None:
    """`y * 0.1 + 0.2` in one operation has other bits than the column that the corner queries compare it with."""
    rows = conformance.CORNERS["products and sums, which must not be fused"].events().to_pylist()
    assert any(fused(row["y"], 0.1, 0.2) != row["z"] for row in rows)
    assert any(fused(row["y"], row["w"], -row["p"]) != 0 for row in rows)


def fused(left: float, right: float, summand: float) -> float:
    """``left * right + summand``, rounded once."""
    return float(Fraction(left) * Fraction(right) + Fraction(summand))
