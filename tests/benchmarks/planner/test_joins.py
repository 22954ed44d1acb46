"""The questions by which joins are timed have matches, and algorithms agree on them."""

from __future__ import annotations

from benchmarks.planner import joins


def test_algorithms_agree() -> None:
    rows = [joins.measured(question, 20_000, 1) for question in joins.QUESTIONS]
    assert sum(row.matches > 0 for row in rows) >= 5
    assert all(f"| {row.question.name} | {row.matches:,} |" in joins.markdown(rows, "") for row in rows)
