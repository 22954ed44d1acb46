"""The benchmark of files larger than memory: the same events each time, and the same answer by both ways."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

import gpu_cep as cep
from benchmarks.suite import larger_than_memory as large
from gpu_cep import sliced_plans


def test_chunks_are_in_order_and_the_same_each_time() -> None:
    first, second = large.chunk(0, 1_000), large.chunk(1, 1_000)
    assert first.equals(large.chunk(0, 1_000))
    assert first["ts"].to_pylist() == sorted(first["ts"].to_pylist())
    assert first["ts"][-1].as_py() < second["ts"][0].as_py()


@pytest.mark.parametrize("question", large.QUESTIONS)
def test_both_ways_find_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, question: str) -> None:
    monkeypatch.setattr(large, "GROUP", 2_000)
    monkeypatch.setattr(large, "REPEATS", 1)
    monkeypatch.setattr(sliced_plans, "_MANY_ROWS", 0)
    path = tmp_path / "events.parquet"
    large.write_events(path, 40_000)
    query, options = large.QUESTIONS[question]
    by_slices = large.taken(str(path), question, "2MiB")
    others = {way: large.taken(str(path), question, way) for way in (large.AT_ONCE, large.TABLE)}
    assert by_slices.slices is not None
    for other in others.values():
        assert by_slices.rows == other.rows > 0
        assert other.slices is None
    assert cep.match(path, query, memory="2MiB", **options).equals(cep.match(pq.read_table(path), query, **options))
    told = large.line(question, large.Ran(9, 1.0, 2.0, 1, 1, (2, 9, 9)), {"another way": large.Ran(4, 1.0, 1.0, 1, 1, None)})
    assert "2 slices" in told
    assert "2.25 of another way over 4 (by processor time 1.12;" in told
