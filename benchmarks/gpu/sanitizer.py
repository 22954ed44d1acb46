"""Small queries and kernels under compute-sanitizer, where it is installed and accepts the device.

``python -m benchmarks.gpu.sanitizer`` is the process that it watches.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.gpu.conformance import CORNERS, MODES, Disagreement, compare
from benchmarks.gpu.findings import Check, Finding, fault, note, row
from benchmarks.gpu.kernels import agrees
from benchmarks.gpu.process import finished, last_lines
from gpu_cep_kernels.device.selection import open_device
from tests.kernel_cases import CASES

TOOL = "compute-sanitizer"
USUAL_PATHS = "/usr/local/cuda/bin"
MEMORY_FAULT, WRONG_ANSWER = 86, 87
SIZE = 100  # indices of a kernel's call


@dataclass(frozen=True, slots=True)
class Watched:
    """What ran under a tool without a fault."""

    tool: str
    ran: str

    def cells(self) -> dict[str, str]:
        return {"tool": self.tool, "ran": self.ran, "faults": "none"}


def run(check: Check) -> Iterator[Finding]:
    """Memcheck over a child process; where it cannot run, a note says so."""
    if check.device.simulated:
        yield note("Not run: the simulator has no device memory.")
        return
    tool = shutil.which(TOOL) or shutil.which(TOOL, path=USUAL_PATHS)
    if tool is None:
        yield note(f"Not run: {TOOL} is not installed.")
        return
    # numba asks for a context where there may be none yet, which is no fault of a kernel
    watched = [tool, "--tool", "memcheck", "--report-api-errors", "no", "--error-exitcode", str(MEMORY_FAULT), "--target-processes", "all"]
    status, output = finished([*watched, sys.executable, "-m", "benchmarks.gpu.sanitizer"], max(1.0, check.deadline.left))
    if status == 0:
        yield row("Memory safety", Watched("memcheck", _own_lines(output)))
    elif status in (MEMORY_FAULT, WRONG_ANSWER):
        yield fault(f"{'memory faults' if status == MEMORY_FAULT else 'a wrong answer'} under memcheck:{last_lines(output)}")
    else:
        reason = "its time was up" if status is None else f"it ended with status {status}"
        yield note(f"Not run to its end: {reason}.{last_lines(output)}")


def _own_lines(output: str) -> str:
    """Return what the child printed; the tool's own lines begin with =."""
    return " ".join(line for line in output.splitlines() if not line.startswith("="))


def main() -> int:
    """Run corner queries and the first case of each kernel, with an allocation of its own for each array."""
    device = open_device()
    if not device.simulated:
        # a pool's memory has no borders that could be watched
        device.xp.cuda.set_allocator(None)
    queries = [corners.cases(MODES)[0] for corners in CORNERS.values()]
    kernels = {case.kernel.__name__: case for case in reversed(CASES) if case.kernel.parallel}
    try:
        for case in queries:
            compare(case, output="indices")
    except Disagreement as found:
        print(found)
        return WRONG_ANSWER
    wrong = [name for name, case in kernels.items() if not agrees(device, case, SIZE)]
    if wrong:
        print(f"other outputs than on the CPU: {', '.join(wrong)}")
        return WRONG_ANSWER
    print(f"{len(queries)} queries, {len(kernels)} kernels")
    return 0


if __name__ == "__main__":
    sys.exit(main())
