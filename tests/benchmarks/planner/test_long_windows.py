"""The questions of the page on long windows: algorithms agree, and what is said to be flat takes no more steps in longer windows."""

from __future__ import annotations

import pytest

from benchmarks.planner import long_windows
from gpu_cep.errors import MatchLimitExceeded


def test_algorithms_agree() -> None:
    costs = long_windows.by_window(10_000, 1, (30, 300))
    found: dict[str, set[tuple[int, ...]]] = {}
    for cost in costs:
        found.setdefault(cost.question, set()).add(tuple(cost.matches.values()))
    assert all(len(matches) == 1 for matches in found.values())
    assert sum(matches.pop()[-1] > 0 for matches in found.values()) >= 8


def test_steps_of_flat_questions_do_not_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixty for each event, whatever the window, where runs that bind what is in it take thousands."""
    size = 30_000
    events = long_windows.events_of(size)
    monkeypatch.setattr(long_windows, "MOST_STEPS", 60 * size)
    for question in long_windows.FLAT:
        assert long_windows.asked(events, question, 20_000, question.algorithms[0]) > 0
    endless = next(question for question in long_windows.QUESTIONS if question.name == "a run of all that rise")
    with pytest.raises(MatchLimitExceeded):
        long_windows.asked(events, endless, 20_000, "ses_automaton")


def test_figures_stand_on_the_page() -> None:
    windows, noise = long_windows.by_window(2_000, 1, (30, 300)), long_windows.by_noise(2_000, 1, 300)
    endless = long_windows.shared(long_windows.QUESTIONS[1], 2_000, 1)
    page = long_windows.markdown(windows, noise, [endless], 1.0, long_windows.two_threads(1_000), "here")
    assert all(f"| {row.question} | {row.algorithm} |" in page for row in (*windows, *noise))
    assert f"| {endless.question} | {endless.matches:,} |" in page
