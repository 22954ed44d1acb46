"""Pushes are measured over all questions, and nothing that came out is lost."""

from __future__ import annotations

import pyarrow as pa
import pytest

import gpu_cep as cep
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


def test_what_is_measured_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    streams.main(["--only", "next", "--windows", "100", "--keys", "2", "--pushes", "2", "--read", "1000"])
    printed = capsys.readouterr().out
    assert "next                  2      100" in printed
    assert "batches of 10,000 events, 1,000 in all" in printed
