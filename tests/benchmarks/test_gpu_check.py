"""The GPU check: whole on the CUDA simulator, refused without a device, and able to fail."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import gpu_cep
from gpu_cep.testing.strategies import Case

ROOT = Path(__file__).resolve().parents[2]
BENCHMARKS = ROOT / "benchmarks"


def gpu_check(*arguments: str, simulated: bool) -> subprocess.CompletedProcess[str]:
    paths = [str(ROOT), str(ROOT / "kernels"), os.environ.get("PYTHONPATH", "")]
    settings = {"PYTHONPATH": os.pathsep.join(paths), "NUMBA_ENABLE_CUDASIM": "1" if simulated else "0", "CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, str(BENCHMARKS / "gpu_check.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **settings}, check=False)


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch):
    """Modules of the benchmarks' folder, by name."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return import_module


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


def test_what_is_not_installed_is_named(module, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    command: ModuleType = module("gpu_check")
    monkeypatch.setattr(command, "REQUIRED", ("numpy", "no_such_package"))
    assert command.main([]) == 2
    assert capsys.readouterr().out == "EngineUnavailable: not installed: no_such_package (python -m pip install no_such_package)\n"


def test_a_part_that_hangs_is_ended(module) -> None:
    status, output = module("gpu_process").finished([sys.executable, "-uc", "print('begun'); import time; time.sleep(60)"], 3.0)
    assert (status, output) == (None, "begun\n")
    (found,) = module("gpu_check").ending(status, output)
    assert found.kind == "fault"
    assert "ran out of time" in found.text
    assert "begun" in found.text


def test_what_a_part_found_before_it_broke_off_is_kept(module, tmp_path: Path) -> None:
    findings, path = module("gpu_findings"), tmp_path / "findings"

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


def test_time_that_is_up_leaves_a_note(module) -> None:
    findings = module("gpu_findings")
    (found,) = findings.in_time(findings.Deadline.after(-1), {"a": 1, "b": 2}, lambda item: [findings.fault("ran")])
    assert (found.kind, found.text) == ("note", "out of time before: a, b")


def test_each_item_has_an_even_share_of_what_is_left(module) -> None:
    findings = module("gpu_findings")
    shares = findings.in_turn(findings.Deadline.after(100), {"a": 1, "b": 2}, lambda item, own: [findings.note(str(own.left))])
    assert [float(share.text) for share in shares] == [pytest.approx(50, abs=5), pytest.approx(100, abs=5)]


def test_engines_that_differ_are_told_apart(module, monkeypatch: pytest.MonkeyPatch) -> None:
    conformance = module("gpu_conformance")
    match = gpu_cep.match

    def differing(*arguments, engine: str, **options):
        table = match(*arguments, engine="cpu", **options)
        return table.slice(1) if engine == "gpu" else table

    monkeypatch.setattr(gpu_cep, "match", differing)
    with pytest.raises(conformance.Disagreement, match="PATTERN a"):
        conformance.compare(Case("PATTERN a", conformance.CORNERS["int64 times from end to end"].events()), output="indices")


@pytest.mark.parametrize("kind", ["products and sums, which must not be fused", "NaN, infinities, -0.0, NULLs and the ends of int64"])
def test_corners_have_matches(module, kind: str) -> None:
    conformance = module("gpu_conformance")
    answers = [conformance.answer(case, engine="cpu", output="indices") for case in conformance.CORNERS[kind].cases(conformance.MODES)]
    assert all(answer.startswith("error EventError") or "{" in answer for answer in answers)
    assert sum("{" in answer for answer in answers) > len(answers) / 2


def test_fused_products_would_be_noticed(module) -> None:
    """`y * 0.1 + 0.2` in one operation has other bits than the column that the corner queries compare it with."""
    rows = module("gpu_conformance").CORNERS["products and sums, which must not be fused"].events().to_pylist()
    assert any(fused(row["y"], 0.1, 0.2) != row["z"] for row in rows)
    assert any(fused(row["y"], row["w"], -row["p"]) != 0 for row in rows)


def fused(left: float, right: float, summand: float) -> float:
    """``left * right + summand``, rounded once."""
    return float(Fraction(left) * Fraction(right) + Fraction(summand))
