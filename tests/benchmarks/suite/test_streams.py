"""Pushes are measured over all questions, and nothing that came out is lost."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pyarrow as pa
import pytest

import gpu_cep as cep
from benchmarks.record import pages, pushes
from benchmarks.suite import streams


@pytest.mark.parametrize("question", streams.QUESTIONS)
def test_a_question_is_pushed(question: str) -> None:
    pushed = streams.measure(question, window=300, keys=3, push=50, pushes=3, threads=1)
    query, options = streams.QUESTIONS[question]
    # timeouts are no matches
    options = {name: value for name, value in options.items() if name != "timeouts"}
    events = pa.concat_tables([streams.events_from(0, 300, 3), *(streams.events_from(300 + 50 * number, 50, 3) for number in range(5))])
    until = pa.scalar(549, pa.timestamp("us"))
    assert len(pushed.seconds) == 3
    assert pushed.matches == cep.match(events, f"{query} WITHIN 300 us", complete_until=until, **options).num_rows


def test_what_is_measured_is_recorded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--only", "next", "absence", "--windows", "100", "200", "--keys", "2", "--pushes", "2", "--read", "1000"]
    assert streams.main([*asked, "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    (path,) = tmp_path.glob("*.json")
    record = pages.read(path)
    assert [(each["question"], each["window"]) for each in record["pushes"]] == list(product(("next", "absence"), (100, 200)))
    assert "| next | 2 | 100 |" in printed
    assert "| absence | 2 | 1,000 |" in printed
    assert path.with_suffix(".md").read_text() in printed


def test_the_slowest_question_comes_first_with_its_slowest_keys() -> None:
    found = [
        pushes.Pushed(question, window, keys, 10, [seconds], 1.0, 0)
        for question, window, keys, seconds in (("quick", 5, 1, 0.001), ("slow", 5, 1, 0.003), ("slow", 5, 9, 0.004), ("slow", 2, 1, 0.002))
    ] + [pushes.Pushed("quick", 2, 1, 10, [0.001], 1.0, 0)]
    assert pushes.medians(found).splitlines()[2:] == ["| slow | 2.0 | 4.0 |", "| quick | 1.0 | 1.0 |"]
