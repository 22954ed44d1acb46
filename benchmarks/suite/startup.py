"""How long the first answer takes: import, first match, known pattern in a new process, cold and warm kernel caches.

``python -m benchmarks.suite.startup`` prints a table; each row is a new process. With ``--compile`` it prints
what the first query of a machine costs in seconds and CPU seconds of its own process, for several shapes of query, and kernel by kernel.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

CHILD = """
import json, sys, time
start = time.perf_counter()
import gpu_cep
imported = time.perf_counter()
import pyarrow as pa
events = pa.table({"ts": [1, 2, 3, 4], "type": ["A", "B", "B", "C"], "v": [1.0, 2.0, 3.0, 4.0]})
seconds = [imported - start]
for pattern in json.loads(sys.argv[1]):
    start = time.perf_counter()
    rows = gpu_cep.match(events, pattern).num_rows
    seconds.append(time.perf_counter() - start)
    assert rows == 1, (pattern, rows)
print(json.dumps(seconds))
"""
COMPILING = """
import json, sys, time
import numpy as np
import pyarrow as pa
import gpu_cep
from numba.core import event

class Heard(event.Listener):
    def __init__(self):
        self.begun, self.kernels = [], {}

    def on_start(self, each):
        self.begun.append(time.process_time())

    def on_end(self, each):
        seconds = time.process_time() - self.begun.pop()
        if not self.begun:
            function = each.data["dispatcher"].py_func
            name = f"{function.__module__.rpartition('.')[2]}.{function.__name__}"
            forms, before = self.kernels.get(name, (0, 0.0))
            self.kernels[name] = forms + 1, before + seconds

heard = Heard()
event.register("numba:compile", heard)
size = 20_000
draw = np.random.default_rng(1)
events = pa.table({
    "ts": np.arange(size),
    "k": draw.integers(0, 50, size),
    "type": np.array(list("ABCDEFGH"))[draw.integers(0, 8, size)],
    "price": draw.integers(0, 400, size) / 4,
})
pattern, asked = json.loads(sys.argv[1])
gpu_cep.match(events, pattern, **asked)
print(json.dumps([time.process_time(), heard.kernels]))
"""
SHAPES: dict[str, tuple[str, dict[str, Any]]] = {
    "SEQ(a, b+, c) with conditions": (
        "PATTERN SEQ(A a, B b+, C c) WHERE b[i].price > b[i-1].price AND c.price < a.price WITHIN 300",
        {"partition_by": ["k"]},
    ),
    "the same, any match": (
        "PATTERN SEQ(A a, B b, C c) WHERE b.price > a.price AND c.price < a.price WITHIN 300",
        {"partition_by": ["k"], "strategy": "skip_till_any_match"},
    ),
    "SEQ(a, b), counted": ("PATTERN SEQ(A a, B b) WITHIN 300", {"partition_by": ["k"], "output": "count"}),
    "situations": ("DEFINE hot AS price > 60, cold AS price < 20 PATTERN hot before cold WITHIN 100", {}),
}
KNOWN = "PATTERN SEQ(A a, B b+, C c) WHERE prev(b.v) < b.v AND a.v < c.v WITHIN 10"
NEW = "PATTERN SEQ(A x, AND(B y{1,9}, C z)) WHERE x.v <= y.v AND z.v > 2 * x.v WITHIN 20"


@dataclass(frozen=True, slots=True)
class StartUp:
    """Seconds of the steps of one new process."""

    cache: str
    import_seconds: float
    first_match: float
    same_pattern_again: float
    new_pattern: float


def measure_startup(cache: str, cache_folder: str | None) -> StartUp:
    """Return what one process takes that imports gpu_cep and matches; `cache_folder` is numba's (None: the default one)."""
    environment = dict(os.environ) if cache_folder is None else dict(os.environ, NUMBA_CACHE_DIR=cache_folder)
    command = [sys.executable, "-c", CHILD, json.dumps([KNOWN, KNOWN, NEW])]
    answer = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return StartUp(cache, *json.loads(answer.stdout))


def measure_startups() -> list[StartUp]:
    """Return what a process takes with cold caches, then with the same folder filled."""
    with tempfile.TemporaryDirectory() as folder:
        return [measure_startup("cold", folder), measure_startup("warm", folder), measure_startup("warm, again", folder)]


@dataclass(frozen=True, slots=True)
class FirstQuery:
    """CPU seconds of two new processes that run one query, with an empty cache and with what the first one left.

    `waited` are the seconds from the start of the first one to its end. `kernels` are those that it compiled itself: in how
    many forms, and in how many seconds. Processes beside it compile others.
    """

    shape: str
    cold: float
    waited: float
    warm: float
    kernels: dict[str, tuple[int, float]]


def measure_first_query(shape: str) -> FirstQuery:
    """Run a query of :data:`SHAPES` in two new processes, one after the other."""
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"NUMBA_CACHE_DIR": folder, "GPU_CEP_QUIET": "1"}
        command = [sys.executable, "-c", COMPILING, json.dumps(SHAPES[shape])]
        marks, runs = [time.perf_counter()], []
        for _ in range(2):
            runs.append(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment))
            marks.append(time.perf_counter())
    (cold, kernels), (warm, compiled_again) = (json.loads(run.stdout) for run in runs)
    assert not compiled_again, compiled_again
    return FirstQuery(shape, cold, marks[1] - marks[0], warm, kernels)


def print_first_queries() -> None:
    """Print what each shape costs, and its kernels, the dearest first."""
    for first in map(measure_first_query, SHAPES):
        spent = f"{first.waited:.1f} s cold, {first.cold:.1f} s of CPU time, {first.warm:.2f} s warm"
        print(f"{first.shape}: {spent}; {len(first.kernels)} kernels compiled")
        for name, (forms, seconds) in sorted(first.kernels.items(), key=lambda each: -each[1][1]):
            print(f"    {seconds:6.2f}  {forms} x {name}")


def main(argv: Sequence[str] | None = None) -> int:
    if "--compile" in (sys.argv[1:] if argv is None else argv):
        print_first_queries()
        return 0
    print(f"{'kernel cache':14}{'import':>10}{'first match':>13}{'same again':>12}{'new pattern':>13}   seconds")
    for row in measure_startups():
        figures = f"{row.import_seconds:10.3f}{row.first_match:13.3f}{row.same_pattern_again:12.4f}{row.new_pattern:13.4f}"
        print(f"{row.cache:14}{figures}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
