"""Large chunks of events that a bucket is sent stay as they came, and are not joined however many there are."""

from __future__ import annotations

from unittest.mock import patch

import pytest

from gpu_cep_spark.streaming import state
from tests.spark.streaming.buckets import Operator
from tests.spark.streaming.test_buckets import SECOND, START, events_at, operator_of

pytestmark = pytest.mark.usefixtures("few_buckets", "decided_at_once")


def first_numbers(operator: Operator) -> list[int | None]:
    """The number of the first event of each chunk in the list; None of one that was written anew."""
    (bucket,) = (bucket for bucket in operator.buckets.values() if bucket.chunks.values)
    return [first for first, _ in bucket.chunks.values]


def test_large_chunks_stay_as_they_came_where_no_event_is_late():
    operator = operator_of()
    with patch.object(state, "LARGE", 0):
        operator.batch(events_at(START, START + 1, kinds="AA"), events_at(START + 2, kinds="A"))
        assert first_numbers(operator) == [0, 2]
        operator.batch(events_at(START + SECOND, kinds="A"), events_at(START + SECOND + 1, START - SECOND, kinds="AA"))
        assert first_numbers(operator) == [0, 2, 3], "chunks with a late event are joined"
    operator.batch(events_at(START + 2 * SECOND, kinds="A"), events_at(START + 2 * SECOND + 1, kinds="A"))
    assert first_numbers(operator) == [None, 5], "small chunks are joined, behind a list that was written anew"


def test_a_list_of_many_large_chunks_is_not_written_anew():
    operator = operator_of()
    with patch.object(state, "LARGE", 0):
        for number in range(4):
            operator.batch(*(events_at(START + 10 * number + task, kinds="A") for task in range(3)))
    assert first_numbers(operator) == list(range(12))
