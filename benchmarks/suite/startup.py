"""How long the first answer takes: import, first match, known pattern in a new process, cold and warm kernel caches.

``python -m benchmarks.suite.startup`` prints a table; each row is a new process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass

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
    """One process that imports gpu_cep and matches; `cache_folder` is numba's (None: the default one)."""
    environment = dict(os.environ) if cache_folder is None else dict(os.environ, NUMBA_CACHE_DIR=cache_folder)
    command = [sys.executable, "-c", CHILD, json.dumps([KNOWN, KNOWN, NEW])]
    answer = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return StartUp(cache, *json.loads(answer.stdout))


def measure_startups() -> list[StartUp]:
    """Cold caches, then the same folder filled, each in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        return [measure_startup("cold", folder), measure_startup("warm", folder), measure_startup("warm, again", folder)]


def main() -> int:
    print(f"{'kernel cache':14}{'import':>10}{'first match':>13}{'same again':>12}{'new pattern':>13}   seconds")
    for row in measure_startups():
        figures = f"{row.import_seconds:10.3f}{row.first_match:13.3f}{row.same_pattern_again:12.4f}{row.new_pattern:13.4f}"
        print(f"{row.cache:14}{figures}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
