"""The benchmark of files larger than memory: the same events each time, and the same answer by both ways."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

import gpu_cep as cep
from benchmarks.record import large_files
from benchmarks.suite import larger_than_memory as large
from gpu_cep.engine.input import readers


def test_chunks_are_in_order_and_the_same_each_time() -> None:
    first, second = large.chunk(0, 1_000), large.chunk(1, 1_000)
    assert first.equals(large.chunk(0, 1_000))
    assert first["ts"].to_pylist() == sorted(first["ts"].to_pylist())
    assert first["ts"][-1].as_py() < second["ts"][0].as_py()


@pytest.mark.parametrize("question", large.QUESTIONS)
def test_both_ways_find_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, question: str) -> None:
    monkeypatch.setattr(large, "GROUP", 2_000)
    monkeypatch.setattr(large, "REPEATS", 1)
    monkeypatch.setattr(readers, "_MANY_ROWS", 0)
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


def test_a_line_and_a_page_tell_rates_and_shares() -> None:
    others = {large.AT_ONCE: large.Ran(4, 1.0, 1.0, 1, 1, None), large.TABLE: large.Ran(4, 0.5, 1.0, 1, 1, None)}
    took = {large.SLICED: large.Ran(9, 1.0, 2.0, 1 << 29, 1, (2, 9, 9))} | others
    told = large_files.line("rows", took)
    assert "2 slices with 100% of the rows, 1 rows), peak 0.50 GiB; 2.25 / 1.12 of match(path) at once over 4" in told
    where = {"machine": "a machine", "day": "today", "load": "1.0", "commit": "abc", "pyarrow": "1", "memory": "1GiB"}
    page = large.markdown({"rows": took}, where, 9_000, 1 << 30)
    assert "| rows | 1 | 0.0 | 0.50 | 2 slices with 100% of the rows | 2.25 / 1.12 | 1.12 / 1.12 |" in page
    assert "9,000 events" in page
    assert "1.00 GiB of Parquet, `memory=1GiB`" in page
    assert all(f"- {question}: `" in page for question in large.QUESTIONS)
