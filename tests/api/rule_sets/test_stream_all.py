"""A stream of many patterns gives for each what a stream of its own gives, push by push."""

from __future__ import annotations

import warnings
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import gpu_cep as cep
from gpu_cep.plan.interval_plan import INTERVAL_PLAN_VERSION, IntervalPlan
from gpu_cep.rule_sets import streams as rule_streams
from tests.drawn.rule_sets import families, typed_rule_sets
from tests.effort import examples

SCHEMA = pa.schema({"ts": pa.int64(), "type": pa.string()})
STEPS = pa.table({"ts": [1, 2, 3, 4, 5, 6], "type": ["View", "View", "Buy", "Leave", "View", "Buy"]}, SCHEMA)
RULES = {
    "bought": "PATTERN SEQ(View v, Buy b) WITHIN 5 RETURN v.ts AS at",
    "left": "PATTERN SEQ(View v, Leave x) WITHIN 5 RETURN v.ts AS at",
    "late": "PATTERN SEQ(v, NOT(Buy n)) WHERE v.ts > 4 WITHIN 5 RETURN v.ts AS at",
}


def each_alone(rules, schema, **keywords):
    """A stream for each rule; None if some rule is refused."""
    try:
        return {name: cep.stream(rule.pattern, schema, **{**keywords, **rule.options}) for name, rule in rules.items()}
    except cep.CepError:
        return None


@examples(40, 200)
@given(st.one_of(typed_rule_sets(), families()), st.sampled_from(("matches", "events", "indices", "count")), st.data())
def test_each_has_the_matches_of_its_own_stream(case, output, data):
    lateness, every = data.draw(st.sampled_from((0, 0, 2))), data.draw(st.sampled_from((None, None, 3)))
    keywords = {"output": output, "lateness": lateness, "every": every, "late": data.draw(st.sampled_from(("drop", "drop", "rows")))}
    alone = each_alone(case.rules, case.events.schema, **keywords)
    assume(alone is not None)
    together = cep.stream_all(case.rules, case.events.schema, split=True, **keywords)
    begin = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        while begin < case.events.num_rows:
            size = data.draw(st.integers(1, 12))
            part = case.events.slice(begin, size)
            try:
                expected = {name: live.push(part) for name, live in alone.items()}
            except cep.MatchLimitExceeded:
                with pytest.raises(cep.MatchLimitExceeded, match="pattern 'rule"):
                    together.push(part)
                return
            found = together.push(part)
            assert {name: str(rows.to_pylist()) for name, rows in found.items()} == {
                name: str(rows.to_pylist()) for name, rows in expected.items()
            }  # fmt: skip
            begin += size
            if data.draw(st.booleans()):
                together = cep.stream_all.load(together.save())
    clocks = {(live.clock.watermark, live.clock.pushed, live.clock.late, live.clock.latest) for live in alone.values()}
    assert {(together.clock.watermark, together.clock.pushed, together.clock.late, together.clock.latest)} == clocks
    last = {name: str(live.finish().to_pylist()) for name, live in alone.items()}
    assert {name: str(rows.to_pylist()) for name, rows in together.finish().items()} == last


@examples(15, 200)
@given(st.integers(1, 6), st.sampled_from(("certain", "window")), st.integers(0, 2**32 - 1))
def test_silent_keys_begin_anew_for_the_patterns_that_count_their_events(silence, emit, seed):
    random = np.random.default_rng(seed)
    schema = SCHEMA.append(pa.field("k", pa.int64()))
    counted = {"two": "PATTERN SEQ(A a, B b) WITHIN 3 EVENTS", "last": "PATTERN SEQ(A a, NOT(C n), B b+) WITHIN 4 EVENTS"}
    counted = {name: cep.Rule(text, {"partition_by": "k"}) for name, text in counted.items()}
    others = {"time": "PATTERN SEQ(A a, B b) WITHIN 4", "all": "PATTERN SEQ(A a, C c) WITHIN 3 EVENTS"}
    alone = {name: cep.stream(rule.pattern, schema, emit=emit, time_to_live=silence, **rule.options) for name, rule in counted.items()}
    alone |= {name: cep.stream(text, schema, emit=emit) for name, text in others.items()}
    together, time = cep.stream_all(counted | others, schema, emit=emit, time_to_live=silence, split=True), 0
    for _ in range(6):
        times = time + np.sort(random.integers(0, 6, 6))
        part = pa.table({"ts": times, "type": random.choice(list("ABC"), 6), "k": random.integers(0, 3, 6)}, schema)
        time = int(times[-1]) + int(random.choice([0, 1, 9]))
        assert together.push(part) == {name: live.push(part) for name, live in alone.items()}
        together = cep.stream_all.load(together.save()) if random.random() < 0.4 else together
    assert together.finish() == {name: live.finish() for name, live in alone.items()}
    assert together.clock.expired == sum(live.clock.expired for live in alone.values())
    assert together.clock.expired or silence > 1


def test_events_that_are_looked_up_keep_their_numbers():
    rules = {"x": "PATTERN SEQ(A a, B b) WITHIN 5", "y": "PATTERN SEQ(C a, D b) WITHIN 5"}
    live = cep.stream_all(rules, SCHEMA, output="indices", split=True)
    for begin, numbers in ((0, (2, 4, 0, 3)), (10, (8, 10, 6, 9))):
        found = live.push(pa.table({"ts": range(begin, begin + 6), "type": list("CZADBZ")}, SCHEMA))
        first, second, third, fourth = numbers
        assert {name: table.to_pylist() for name, table in found.items()} == {
            "x": [{"a": first, "b": second}],
            "y": [{"a": third, "b": fourth}],
        }


ROWS = "MATCH_RECOGNIZE (ORDER BY ts MEASURES FIRST(ts) AS at PATTERN (A B) WITHIN 4 DEFINE A AS type = 'View', B AS type = 'Buy')"
ROW_PATTERNS = {
    "falls": "MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES FIRST(ts) AS at, MATCH_NUMBER() AS number "
    "PATTERN (S DOWN+) WITHIN 6 DEFINE DOWN AS x < PREV(x))",
    "or": "MATCH_RECOGNIZE (ORDER BY ts MEASURES FIRST(ts) AS at, LAST(ts) AS until AFTER MATCH SKIP TO NEXT ROW "
    "PATTERN (A B C | A) WITHIN 4 DEFINE A AS type = 'A', B AS type <> 'A', C AS x > 1)",
    "all rows": "MATCH_RECOGNIZE (ORDER BY ts MEASURES CLASSIFIER() AS variable ALL ROWS PER MATCH "
    "PATTERN (A B+?) WITHIN 3 DEFINE A AS type = 'A', B AS x >= 1)",
}


@examples(15, 200)
@given(st.lists(st.sampled_from([*ROW_PATTERNS]), min_size=1, unique=True), st.sampled_from(("drop", "rows")), st.integers(0, 2**32 - 1))
def test_row_patterns_have_the_matches_of_their_own_streams(names, late, seed):
    random = np.random.default_rng(seed)
    schema = pa.schema({"ts": pa.int64(), "type": pa.string(), "k": pa.int64(), "x": pa.int64()})
    pairs = {"one": "PATTERN SEQ(A a, B b) WITHIN 4", "other": "PATTERN SEQ(A a, C b) WITHIN 4"}
    rules = {name: ROW_PATTERNS[name] for name in names}
    rules = rules | pairs if random.random() < 0.5 else pairs | rules
    keywords = {"lateness": int(random.integers(0, 3)), "late": late}
    alone = {name: cep.stream(rule, schema, **keywords) for name, rule in rules.items()}
    together, time = cep.stream_all(rules, schema, split=True, **keywords), 0
    assert together.schema == {name: live.schema for name, live in alone.items()}
    for _ in range(5):
        columns = {"type": random.choice(list("ABC"), 6), "k": random.integers(0, 2, 6), "x": random.integers(0, 4, 6)}
        part = pa.table({"ts": time + random.integers(0, 6, 6), **columns}, schema)
        time += int(random.choice([0, 3, 20]))
        assert together.push(part) == {name: live.push(part) for name, live in alone.items()}
        together = cep.stream_all.load(together.save()) if random.random() < 0.4 else together
    assert together.finish() == {name: live.finish() for name, live in alone.items()}


def test_one_table_names_the_patterns():
    live = cep.stream_all(RULES, SCHEMA)
    parts = [live.push(STEPS.slice(row, 2)) for row in range(0, 6, 2)] + [live.finish()]
    rows = sorted((row["pattern"], row["at"]) for part in parts for row in part.to_pylist())
    batch = cep.match_all(STEPS, RULES).to_pylist()
    assert rows == sorted((row["pattern"], row["at"]) for row in batch)
    assert all(part.schema == live.schema for part in parts)
    assert live.clock.reported == len(rows)


ENDS = ("SEQ(A a, B b)", "SEQ(A a, B b+)", "SEQ(A a, NOT(C c))", "SEQ(A a, OR(B b, C c+))", "SEQ(A a, NOT(B n), C c+)")
WALKS = ("skip_till_next_match", "robust_skip_till_next_match", "skip_till_any_match")


@examples(15, 200)
@given(st.lists(st.tuples(st.sampled_from(ENDS), st.sampled_from(WALKS)), min_size=1, max_size=3), st.integers(0, 2**32 - 1))
def test_matches_that_are_held_back_come_out_though_nothing_else_comes(shapes, seed):
    random = np.random.default_rng(seed)
    own = {"after_match": "skip_past_last"}
    rules = {str(n): cep.Rule(f"PATTERN {text} WITHIN 4", own | {"strategy": walk}) for n, (text, walk) in enumerate(shapes)}
    alone = {name: cep.stream(rule.pattern, SCHEMA, **rule.options) for name, rule in rules.items()}
    together, time = cep.stream_all(rules, SCHEMA, split=True), 0
    for _ in range(6):
        times = time + np.sort(random.integers(0, 6, 5))
        part = pa.table({"ts": times, "type": random.choice(list("ABCZ"), 5)}, SCHEMA)
        time = int(times[-1]) + int(random.choice([0, 1, 3, 20]))
        found = [(together.push(part), {name: live.push(part) for name, live in alone.items()})]
        found.append((together.advance(time - 1), {name: live.advance(time - 1) for name, live in alone.items()}))
        assert all(left == right for left, right in found)
        together = cep.stream_all.load(together.save()) if random.random() < 0.3 else together
    assert together.finish() == {name: live.finish() for name, live in alone.items()}


@pytest.mark.usual
def test_a_rule_without_events_runs_no_engine():
    quiet = {f"rule {n}": f"PATTERN SEQ(T{n} a, U{n} b) WITHIN 5 RETURN a.ts AS at" for n in range(20)}
    live = cep.stream_all(quiet, SCHEMA)
    with patch.object(rule_streams, "certain_matches", wraps=rule_streams.certain_matches) as runs:
        live.push(pa.table({"ts": [1, 2, 3], "type": ["T3", "View", "T7"]}, SCHEMA))
    assert runs.call_count == 2
    assert repr(live) == "RuleStream(20 patterns, watermark=3, events=3, late=0, matches=0, kept_events=2)"


def test_an_error_takes_no_event():
    options = {"max_matches": 1, "strategy": "skip_till_any_match"}
    rules = RULES | {"many": cep.Rule("PATTERN SEQ(a, b) WITHIN 9 RETURN a.ts AS at", options)}
    live = cep.stream_all(rules, SCHEMA)
    with pytest.raises(cep.MatchLimitExceeded, match="pattern 'many'"):
        live.push(STEPS)
    assert (live.clock.pushed, live.kept_events) == (0, 0)


def test_late_events_are_an_error_if_that_is_asked_for():
    live = cep.stream_all(RULES, SCHEMA, late="error")
    live.push(STEPS.slice(3))
    with pytest.raises(cep.EventError, match="event 3 is late: the watermark"):
        live.push(STEPS.slice(0, 1))
    assert live.clock.pushed == 3


@pytest.mark.parametrize("options", [{}, {"timeouts": True}])
def test_a_late_event_is_a_row_of_no_pattern(options):
    rules = {name: text for name, text in RULES.items() if name != "late"}
    live, calm = (cep.stream_all(rules, SCHEMA, late=late, **options) for late in ("rows", "drop"))
    parts = [STEPS.slice(3), STEPS.slice(0, 2), pa.table({"ts": [7], "type": ["Buy"]}, SCHEMA)]
    found = [live.push(part) for part in parts] + [live.advance(8), live.finish()]
    expected = [calm.push(part) for part in parts] + [calm.advance(8), calm.finish()]
    assert all(part.schema == live.schema for part in found)
    assert live.schema.names == ["pattern", "kind", *(name for name in calm.schema.names[1:] if name != "kind"), "event"]
    late = [row for part in found for row in part.to_pylist() if row["kind"] == "late"]
    assert [(row["pattern"], row["at"], row["event"]) for row in late] == [(None, None, event) for event in STEPS.slice(0, 2).to_pylist()]
    assert found[1].to_pylist()[:2] == late
    others = [[{name: row[name] for name in calm.schema.names} for row in part.to_pylist() if row["kind"] != "late"] for part in found]
    assert others == [part.to_pylist() for part in expected]
    assert live.clock.late == 2


def test_a_stream_without_events_goes_by_the_clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(rule_streams, "monotonic", lambda: now[0])
    live = cep.stream_all(RULES, SCHEMA, idle="30 seconds", time_unit="s")
    live.push(STEPS)
    now[0] += 29
    assert live.advance().num_rows == 0
    assert live.clock.watermark == 6
    live = cep.stream_all.load(live.save())
    now[0] += 31
    assert [row["at"] for row in live.advance().to_pylist()] == [6]
    assert live.clock.watermark == 6 + 31
    live.push(pa.table({"ts": [40], "type": ["View"]}, SCHEMA))
    assert live.advance().num_rows == 0
    assert live.clock.watermark == 40
    with pytest.raises(cep.EventError, match=r"advance\(\) needs a time, or a stream that was made with idle="):
        cep.stream_all(RULES, SCHEMA).advance()


def test_a_finished_stream_takes_no_events():
    live = cep.stream_all(RULES, SCHEMA)
    live.finish()
    with pytest.raises(cep.EventError, match="the stream is finished"):
        live.push(STEPS)


@pytest.mark.parametrize(
    ("rules", "options", "message"),
    [
        ({"a": "PATTERN SEQ(View v, Buy b)"}, {}, "pattern 'a': "),
        ({"a": "PATTERN SEQ(v) WHERE v.nothing > 1 WITHIN 5", "b": "PATTERN SEQ(v"}, {}, "pattern 'b'"),
        (RULES | {"x": ROWS.replace("WITHIN 4", "")}, {}, "pattern 'x': a stream of MATCH_RECOGNIZE without WITHIN"),
        ({"a": RULES["left"], "x": ROWS.replace("A B)", "A B $)")}, {}, "pattern 'x': a stream with $ is"),
        ({"x": ROWS}, {"output": "count"}, "pattern 'x': output='count' is not"),
        ({"x": ROWS, "a": "PATTERN SEQ(a) WITHIN 2"}, {"nulls": "drop"}, "pattern 'x': nulls='drop' is not for row"),
        ({"x": ROWS, "a": "PATTERN SEQ(View a) WITHIN 2"}, {}, "have not the same columns"),
        ({"a": cep.Rule("PATTERN SEQ(View a) WITHIN 2 EVENTS", {"partition_by": "type"})}, {}, "stream_all() take it"),
        (RULES, {"time_to_live": "long"}, "time_to_live='long' is no length of time"),
        (RULES, {"time_to_live": 0}, "time_to_live=0 must be more than nothing"),
        ({"x": ROWS}, {"time_to_live": "long"}, "time_to_live='long' is no length of time"),
        (RULES, {"late": "row"}, "late='row' is unknown; expected one of drop, error, rows"),
        (RULES, {"idle": "3 seconds"}, "needs the length of its ticks"),
        ({"a": "PATTERN SEQ(View v) WITHIN 5 RETURN v.ts AS event"}, {"late": "rows"}, "late='rows' adds a column 'event'"),
        (RULES | {"x": "PATTERN SEQ(View v) WITHIN 5 RETURN v.type AS at"}, {}, "have not the same columns"),
        (RULES | {"x": cep.Rule("PATTERN SEQ(View v) WITHIN 5 RETURN v.ts AS at", {"nulls": "drop"})}, {}, "a stream has one watermark"),
    ],
)
def test_what_cannot_be_is_refused(rules, options, message):
    with pytest.raises(cep.CepError) as caught:
        cep.stream_all(rules, SCHEMA, **options)
    assert message in str(caught.value)


@pytest.mark.parametrize("ask", [lambda: cep.match(STEPS, RULES), lambda: cep.stream(RULES, SCHEMA)])
def test_one_pattern_is_asked_for_where_there_are_many(ask):
    with pytest.raises(cep.PatternSyntaxError, match=r"not dict: many patterns by name are given to match_all\(\), stream_all\(\)"):
        ask()


@pytest.mark.parametrize("state", [b"", b"nothing", cep.stream(RULES["bought"], SCHEMA).save(), 3])
def test_what_is_no_state_is_an_error(state):
    with pytest.raises(cep.EventError, match="state: "):
        cep.stream_all.load(state)


def test_a_refused_pattern_tells_the_version_of_its_own_plan(monkeypatch):
    rules = {"events": RULES["left"], "situations": "DEFINE A AS ts > 1, B AS ts <= 1 PATTERN A meets B WITHIN 5 RETURN last(A.ts) AS at"}
    saved = cep.stream_all(rules, SCHEMA, split=True).save()
    monkeypatch.setattr(IntervalPlan, "fingerprint", lambda plan: "another")
    with pytest.raises(cep.EventError, match="plans pattern 'situations' in another way; load it with"):
        cep.stream_all.load(saved)
    # as long as the version that this release gives such plans
    earlier = saved.replace(f'"version": {INTERVAL_PLAN_VERSION}'.encode(), b'"version": 4')
    told = rf"plans pattern 'situations' in another way \(plan version {INTERVAL_PLAN_VERSION}, the state has 4\); load it with"
    with pytest.raises(cep.EventError, match=told):
        cep.stream_all.load(earlier)
