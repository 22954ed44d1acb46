"""The page on Parquet: both ways find the same, one day needs few row groups, and each way has its figures."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq

from benchmarks.suite import files


def test_questions_are_asked_by_all_ways(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(files, "_peak", lambda *_: 1)
    path = tmp_path / "events.parquet"
    pq.write_table(files.made(60_000), path, row_group_size=1_000)
    found = [files.asked(name, str(path), 1) for name in files.QUESTIONS]
    assert all(each.rows for each in found)
    assert {each.question: each.groups for each in found} == {"sequence": (60, 60), "day": (3, 60), "events": None, "situations": None}
    page = files.markdown(found, "here", 60_000, 1)
    assert "| 3 of 60 |" in page
    assert all(f"| {name} | {way} |" in page for name in files.QUESTIONS for way in files.WAYS)


def test_the_same_events_each_time() -> None:
    assert files.made(1_000).equals(files.made(1_000))
