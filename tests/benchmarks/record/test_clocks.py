"""Calls are timed by the clock and by processors."""

from __future__ import annotations

import weakref

import pytest

from benchmarks.record import clocks
from benchmarks.record.clocks import Seconds, least, timed


class Answer:
    """What a call gives."""


def test_a_call_is_timed_and_gives_its_answer() -> None:
    taken, answer = timed(lambda: sum(range(100_000)))
    assert answer == sum(range(100_000))
    assert min(taken) > 0


def test_the_least_of_some_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = iter([(Seconds(3.0, 1.0), "first"), (Seconds(2.0, 4.0), "second"), (Seconds(5.0, 5.0), "third")])
    monkeypatch.setattr(clocks, "timed", lambda call: next(runs))
    assert least(str, 3) == (Seconds(2.0, 1.0), "third")


def test_no_run_begins_when_patience_is_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clocks, "timed", lambda call: (Seconds(2.0, 1.0), call()))
    calls: list[int] = []
    least(lambda: calls.append(0), 9, patience=5.0)
    assert len(calls) == 3


def test_an_answer_is_freed_before_the_next_run() -> None:
    alive: list[weakref.ref[Answer]] = []

    def call() -> Answer:
        assert all(each() is None for each in alive)
        answer = Answer()
        alive.append(weakref.ref(answer))
        return answer

    _, answer = least(call, 3)
    assert answer is alive[-1]()
