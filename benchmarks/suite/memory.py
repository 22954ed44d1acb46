"""Peak memory of one match, measured in a process of its own.

``python -m benchmarks.suite.memory WORKLOAD EVENTS.arrow STREAMS OUTPUT`` is that
process: it reads the events, answers the question on a few of them so that
code is loaded, and prints the peak before and after the whole question as JSON.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from benchmarks.baselines.measure import Case, events_of, run_match
from benchmarks.record.folders import ROOT
from benchmarks.record.memory import peak_bytes
from benchmarks.workloads.questions import WORKLOADS

WARM_UP_EVENTS = 1_000


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """Peak resident bytes with the events loaded, and with the question answered; `input_bytes` is the events' Arrow size."""

    workload: str
    output: str
    input_bytes: int
    loaded_bytes: int
    peak_bytes: int

    @property
    def working_ratio(self) -> float:
        """Return what the match itself needed, in sizes of its input."""
        return (self.peak_bytes - self.loaded_bytes) / self.input_bytes


def measure_memory(case: Case, output: str) -> MemoryUse:
    events = events_of(case)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.arrow"
        with pa.ipc.new_file(path, events.schema) as writer:
            writer.write_table(events)
        command = [sys.executable, "-m", "benchmarks.suite.memory", case.workload.name, str(path), str(case.streams), output]
        answer = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    peaks = json.loads(answer.stdout)
    return MemoryUse(case.workload.name, output, events.nbytes, peaks["loaded"], peaks["peak"])


def main(arguments: list[str]) -> int:
    name, path, streams, output = arguments
    with pa.OSFile(path) as source, pa.ipc.open_file(source) as reader:
        events = reader.read_all()
    case = Case(WORKLOADS[name], events.num_rows, int(streams))
    run_match(case, events.slice(0, WARM_UP_EVENTS), output, 1)
    loaded = peak_bytes()
    run_match(case, events, output, 1)
    print(json.dumps({"loaded": loaded, "peak": peak_bytes()}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
