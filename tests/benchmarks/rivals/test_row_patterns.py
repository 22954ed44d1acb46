"""Row patterns for Flink's SQL: no row leaves a choice, windows end alike, and what is asked is what the library is asked."""

from __future__ import annotations

import re

import pytest

import gpu_cep
from benchmarks.rivals import report, run
from benchmarks.rivals.row_patterns import ROW_QUESTIONS, RowQuestion
from gpu_cep.lang.parser import parse

COUNT = 30_000


@pytest.fixture(params=ROW_QUESTIONS)
def question(request: pytest.FixtureRequest) -> RowQuestion:
    return ROW_QUESTIONS[request.param]


def test_no_row_leaves_a_choice(question: RowQuestion) -> None:
    events = question.events(COUNT)
    found = question.comparable(events, question.answer(events, 1))
    assert found.num_rows > 100
    reluctant = re.sub(r"[+*}]", r"\g<0>?", question.pattern)
    assert reluctant != question.pattern
    assert found == gpu_cep.match(events, question.query.replace(f"({question.pattern})", f"({reluctant})")).select(found.column_names)


def test_matches_end_in_the_order_in_which_they_begin(question: RowQuestion) -> None:
    events = question.events(COUNT)
    every = gpu_cep.match(events, question.query.replace("PAST LAST ROW", "TO NEXT ROW")).to_pandas()
    falls = every.sort_values(["streamKey", "t"]).groupby("streamKey")["u"].diff() < 0
    assert not falls.any() or question.skip == "TO NEXT ROW"


def test_flink_is_asked_the_same(question: RowQuestion) -> None:
    text = question.in_flink()
    assert parse(question.query)
    ours = question.query.replace("ORDER BY ts", "ORDER BY event_time")
    if question.window:
        assert "WITHIN INTERVAL '60.001' SECOND(9, 3)" in text
        text = text.replace("INTERVAL '60.001' SECOND(9, 3)", "60000")
    assert text == f"SELECT t, n, u FROM events {ours}"


def test_times_are_unique() -> None:
    events = ROW_QUESTIONS["funnel"].events(COUNT)
    assert events["ts"].combine_chunks().dictionary_encode().dictionary.equals(events["ts"].combine_chunks())


def test_each_question_is_asked() -> None:
    entries = run.row_entries()
    assert [each.question for each in entries] == list(ROW_QUESTIONS)
    assert {run.asked(each).name for each in entries} == set(ROW_QUESTIONS)
    assert set(report.GROUPS) == {report.THREE, report.KINDS_GROUP, report.ROWS}
    assert [each.question for each in run.row_entries(["funnel"])] == ["funnel"]
