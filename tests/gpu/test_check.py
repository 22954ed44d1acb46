"""The GPU check on the simulator: each of its parts runs and finds what its tables are made of."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from benchmarks.gpu import check, parts
from gpu_cep_kernels.compile.jit import simulated

TABLES = {
    "Facts",
    "Calls that compile",
    "Corners",
    "Random cases",
    "Same row patterns",
    "Same situations",
    "Same tables",
    "Kernels with the CPU's outputs, bit for bit",
    "Primitives against their floors",
    "Kernels against their floors",
    "Host time of a launch",
    "Whole calls, output='count'",
    "Phase 1 alone",
    "Whole calls by size, output='count'",
    "From which size on the GPU wins",
}


def in_this_process(command: Sequence[str], seconds: float, environment: Mapping[str, str]) -> tuple[int, str]:
    """Run a part here, which spares it to load everything; the full suite's check gives each a process."""
    output = StringIO()
    with redirect_stdout(output):
        status = check.main(command[command.index("benchmarks.gpu.check") + 1 :])
    return status, output.getvalue()


# one item of each list
@pytest.mark.skipif(not simulated(), reason="on a card the check itself is run")
def test_all_parts_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(parts, "finished", in_this_process)
    status = check.main(["--out", str(tmp_path), "--minutes", "40", "--most", "1"])
    printed = capsys.readouterr().out
    assert status == 0, printed
    check_record(tmp_path, printed)


def check_record(folder: Path, printed: str) -> None:
    """Check what a whole run on the simulator has printed, and written to a folder."""
    assert printed.startswith("Python ")
    assert "CUDA simulator: times mean nothing." in printed
    (written,) = folder.glob("*.json")
    report = json.loads(written.read_text())
    assert [part["name"] for part in report["parts"]] == [*parts.PARTS]
    assert {found["table"] for part in report["parts"] for found in part["findings"] if found["kind"] == "row"} == TABLES
    assert report["simulated"]
    assert written.with_suffix(".md").read_text().startswith("# GPU check on CUDA simulator")
