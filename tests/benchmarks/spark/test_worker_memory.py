"""The page on a worker's memory: less memory gives the same result, and takes less."""

from __future__ import annotations

from benchmarks.spark import worker_memory


def test_less_memory_gives_the_same_result() -> None:
    least, most = (worker_memory.measured(60_000, allowed, "count") for allowed in (1 << 20, worker_memory.UNBOUNDED))
    assert least.input_bytes == most.input_bytes > 1 << 20
    assert least.output_bytes == most.output_bytes > 0
    assert worker_memory.table([least, most]).count("60,000") == 2
