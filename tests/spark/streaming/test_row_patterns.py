"""The buckets of a stream have the rows that MATCH_RECOGNIZE returns of a batch, whatever comes in which micro-batch."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from gpu_cep.engine.accounting.resources import Resources
from gpu_cep.engine.streaming.kinds import with_late
from gpu_cep.engine.streaming.state import first_state
from gpu_cep.errors import EventError, UnsupportedError
from gpu_cep.keywords import read_keywords
from gpu_cep.live.plans import Arrival
from gpu_cep.live.steps import certain_matches, push_events
from gpu_cep_spark.row_patterns import NarrowRows
from gpu_cep_spark.streaming.marks import in_order_of_ties
from gpu_cep_spark.streaming.row_patterns import live_row_work
from gpu_cep_spark.streaming.state import TICKS
from gpu_cep_spark.tasks.results import as_promised
from gpu_cep_spark.tasks.row_worker import match_rows
from tests.drawn.row_patterns import ALONE, BESIDE, READING, Drawn, clauses
from tests.spark.samples import as_set
from tests.spark.streaming.buckets import Operator
from tests.spark.streaming.test_buckets import FOR_EVER, INSTANT, SECOND, START, as_spark_has_it, in_tasks

SCHEMA = pa.schema({"ts": INSTANT, "k": pa.string(), "x": pa.int64()})


pytestmark = pytest.mark.usefixtures("few_buckets")


def asked(clause: str, schema: pa.Schema, *, every: str | None = None, late: str = "drop") -> tuple[NarrowRows, Any]:
    query = NarrowRows.of(clause, schema, *read_keywords({}))
    return query, live_row_work(query, Arrival(late=late, every=every), 1, schema)


def streamed(drawn: Drawn, order: str) -> str:
    """The clause with what a stream needs: ORDER BY an instant first, and WITHIN."""
    begin = drawn.clauses.index("MEASURES")
    keys, rest = drawn.clauses[:begin].partition("ORDER BY")[0], drawn.clauses[begin:]
    if "WITHIN" not in rest:
        rest = rest.replace(" SUBSET U", " WITHIN 3 SUBSET U")
    if keys.strip() or "EVENTS" not in rest:
        rest = rest.replace(" EVENTS", "").replace(" SUBSET U", " SECONDS SUBSET U")
    return f"MATCH_RECOGNIZE ({keys} ORDER BY {order} {rest})"


def batch_of(query: NarrowRows, _: Any, rows: pa.Table) -> pa.Table:
    """The rows that a batch returns."""
    sent = rows.select(query.rows.names).rename_columns([f"c{number}" for number in range(len(query.rows))])
    return pa.Table.from_batches(match_rows(query.work(), sent.to_batches()), query.result)


def certain_of(query: NarrowRows, work: Any, rows: pa.Table) -> pa.Table:
    """What is certain once time has passed for ever, but further rows may come."""
    narrow = rows.select(query.rows.names)
    ordered, _ = in_order_of_ties(work.live.rows, work.groups[0].ties, narrow, np.arange(len(narrow)))
    state = push_events(work.live, first_state(work.live.kept), ordered).state
    return certain_matches(work.live, replace(state, clock=replace(state.clock, watermark=FOR_EVER * TICKS)), Resources(1))[1]


@given(clauses(ALONE + BESIDE + READING), st.randoms(use_true_random=False), st.data())
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much], deadline=None)
def test_buckets_give_the_rows_of_a_batch(drawn: Drawn, chance: random.Random, data: st.DataObject) -> None:
    size = drawn.table.num_rows
    times = START + np.cumsum([chance.choice([0, 0, 1, 2, 5]) for _ in range(size)], dtype=np.int64) * SECOND
    table = as_spark_has_it(drawn.table.append_column("ts", pa.array(times, INSTANT)))
    clause = streamed(drawn, data.draw(st.sampled_from(("ts", "ts, n DESC")), "order"))
    every, late = data.draw(st.sampled_from((None, "2 seconds")), "every"), data.draw(st.sampled_from(("drop", "drop", "rows")), "late=")
    try:
        query, work = asked(clause, table.schema, every=every, late=late)
    except UnsupportedError:
        assume("NEXT" not in clause and "$" not in clause)
        raise
    table = table.take(pa.array(chance.sample(range(size), size), pa.int64())) if data.draw(st.booleans(), "shuffled") else table
    delay = data.draw(st.sampled_from((0, 1, 1_000, 3_000)), "delay")
    cuts = sorted(chance.randint(0, size) for _ in range(chance.randint(0, 6)))
    parts = [table.slice(low, high - low) for low, high in zip([0, *cuts], [*cuts, size], strict=True)]
    in_time = on_time_of(parts, delay)
    on_time, of_batch = table.filter(pa.array(in_time)), certain_of if "EVENTS" in clause else batch_of
    operator = Operator(work, delay=delay)
    try:
        were_late = [operator.batch(*in_tasks(part)) for part in parts]
        operator.idle(FOR_EVER)
    except EventError:
        with pytest.raises(EventError, match="AFTER MATCH SKIP TO"):
            of_batch(query, work, on_time)
        return
    assert np.array_equal(np.concatenate(were_late), ~in_time)
    assert operator.total("late") == np.count_nonzero(~in_time)
    expected = of_batch(query, work, on_time)
    if work.whole is not None:
        expected = with_late(expected, table.filter(pa.array(~in_time)).cast(work.whole))
    assert as_set(operator.found) == as_set(pa.Table.from_batches([as_promised(expected, work.result)]))
    keeps = any(part in clause for part in ("EVENTS", "PREV", "^", "MATCH_NUMBER", "SKIP TO"))
    assert keeps or operator.is_empty()
    # what is kept waits for rows, not for time
    assert not any(bucket.timers for bucket in operator.buckets.values())


def on_time_of(parts: list[pa.Table], delay: int) -> np.ndarray:
    """Which rows are not late, by Spark's watermark, which lags a micro-batch."""
    watermark, found = 0, [np.zeros(0, np.bool_)]
    for part in parts:
        times = part.column("ts").cast(pa.int64()).to_numpy()
        found.append(times > watermark * TICKS)
        watermark = max(watermark, int(times.max(initial=0)) // TICKS - delay)
    return np.concatenate(found)


FALLS = """MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES MATCH_NUMBER() AS m, FIRST(x) AS top, LAST(x) AS low
    PATTERN (S D+) WITHIN 5 SECONDS DEFINE D AS x < PREV(x))"""


def rows_at(*seconds: float, x: list[int], k: str = "a") -> pa.Table:
    """Rows of one key, at times in seconds."""
    times = [START + int(second * SECOND) for second in seconds]
    return pa.table({"ts": pa.array(times, INSTANT), "k": [k] * len(times), "x": x}, SCHEMA)


def found_by(operator: Operator) -> list[dict[str, Any]]:
    return operator.found.to_pylist()


def test_a_match_comes_out_with_the_row_that_ends_its_run_or_when_its_window_is_over():
    operator = Operator(asked(FALLS, SCHEMA)[1])
    operator.batch(rows_at(0, 1, 2, 3, x=[5, 4, 3, 9]))
    operator.idle((START + 2 * SECOND) // TICKS)
    assert found_by(operator) == []
    operator.idle((START + 3 * SECOND) // TICKS)
    assert found_by(operator) == [{"k": "a", "m": 1, "top": 5, "low": 3}]
    operator.batch(rows_at(4, x=[2]))
    # the row at 3 begins it, and the window is over once all is known up to 8
    operator.idle((START + 8 * SECOND) // TICKS - 1)
    assert len(found_by(operator)) == 1
    operator.idle((START + 8 * SECOND) // TICKS)
    assert found_by(operator)[1:] == [{"k": "a", "m": 2, "top": 9, "low": 2}]


def test_a_key_that_falls_silent_keeps_a_row_and_waits_for_rows_alone():
    operator = Operator(asked(FALLS, SCHEMA)[1])
    operator.batch(rows_at(0, 1, x=[5, 4]))
    operator.idle(START // TICKS + 60_000)
    assert len(found_by(operator)) == 1
    assert [bucket.is_empty() for bucket in operator.buckets.values()] == [False]
    calls = len(operator.frames)
    operator.idle(START // TICKS + 120_000)
    assert len(operator.frames) == calls
    operator.batch(rows_at(200, 201, x=[8, 7]))
    operator.idle(FOR_EVER)
    assert found_by(operator)[1:] == [{"k": "a", "m": 2, "top": 8, "low": 7}]


def test_rows_that_order_by_leaves_equal_have_the_order_of_a_batch():
    clause = "MATCH_RECOGNIZE (ORDER BY ts MEASURES FIRST(x) AS f, LAST(x) AS l PATTERN (A B) WITHIN 5 SECONDS DEFINE B AS x > FIRST(x))"
    query, work = asked(clause, SCHEMA)
    rows = rows_at(0, 0, 0, 0, x=[4, 2, 3, 1])
    operator = Operator(work, delay=1)
    operator.batch(rows.slice(0, 2))
    operator.batch(rows.slice(2))
    operator.idle(FOR_EVER)
    assert found_by(operator) == batch_of(query, work, rows).to_pylist() == [{"f": 1, "l": 2}, {"f": 3, "l": 4}]


def test_the_list_is_not_written_anew_as_long_as_most_of_it_is_needed():
    clause = "MATCH_RECOGNIZE (ORDER BY ts MEASURES count(*) AS n PATTERN (A B+) WITHIN 1000 SECONDS DEFINE B AS x > FIRST(x))"
    operator = Operator(asked(clause, SCHEMA)[1])
    for second in range(10):
        operator.batch(rows_at(second, x=[-second]))
    ((bucket,),) = (operator.buckets.values(),)
    # of three chunks they are joined, since reading many costs more than writing them
    assert [len(bucket.chunks.values), len(bucket.marks.values)] == [2, 1]


def test_the_state_does_not_grow_with_the_keys_that_there_have_been():
    clause = FALLS.replace("MATCH_NUMBER() AS m, ", "").replace("PREV(x)", "FIRST(x)")
    operator, sizes = Operator(asked(clause, SCHEMA)[1]), []
    for number in range(40):
        times = START + number * 5 * SECOND + np.arange(0, 5 * SECOND, 50_000)
        keys = [f"key {number * 50 + place // 2}" for place in range(100)]
        operator.batch(pa.table({"ts": pa.array(times, INSTANT), "k": keys, "x": [2, 1] * 50}, SCHEMA))
        sizes.append(sum(len(value) for bucket in operator.buckets.values() for values in stored(bucket) for value in values))
    assert max(sizes[20:]) <= 1.25 * max(sizes[:20])
    operator.idle(FOR_EVER)
    assert operator.is_empty()
    assert operator.total("matches") == 40 * 50


def stored(bucket: Any) -> list[list[bytes]]:
    """The bytes of a bucket's state variables."""
    alone = [value for variable in (bucket.about, bucket.marks) for (value,) in variable.values]
    return [alone, [chunk for _, chunk in bucket.chunks.values]]


def test_the_state_of_another_pattern_is_refused():
    operator = Operator(asked(FALLS, SCHEMA)[1])
    operator.batch(rows_at(0, x=[1]))
    for other in (FALLS.replace("5", "6"), FALLS.replace("LAST(x)", "LAST(ts)"), FALLS.replace("S D+", "S D")):
        operator.work = asked(other, SCHEMA)[1]
        with pytest.raises(EventError, match=r"to another query, whose pattern is MATCH_RECOGNIZE .* a checkpointLocation of its own"):
            operator.batch(rows_at(1, x=[1]))
    operator.work = asked(FALLS.replace("PATTERN (S D+)", "PATTERN ( S  D+ )"), SCHEMA, every="1 second")[1]
    operator.batch(rows_at(1, x=[0]))
    operator.idle(FOR_EVER)
    assert len(found_by(operator)) == 1


def test_rows_without_a_time_are_an_error():
    operator = Operator(asked(FALLS, SCHEMA)[1])
    with pytest.raises(EventError, match="column 'ts' holds 1 NULL in one partition of the events; filter the rows by ts IS NOT NULL"):
        operator.batch(pa.concat_tables([rows_at(0, x=[1]), SCHEMA.empty_table().take(pa.array([None], pa.int64()))]))
