"""Kinds of questions are pushed into streams, which find what `match` finds, and the worst stands first."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from benchmarks.baselines.measure import Disagreement
from benchmarks.kinds import streams
from benchmarks.kinds.questions import KINDS
from benchmarks.record import headline, push_kinds

FEW = {"events": 4_000, "keys": 8, "threads": 1}


def test_windows_hold_few_enough_events_and_every_kind_has_one() -> None:
    """A session lasts for twenty gaps of two events at most, or, with very many keys, for two events."""
    assert re.findall(r"\d+(?= |$)", streams.asked_of(KINDS["sessions"], **FEW).text.partition(" RETURN")[0])[-2:] == ["32", "640"]
    assert " WITHIN 16000 " in streams.asked_of(KINDS["sessions"], **FEW | {"keys": 4_000}).text
    assert " WITHIN 3200 " in streams.asked_of(KINDS["label_runs"], **FEW).text


def test_events_of_one_time_are_pushed_together() -> None:
    asked = streams.asked_of(KINDS["negation_middle"], **FEW)
    tied = replace(asked, events=asked.events.set_column(0, "ts", pa.array([0, 1, 1, 1, 1, 2, 3, 4] + [5] * 3_992)))
    parts = tied.parts(2)
    assert [len(part) for part in parts] == [1, 5, 2, 3_992]
    assert [part["type"].to_pylist() for part in parts[:2]] == [tied.events["type"].to_pylist()[:1], tied.events["type"].to_pylist()[1:6]]
    assert parts[0]["type"].chunk(0).dictionary.to_pylist() == parts[0]["type"].to_pylist()
    assert pa.concat_tables(parts).unify_dictionaries()["ts"].equals(tied.events["ts"])


def test_pushes_that_find_something_else_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = streams.asked_of(KINDS["negation_middle"], **FEW)
    monkeypatch.setattr(streams.PushedQuestion, "whole", lambda self: 1)
    with pytest.raises(Disagreement, match="match finds 1 matches, pushes"):
        list(streams.measured(asked, [1_000], 1))


def test_what_is_measured_is_recorded_and_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Pages show the table of the record."""
    few = ["--events", "4000", "--pushes", "500", "1000", "--keys", "8", "--many", "500", "--repeats", "1"]
    assert streams.main([*few, "--kinds", "next_kleene", "selective_prices", "sessions", "--folder", str(tmp_path)]) == 0
    (path,) = tmp_path.glob("push-kinds-*.json")
    page = path.with_suffix(".md").read_text()
    assert page in capsys.readouterr().out
    shown = headline.pushed_kinds(path)
    assert shown.splitlines()[:5] == page.splitlines()[9:14]
    assert "| question | `match`, M events/s | 500 | 1,000 | 10,000, 500 keys |" in shown
    assert re.search(r"selective .* \| — \|", shown)


def test_the_worst_question_stands_first_with_its_shares() -> None:
    def pushed(kind: str, keys: int, push: int, seconds: float) -> push_kinds.PushedKind:
        return push_kinds.PushedKind(kind, kind, "", keys, push, 10_000 // push, 10_000, 1, seconds, 0.01)

    found = [pushed("quick", 2, 10, 0.02), pushed("quick", 2, 1_000, 0.005), pushed("slow", 2, 10, 0.04), pushed("slow", 9, 10, 1.0)]
    assert push_kinds.table([*found, pushed("alone", 0, 10, 0.01)]).splitlines()[2:] == [
        "| slow | 1.0 | 0.25 / 0.0 | — | 0.010 / 1.0 |",
        "| quick | 1.0 | 0.50 / 0.0 | 2.00 / 0.5 | — |",
        "| alone | 1.0 | 1.00 / 0.0 | — | — |",
    ]
    assert push_kinds.table([pushed("alone", 0, 10, 0.01)]).splitlines()[2:] == ["| alone | 1.0 | 1.00 / 0.0 |"]
