"""Buckets give up the keys that were silent for longer than their time to live, also if nothing comes any more."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from gpu_cep.errors import EventError, UnsupportedError
from gpu_cep_spark.streaming.state import TICKS
from tests.conformance.expectation import expected
from tests.drawn.queries import whole_language
from tests.effort import examples
from tests.spark.streaming.test_buckets import (
    AFTER_MATCH,
    EVENTS,
    SECOND,
    START,
    asked,
    check_arrival,
    events_at,
    operator_of,
    over_instants,
)

TREND = "PARTITION BY k PATTERN SEQ(A a, B b+) WITHIN 5 EVENTS"


pytestmark = pytest.mark.usefixtures("few_buckets")


@examples(30, 200)
@given(whole_language(max_size=12, after_match=AFTER_MATCH), st.sampled_from(("2 seconds", "1 second")), st.data())
def test_buckets_have_the_matches_of_each_session(case, silence, data):
    case = over_instants(case, (0, 1))
    case = replace(case, text=re.sub(r"seconds$", "EVENTS", case.text), options={"partition_by": ["k"]} | dict(case.options))
    expected(case)  # not too many
    try:
        operator = check_arrival(case, data, time_to_live=silence)
    except UnsupportedError as refusal:
        if "() of these arguments is not supported" in str(refusal):
            reject()
        raise
    assert operator.is_empty()


def test_a_bucket_waits_until_a_key_has_been_silent_for_its_time_to_live():
    operator = operator_of(TREND, time_to_live="4 seconds")
    operator.batch(events_at(START, START + SECOND, kinds="AB"))
    closed = (START + 5 * SECOND) // TICKS
    operator.idle(closed - 2)
    calls = len(operator.frames)
    operator.idle(closed - 1)
    assert (operator.found.num_rows, len(operator.frames)) == (0, calls), "nothing can be certain yet"
    operator.idle(closed)
    assert (operator.found.num_rows, operator.total("expired")) == (1, 1)
    assert operator.is_empty()


def test_a_key_of_a_bucket_that_goes_on_is_given_up_by_itself():
    operator = operator_of(TREND, time_to_live="4 seconds")
    operator.batch(events_at(START, kinds="A", k=1), events_at(START, kinds="A", k=2))
    for second in range(1, 9):
        operator.batch(events_at(START + second * SECOND, kinds="C", k=2))
    assert operator.total("expired") == 1
    assert operator.found.num_rows == 0


def test_another_time_to_live_is_another_question():
    operator = operator_of(TREND, time_to_live="4 seconds")
    operator.batch(events_at(START, kinds="A"))
    operator.work = asked(TREND, EVENTS, time_to_live="5 seconds")[1]
    with pytest.raises(EventError, match="belongs to another query"):
        operator.batch(events_at(START + 1, kinds="B"))


def test_the_state_does_not_grow_with_the_keys_that_there_have_been():
    operator, sizes = operator_of(TREND, time_to_live="4 seconds"), []
    for number in range(60):
        operator.batch(*(events_at(START + number * SECOND, kinds="A", k=10 * number + key) for key in range(10)))
        sizes.append(sum(len(chunk) for bucket in operator.buckets.values() for _, chunk in bucket.chunks.values))
        operator.frames = operator.frames[-4:]
    assert max(sizes[30:]) <= 1.25 * max(sizes[:30])
