"""The GPU check: a command whose parts are processes, refused without a device, and able to fail."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import pytest

import gpu_cep
from benchmarks.gpu import check, conformance, findings, join, launches, parts
from benchmarks.gpu.facts import Fact
from benchmarks.gpu.process import finished
from benchmarks.gpu.report import GpuReport, PartResult, write
from gpu_cep.errors import EngineUnavailable
from gpu_cep_kernels.compile.jit import simulated
from gpu_cep_kernels.device.failures import DeviceLost
from tests.drawn.queries import Case
from tests.gpu.test_check import check_record
from tests.kernel_cases import CASES
from tests.requirements import require_modules

ROOT = Path(__file__).resolve().parents[3]
CHECK = findings.Check(None, findings.Deadline.after(3600), 0, True)


def gpu_check(*arguments: str, simulated: bool) -> subprocess.CompletedProcess[str]:
    paths = [str(ROOT), str(ROOT / "kernels"), os.environ.get("PYTHONPATH", "")]
    settings = {"PYTHONPATH": os.pathsep.join(paths), "NUMBA_ENABLE_CUDASIM": "1" if simulated else "0", "CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, "-m", "benchmarks.gpu.check", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **settings}, cwd=ROOT, check=False)


@pytest.mark.full
def test_all_parts_run_in_processes_of_their_own(tmp_path: Path) -> None:
    done = gpu_check("--out", str(tmp_path), "--minutes", "40", simulated=True)
    assert done.returncode == 0, done.stdout + done.stderr
    check_record(tmp_path, done.stdout)


def test_a_part_runs_in_a_process_of_its_own(tmp_path: Path) -> None:
    done = gpu_check("--only", "device", "--out", str(tmp_path), simulated=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (written,) = tmp_path.glob("*.json")
    (part,) = json.loads(written.read_text())["parts"]
    assert (part["name"], {found["table"] for found in part["findings"]}) == ("device", {"Facts"})


def test_without_a_device_it_says_why() -> None:
    done = gpu_check("--quick", simulated=False)
    assert done.returncode == 2
    assert done.stdout.partition("\n\n")[2].startswith("EngineUnavailable: there is no GPU to check: ")


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(check, "REQUIRED", ("json", "no_such_package"))
    assert check.main([]) == 2
    versions, _, refusal = capsys.readouterr().out.partition("\n\n")
    assert versions.startswith("Python ")
    assert refusal.splitlines() == [
        "EngineUnavailable: cannot be imported: no_such_package (python -m pip install no_such_package)",
        "no_such_package: ModuleNotFoundError: No module named 'no_such_package'",
    ]


class LosingParts:
    """Processes of a part that lose the device at the items `fatal`."""

    ITEMS = ("a", "b", "c", "d")

    def __init__(self, *fatal: str) -> None:
        self.fatal = fatal
        self.calls: list[tuple[bool, list[str]]] = []

    def finished(self, command: list[str], seconds: float, environment: dict[str, str]) -> tuple[int, str]:
        path = Path(command[command.index("--findings") + 1])
        without = command[command.index("--without") + 1 :] if "--without" in command else []
        most = int(command[command.index("--most") + 1]) if "--most" in command else None
        asked = [item for item in self.ITEMS if item not in without][:most]
        self.calls.append((environment.get("CUDA_LAUNCH_BLOCKING") == "1", asked))
        with path.open("w") as lines:
            for item in asked:
                print(json.dumps({"kind": "begun", "text": item}), file=lines)
                print(json.dumps({"kind": "fault" if item in self.fatal else "note", "text": item}), file=lines)
                if item in self.fatal:
                    return parts.LOST, "the end"
        return 0, ""


def lost_run(monkeypatch: pytest.MonkeyPatch, *fatal: str) -> tuple[list[tuple[bool, list[str]]], list[tuple[str, str]]]:
    """The processes that a part had, and what was found."""
    losing = LosingParts(*fatal)
    monkeypatch.setattr(parts, "finished", losing.finished)
    result = parts.run_part("kernels", 600, check.arguments([]))
    return losing.calls, [(found.kind, found.text) for found in result.findings]


def test_a_part_goes_on_behind_the_item_that_lost_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    calls, found = lost_run(monkeypatch, "b")
    assert calls == [(False, ["a", "b", "c", "d"]), (True, ["b"]), (False, ["c", "d"])]
    again = ("note", "Again, with CUDA_LAUNCH_BLOCKING=1: b")
    assert found == [("note", "a"), ("fault", "b"), again, ("fault", "b"), ("note", "c"), ("note", "d")]


def test_a_part_that_loses_the_device_again_and_again_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    calls, found = lost_run(monkeypatch, "a", "b", "c", "d")
    assert len(calls) == 1 + 2 * parts.MOST_LOST
    assert found[-1][0] == "fault"
    assert "The part lost the device." in found[-1][1]


def test_a_lost_device_ends_a_part_and_want_of_memory_does_not(tmp_path: Path) -> None:
    errors = {"small": MemoryError("2 GiB"), "fatal": EngineUnavailable("no card"), "later": ValueError("no good")}
    errors["fatal"].__cause__ = DeviceLost("IllegalAddress")

    def fail(error: Exception):
        raise error

    path = tmp_path / "findings"
    with pytest.raises(DeviceLost):
        findings.write_findings(path, findings.in_time(CHECK, errors, fail))
    assert [(found.kind, found.text) for found in findings.read_findings(path)] == [
        ("begun", "small"),
        ("fault", "small: out of memory: MemoryError: 2 GiB"),
        ("begun", "fatal"),
        ("fault", "fatal: the device is lost: EngineUnavailable: no card"),
    ]


def test_records_of_single_parts_make_one(tmp_path: Path) -> None:
    paths = [record(tmp_path, name) for name in ("kernels", "warmup")]
    assert check.main(["--join", *map(str, paths), "--out", str(tmp_path / "joined")]) == 0
    (written,) = (tmp_path / "joined").glob("*.json")
    report = json.loads(written.read_text())
    assert [part["name"] for part in report["parts"]] == ["device", "warmup", "kernels"]
    assert report["seconds"] == 14


@pytest.mark.parametrize(("second", "message"), [(("kernels", "580"), "in an earlier record"), (("warmup", "575"), r"driver \(580, 575\)")])
def test_records_that_do_not_belong_together_are_refused(second: tuple[str, str], message: str, tmp_path: Path) -> None:
    paths = [record(tmp_path, "kernels"), record(tmp_path / "second", *second)]
    with pytest.raises(join.Unlike, match=message):
        join.joined(paths)


def record(folder: Path, part: str, driver: str = "580") -> Path:
    """The record of one part beside the facts."""
    facts = [findings.row("Facts", Fact("device", "a card")), findings.row("Facts", Fact("driver", driver))]
    found = [PartResult("device", "Device", 1, facts), PartResult(part, "Title", 2, [findings.note(part)])]
    return write(GpuReport("a card", False, "2026-11-24", 7, found), folder, (part,))[0]


def test_a_part_that_hangs_is_ended() -> None:
    # a shell says so at once, however busy the machine is
    status, output = finished(["sh", "-c", "echo begun; sleep 600"], 5.0)
    assert (status, output) == (None, "begun\n")
    (found,) = parts.ending(status, output)
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
    findings.write_findings(path, findings.in_time(CHECK, items, measure))
    with path.open("a") as lines:
        lines.write('{"kind": "no')
    found = [(each.kind, each.text) for each in findings.read_findings(path) if each.kind != "begun"]
    assert found == [("note", "one"), ("fault", "second: ValueError: no good"), ("note", "two")]


def test_time_that_is_up_leaves_a_note() -> None:
    (found,) = findings.in_time(CHECK.until(findings.Deadline.after(-1)), {"a": 1, "b": 2}, lambda item: [findings.fault("ran")])
    assert (found.kind, found.text) == ("note", "out of time before: a, b")


def test_each_item_has_an_even_share_of_what_is_left() -> None:
    shares = findings.in_turn(CHECK.until(findings.Deadline.after(100)), {"a": 1, "b": 2}, lambda item, own: [findings.note(str(own.left))])
    assert [float(share.text) for share in shares if share.kind == "note"] == [pytest.approx(50, abs=5), pytest.approx(100, abs=5)]


def test_engines_that_differ_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    match = gpu_cep.match

    def differing(*arguments, engine: str, **options):
        table = match(*arguments, engine="cpu", **options)
        return table.slice(1) if engine == "gpu" else table

    monkeypatch.setattr(gpu_cep, "match", differing)
    with pytest.raises(conformance.Disagreement, match="PATTERN a"):
        conformance.compare(Case("PATTERN a", conformance.CORNERS["int64 times from end to end"].events()), output="indices")


@pytest.mark.parametrize(
    "kind",
    [
        "products and sums, which must not be fused", "NaN, infinities, -0.0, NULLs and the ends of int64",
        "several groups of tiles", "joins", "runs of more steps than a launch allows",
    ],
)  # fmt: skip
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


def test_what_numba_tells_of_a_kernel_is_told() -> None:
    case = next(case for case in CASES if case.kernel.slotted)
    resident = {"max_cooperative_grid_blocks": lambda threads: 132 * 1024 // threads}
    compiled = SimpleNamespace(regs_per_thread=54, local_mem_per_thread=0, **resident)
    told = launches.occupancy(case, compiled).cells()
    assert (told["slots"], told["registers"], told["blocks at a time"]) == ("yes", "54", "528")


@pytest.mark.skipif(simulated(), reason="the simulator's kernels are not compiled")
def test_numba_tells_it_by_these_names() -> None:
    require_modules("numba_cuda")
    from numba.cuda.dispatcher import _Kernel

    names = ("regs_per_thread", "local_mem_per_thread", "max_cooperative_grid_blocks")
    assert [name for name in names if not hasattr(_Kernel, name)] == []
