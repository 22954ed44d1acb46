"""The buckets of a stream have the matches of a batch over the events that were not late, whatever comes in which micro-batch."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from gpu_cep.engine.answers import answer
from gpu_cep.engine.streaming.kinds import with_late
from gpu_cep.engine.streaming.state import first_state
from gpu_cep.errors import EventError, PatternError, UnsupportedError
from gpu_cep.keywords import read_keywords
from gpu_cep.live.plans import Arrival
from gpu_cep.live.queries import LiveQuery
from gpu_cep.live.steps import certain_matches, push_events
from gpu_cep.plan.timeouts import by_kind
from gpu_cep_spark.narrowing.narrow_queries import NarrowQuery
from gpu_cep_spark.streaming import packing as live_packing
from gpu_cep_spark.streaming import state as live_state
from gpu_cep_spark.streaming.frames import live_query, live_work
from gpu_cep_spark.streaming.state import TICKS
from gpu_cep_spark.tasks.results import as_promised
from tests.conformance.expectation import expected
from tests.drawn.queries import Case, trend_cases, whole_language
from tests.drawn.situations import situation_queries, situation_tables
from tests.drawn.tables import Clock
from tests.effort import examples
from tests.spark.samples import as_set
from tests.spark.streaming.buckets import Bucket, Operator

SECOND, START = 1_000_000, 1_800_000_000_000_000
INSTANT = pa.timestamp("us", "UTC")
AFTER_MATCH = ("all", "all", "skip_to_next", "skip_past_last")
FOR_EVER = 1 << 51
# Types that DataFrames have not, and those in their place.
PLAIN = {
    pa.dictionary(pa.int32(), pa.string()): pa.string(),
    pa.large_string(): pa.string(),
    pa.uint8(): pa.int16(),
    pa.timestamp("ms"): pa.timestamp("us"),
}


def asked(
    text: str, schema: pa.Schema, *, every: str | None = None, late: str = "drop", time_to_live: str | None = None, **options: Any
) -> tuple[NarrowQuery, Any]:
    given, settings = read_keywords(options)
    kinds = by_kind(settings) if settings.timeouts else (settings,)
    query, *timeouts = [NarrowQuery.of(text, schema, given, each) for each in kinds]
    live = live_query(query, timeouts, Arrival(late=late, every=every, time_to_live=time_to_live))
    return query, live_work(query, live, 1, schema)


def over_instants(case: Case, shifts: tuple[int, ...]) -> Case:
    """The same question over instants a second apart, but for a shift by microseconds, with a window of time."""
    _, ranks = np.unique(case.events.column("ts").to_numpy(), return_inverse=True)
    times = START + ranks * SECOND + np.array(shifts)[ranks % len(shifts)]
    text = re.sub(r"WITHIN .*$", "", case.text).rstrip() + f"\nWITHIN {window_of(case.text)} seconds"
    options = {name: value for name, value in case.options.items() if name != "time_unit"}
    return Case(text, as_spark_has_it(case.events.set_column(0, "ts", pa.array(times, INSTANT))), options)


def as_spark_has_it(events: pa.Table) -> pa.Table:
    """The events with the columns' types as a DataFrame has them."""
    kinds = [PLAIN.get(kind, kind) for kind in events.schema.types]
    return events.cast(pa.schema(list(zip(events.schema.names, kinds, strict=True))))


def window_of(text: str) -> int:
    found = re.search(r"WITHIN (\d)", text)
    return 4 if found is None else int(found[1])


def in_tasks(events: pa.Table) -> list[pa.Table]:
    """The events of a micro-batch as two tasks pack them, or one of a few."""
    cut = 0 if events.num_rows < 4 else events.num_rows // 2
    return [part for part in (events.slice(0, cut), events.slice(cut)) if part.num_rows]


pytestmark = pytest.mark.usefixtures("few_buckets", "decided_at_once")


def check_buckets(case: Case, data: st.DataObject, **options: Any) -> Operator:
    case = over_instants(case, data.draw(st.sampled_from(((0,), (0, 1), (0, 999, 1_000))), "shifts"))
    expected(case)  # not too many
    try:
        return check_arrival(case, data, **options)
    except UnsupportedError as refusal:
        if "() of these arguments is not supported" in str(refusal):
            reject()
        raise


def check_arrival(case: Case, data: st.DataObject, **options: Any) -> Operator:
    """The buckets have what a batch has over the events in time, in whatever order and micro-batches events come."""
    every = data.draw(st.sampled_from((None, None, "2 seconds")), "every")
    query, work = asked(case.text, case.events.schema, every=every, **case.options, **options)
    rows = np.argsort(case.events.column("ts").to_numpy(), kind="stable")
    order = data.draw(st.one_of(st.just("sorted"), st.randoms(use_true_random=False)), "order")
    if order != "sorted":
        rows = np.arange(len(rows))
        order.shuffle(rows)
    events = case.events.take(rows)
    operator = Operator(work, delay=data.draw(st.sampled_from((0, 1, 1_000, 3_000)), "delay"))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=6), "cuts"))
    batches = [in_tasks(events.slice(low, high - low)) for low, high in zip([0, *cuts], [*cuts, len(rows)], strict=True)]
    # chunks that arrive are joined, or stay as they came
    with patch.object(live_state, "LARGE", data.draw(st.sampled_from((1 << 15, 0)), "bytes of a large chunk")):
        late = [operator.batch(*tasks) for tasks in batches]
    operator.idle(FOR_EVER)
    in_time = np.concatenate(late) == 0
    assert operator.total("late") == np.count_nonzero(~in_time)
    assert operator.total("events") == np.count_nonzero(in_time)
    on_time = events.filter(pa.array(in_time)).select(query.events.names)
    batch, matches = certain_of(work.live, on_time) if "EVENTS" in case.text else batch_of(work.live, on_time)
    assert operator.total("matches") == matches or query.settings.output == "events"
    if work.whole is not None:
        batch = with_late(batch, events.filter(pa.array(~in_time)).cast(work.whole))
    assert as_set(operator.found) == as_set(pa.Table.from_batches([as_promised(batch, work.result)]))
    return operator


def batch_of(live: LiveQuery, events: pa.Table) -> tuple[pa.Table, int]:
    """What a batch gives, and how many of it are matches."""
    found = [answer(plan, events) for plan in (live.plan, live.timeouts) if plan is not None]
    return pa.concat_tables(found), found[0].num_rows


def certain_of(live: LiveQuery, events: pa.Table) -> tuple[pa.Table, int]:
    """What is certain once time has passed for ever, but further events may come; all of it are matches."""
    state = push_events(live, first_state(live.schema), events).state
    _, found = certain_matches(live, replace(state, clock=replace(state.clock, watermark=FOR_EVER * TICKS)))
    return found, found.num_rows


@examples(60, 400)
@given(whole_language(max_size=12, after_match=AFTER_MATCH), st.data())
def test_buckets_have_the_matches_of_a_batch(case, data):
    assert check_buckets(case, data).is_empty()


@examples(60, 400)
@given(trend_cases(after_match=AFTER_MATCH), st.data())
def test_buckets_tell_strategies_apart(case, data):
    assert check_buckets(case, data).is_empty()


WITH_TIMEOUTS = ("skip_till_next_match", "partition_contiguity", "strict_contiguity")


@examples(30, 200)
@given(whole_language(max_size=12, after_match=AFTER_MATCH, strategies=WITH_TIMEOUTS), st.sampled_from(("drop", "rows")), st.data())
def test_buckets_have_timeouts_and_late_events(case, late, data):
    assert check_buckets(case, data, timeouts=True, late=late).is_empty()


@examples(30, 200)
@given(whole_language(max_size=12, after_match=AFTER_MATCH), st.sampled_from((("events", "drop"), ("matches", "rows"))), st.data())
def test_buckets_give_the_events_of_matches_and_late_ones(case, asked, data):
    output, late = asked
    operator = check_buckets(case, data, output=output, late=late)
    assert all(not (bucket.chunks.values or bucket.timers) for bucket in operator.buckets.values())


MOMENTS = Clock(pa.timestamp("us", "UTC"), lambda n: datetime.fromtimestamp(START // SECOND + n, UTC), ("{n} seconds",))


@st.composite
def situations(draw: st.DrawFn) -> Case:
    text = draw(situation_queries(3, MOMENTS.windows))
    text = text if "\nWITHIN" in text else f"{text}\nWITHIN 5 seconds"
    keys, mode = draw(st.sampled_from((None, ["k"], ["s"]))), draw(st.sampled_from(("final", "early")))
    options = {"detect": mode, **({} if keys is None else {"partition_by": keys})}
    return Case(text, as_spark_has_it(draw(situation_tables(MOMENTS, 12, True, False))), options)


@examples(40, 300)
@given(situations(), st.sampled_from(("drop", "rows")), st.data())
def test_buckets_have_the_situations_of_a_batch(case, late, data):
    try:
        operator = check_arrival(case, data, late=late)
    except PatternError:
        reject()  # no situations satisfy it
    # an event of each key says what has begun, and waits for nothing
    assert all(not bucket.timers for bucket in operator.buckets.values())


@examples(30, 200)
@given(whole_language(max_size=12), st.data())
def test_a_bucket_has_windows_of_a_number_of_events(case, data):
    case = over_instants(case, (0, 1))
    case = replace(case, text=re.sub(r"seconds$", "EVENTS", case.text))
    case.options.pop("partition_by", None)
    expected(case)
    try:
        operator = check_arrival(case, data)
    except UnsupportedError as refusal:
        if "() of these arguments is not supported" in str(refusal):
            reject()
        raise
    assert len(operator.buckets) <= 1


EVENTS = pa.schema({"ts": INSTANT, "type": pa.string(), "k": pa.int64()})
PAIRS = "PATTERN SEQ(A a, B b) WHERE a.k = b.k WITHIN 5 seconds RETURN a.ts AS a, b.ts AS b"


def events_at(*times: int, kinds: str, k: int = 1) -> pa.Table:
    """Events of one key, at times in microseconds."""
    return pa.table({"ts": pa.array(times, INSTANT), "type": list(kinds), "k": [k] * len(times)}, EVENTS)


def operator_of(text: str = PAIRS, **options: Any) -> Operator:
    return Operator(asked(text, EVENTS, **options)[1])


def test_an_event_at_the_watermark_is_late_and_one_a_microsecond_behind_it_is_not():
    operator = operator_of()
    operator.batch(events_at(START, START + 2_999, kinds="AA"))
    assert operator.watermark * TICKS == START + 2_000
    late = operator.batch(events_at(START + 2_000, START + 2_001, START + 1, kinds="BBB"))
    assert late.tolist() == [True, False, True]
    assert (operator.total("late"), operator.total("events")) == (2, 3)
    assert operator.total("ahead") == 1
    operator.idle(FOR_EVER)
    assert operator.found.num_rows == 1


def test_a_late_event_is_an_error_if_that_is_asked_for():
    operator = operator_of(late="error")
    operator.batch(events_at(START + SECOND, kinds="A"))
    told = r"2 events are late: .* 1800000001000000 microseconds .* withWatermark\(\).* the pattern is PATTERN SEQ"
    with pytest.raises(EventError, match=told):
        operator.batch(events_at(START, START + SECOND, kinds="BB"))
    with pytest.raises(EventError, match="1 event is late: its time is not after the watermark, 18"):
        operator.batch(events_at(START, kinds="B"))


@pytest.mark.parametrize(
    ("pattern", "waits"), [("SEQ(A a, B b)", 0), ("SEQ(A a, B b+)", 4 * SECOND), ("SEQ(A a, B b, NOT(C c))", 4 * SECOND)]
)
def test_a_match_comes_out_with_the_millisecond_in_which_it_is_certain(pattern: str, waits: int) -> None:
    operator = operator_of(f"PATTERN {pattern} WITHIN 5 seconds")
    operator.batch(events_at(START, START + SECOND, kinds="AB"))
    certain = (START + SECOND + waits) // TICKS
    operator.idle(certain - 1)
    assert operator.found.num_rows == 0
    operator.idle(certain)
    assert operator.found.num_rows == 1


def test_a_list_is_read_once_by_a_run_that_writes_it_anew():
    operator = operator_of()
    operator.batch(events_at(*(START + second * SECOND for second in range(20)), kinds="A" * 20))
    ((bucket,),) = (operator.buckets.values(),)
    with patch.object(bucket.chunks, "get", wraps=bucket.chunks.get) as read:
        operator.idle(START // TICKS + 16_000)
    (chunk,) = bucket.chunks.values
    assert chunk[0] is None, "it has been written anew"
    assert read.call_count == 1


def test_the_engine_runs_as_seldom_as_is_asked_for():
    operator = operator_of(every="4 seconds")
    operator.batch(events_at(START, START + SECOND, kinds="AB"))
    begun = operator.watermark
    operator.idle(begun + 3_999)
    assert operator.found.num_rows == 1, "the first watermark is 0, so the engine ran with the second one"
    operator.batch(events_at(*[(begun + 4_500) * TICKS] * 2, kinds="AA"), events_at((begun + 4_600) * TICKS, kinds="B"))
    operator.idle(begun + 3_999 + 3_999)
    assert operator.found.num_rows == 1
    operator.idle(begun + 3_999 + 4_000)
    assert operator.found.num_rows == 3


def test_matches_are_numbered_on_in_a_bucket_that_was_empty():
    operator = operator_of(output="events")
    for begin in (START, START + 100 * SECOND):
        operator.batch(events_at(begin, begin + SECOND, kinds="AB"))
        operator.idle(begin // TICKS + 50_000)
        assert not any(bucket.chunks.values or bucket.timers for bucket in operator.buckets.values())
    assert operator.found.column("match_id").to_pylist() == [0, 0, 1, 1]


def test_a_bucket_of_situations_waits_for_events_alone():
    operator = operator_of("PARTITION BY k DEFINE H AS type = 'A', L AS type = 'B' PATTERN H meets L WITHIN 5 seconds")
    operator.batch(events_at(START, START + SECOND, START + 2 * SECOND, kinds="ABA"))
    operator.idle(START // TICKS + 60_000)
    assert operator.found.num_rows == 1
    assert not any(bucket.timers for bucket in operator.buckets.values())
    calls = len(operator.frames)
    operator.idle(START // TICKS + 120_000)
    assert len(operator.frames) == calls
    # the last event of the key has begun a situation, however long ago
    later = START + 200 * SECOND
    operator.batch(events_at(later, later + SECOND, later + 2 * SECOND, kinds="ABA"))
    operator.idle(FOR_EVER)
    assert operator.found.num_rows == 1


def test_the_state_of_another_query_is_refused():
    operator = operator_of()
    operator.batch(events_at(START, kinds="A"))
    for other in (PAIRS.replace("5", "6"), PAIRS.replace("a.ts AS a", "a.k AS a")):
        operator.work = asked(other, EVENTS)[1]
        with pytest.raises(EventError, match=r"belongs to another query, whose pattern is .*WITHIN 5 .*a checkpointLocation of its own"):
            operator.batch(events_at(START + 1, kinds="B"))


def test_the_same_query_is_taken_whatever_it_runs_by():
    operator = operator_of()
    operator.batch(events_at(START, kinds="A"))
    operator.work = asked(PAIRS.replace(" WITHIN", "\n  WITHIN"), EVENTS, every="1 second", max_matches=9, algorithm="nfab")[1]
    operator.batch(events_at(START + 1, kinds="B"))
    operator.idle(FOR_EVER)
    assert operator.found.num_rows == 1


def test_keys_are_not_spread_anew():
    operator = operator_of()
    operator.batch(events_at(START, kinds="A"))
    operator.work = replace(operator.work, partitions=2)
    with pytest.raises(EventError, match="the checkpoint spreads keys over 2 buckets, and this run over 4"):
        operator.idle(FOR_EVER)


def test_a_checkpoint_that_spread_keys_otherwise_is_refused():
    operator = operator_of()
    operator.batch(events_at(START, kinds="A"))
    told = r"written by an earlier release, .*; go on with the build of gpu_cep [0-9.]+ that saved it"
    with patch.object(live_state, "_SPREAD", "in another way"), pytest.raises(EventError, match=told):
        operator.idle(FOR_EVER)


@pytest.mark.parametrize("partitions", [1, 2, 3, 8, 200])
def test_each_partition_of_the_state_has_as_many_buckets(partitions: int) -> None:
    numbers = live_packing.bucket_numbers(partitions, 8)
    assert len(set(numbers.tolist())) == 8 * partitions
    assert np.bincount(live_packing.partition_of(numbers, partitions)).tolist() == [8] * partitions


def test_events_without_a_time_are_an_error():
    operator = operator_of()
    with pytest.raises(EventError, match="timestamp column 'ts' holds 1 NULL in one partition of the events; nulls='drop'"):
        operator.batch(pa.concat_tables([events_at(START, kinds="A"), events_at(kinds="").take(pa.array([None], pa.int64()))]))


def test_a_bucket_keeps_no_more_than_a_window_of_fresh_keys():
    operator, kept = operator_of(), []
    for number in range(60):
        times = START + number * SECOND + np.arange(0, SECOND, 10_000)
        keys = range(number * 100, number * 100 + 100)
        operator.batch(pa.table({"ts": pa.array(times, INSTANT), "type": ["A"] * 100, "k": keys}, EVENTS))
        stored = [chunk for bucket in operator.buckets.values() for _, chunk in bucket.chunks.values]
        kept.append(sum(map(len, stored)))
    # two windows, a micro-batch and the chunks' headers
    assert max(kept) < 2 * 40 * 700
    assert max(kept[40:]) <= 1.1 * max(kept[:40])
    operator.idle(FOR_EVER)
    assert operator.is_empty()


@pytest.mark.parametrize("options", [{}, {"timeouts": True, "late": "rows"}, {"after_match": "skip_past_last"}])
@pytest.mark.parametrize("windows", [40, pytest.param(1_000, marks=pytest.mark.full)])
def test_the_state_does_not_grow_with_the_keys_that_there_have_been(windows: int, options: dict[str, Any]) -> None:
    operator, sizes = operator_of(**options), []
    for number in range(windows):
        times = START + number * 5 * SECOND + np.arange(0, 5 * SECOND, 50_000)
        kinds, keys = np.where(np.arange(100) % 2, "B", "A"), number * 50 + np.arange(100) // 2
        operator.batch(pa.table({"ts": pa.array(times, INSTANT), "type": kinds, "k": keys}, EVENTS))
        sizes.append(sum(map(bytes_of, operator.buckets.values())))
        operator.frames = operator.frames[-2:]
    half = windows // 2
    # lists are written anew now and then; what grew with the keys would have doubled
    assert max(sizes[half:]) <= 1.25 * max(sizes[:half])
    operator.idle(FOR_EVER)
    assert operator.is_empty()


def bytes_of(bucket: Bucket) -> int:
    """The bytes of a bucket's state."""
    return sum(len(about) for (about,) in bucket.about.values) + sum(len(chunk) for _, chunk in bucket.chunks.values)
