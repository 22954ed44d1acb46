"""A stream with many events in its window reads few of them, and has the matches of a batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest

import gpu_cep as cep
from gpu_cep.engine.accounting.resources import Resources
from gpu_cep.engine.intervals import join, run
from gpu_cep.engine.streaming import decisive, event_tags, moving_streams
from gpu_cep.engine.streaming.state import first_state
from gpu_cep.keywords import read_keywords
from gpu_cep.live import steps as stream_steps
from gpu_cep.live.plans import Arrival, plan_live
from gpu_cep.live.steps import certain_matches, hold_events

EVENTS = pa.schema({"ts": pa.int64(), "type": pa.string(), "k": pa.int64(), "x": pa.int64()})
HIGH_AND_LOW = "PARTITION BY k DEFINE H AS x > 5, L AS x <= 5 PATTERN H meets L"
THREE = "PARTITION BY k DEFINE A AS x > 2, B AS x > 5, C AS type = 'A' PATTERN"
PAIRS = "PATTERN SEQ(A a, B b) WHERE [k] AND a.x < b.x"
QUERIES: dict[str, tuple[str, dict[str, Any]]] = {
    "last event": (PAIRS, {}),
    "taken": (PAIRS, {"after_match": "skip_past_last"}),
    "counted": (PAIRS, {"output": "count", "partition_by": "k"}),
    "events": (PAIRS, {"output": "events", "partition_by": "k"}),
    "numbers": (PAIRS, {"output": "indices"}),
    "timeouts": (PAIRS, {"timeouts": True}),
    "window": ("PATTERN SEQ(A a, B b+, NOT(C c)) WHERE [k]", {}),
    "looks back": ("PATTERN SEQ(NOT(C c), A a, B b) WHERE [k]", {}),
    "rising": ("PATTERN SEQ(A a, B b, C c) WHERE [k] AND a.x <= b.x AND b.x <= c.x", {}),
    "rising, taken": ("PATTERN SEQ(A a, B b, C c) WHERE [k] AND a.x <= b.x", {"after_match": "skip_past_last"}),
    "rising, timeouts": ("PATTERN SEQ(A a, B b, C c) WHERE [k] AND a.x <= b.x AND b.x <= c.x", {"timeouts": True}),
    "of any type": ("PATTERN SEQ(a, b, c) WHERE [k] AND a.x < b.x AND b.x < c.x", {"output": "indices"}),
    "of two types": ("PATTERN SEQ(A a, b, A c) WHERE [k] AND a.x < b.x AND b.x < c.x", {"output": "indices"}),
    "three neighbours": ("PATTERN SEQ(A a, b, c) WHERE partition_contiguity { [k] AND a.x <= b.x }", {}),
    "ordered neighbours": ("PATTERN SEQ(a, b) WHERE strict_contiguity { a.x < b.x }", {"order_by": ["x"], "ties": "position"}),
    "neighbours, timeouts": ("PARTITION BY k PATTERN SEQ(a, b) WHERE strict_contiguity { a.x < b.x }", {"timeouts": True}),
    "touching": (f"{THREE} A contains B; A finished-by B AND C overlaps A; C during A; C meets A", {}),
    "touching early": (f"{THREE} A contains B; A started-by B AND C overlaps A; A meets C", {"detect": "early"}),
    "neighbours": ("PARTITION BY k PATTERN SEQ(a, b) WHERE strict_contiguity { a.x < b.x }", {}),
    "until": ("PARTITION BY k PATTERN SEQ(A a, b+ UNTIL (b.x > 7), C c)", {}),
    "branches": ("PATTERN OR(SEQ(A a, B b), SEQ(B c, NOT(A d))) WHERE [k]", {}),
    "situations": (HIGH_AND_LOW, {}),
    "counted situations": (HIGH_AND_LOW, {"output": "count"}),
    "three": (f"{THREE} A contains B; A finished-by B; A before B AND C overlaps A; C during A; C before A", {}),
    "three early": (f"{THREE} A contains B; A started-by B; A before B AND C overlaps A; C before A", {"detect": "early"}),
    "gaps early": (f"{THREE} A overlaps C; A before C AND B during A; B starts A; B before A", {"detect": "early", "gap": 9}),
    "apart": ("PARTITION BY k DEFINE A AS x > 6, B AS x < 2 PATTERN A before B", {"detect": "early"}),
}

TIED: dict[str, tuple[str, dict[str, Any]]] = {
    "ordered three": ("PATTERN SEQ(a, b, c) WHERE partition_contiguity { [k] AND a.x <= b.x }", {"order_by": ["x"], "ties": "position"}),
    "ordered runs": ("PATTERN SEQ(A a, B b, C c) WHERE [k] AND a.x <= b.x", {"order_by": ["x"], "ties": "position"}),
}


def events(rows: int, keys: int, seed: int) -> pa.Table:
    random = np.random.default_rng(seed)
    # an event of one key in a few, so that situations last
    columns = np.cumsum(random.integers(1, 4, rows)), random.choice(list("ABC"), rows), random.integers(0, keys, rows)
    return pa.table([*columns, np.cumsum(random.integers(-2, 3, rows)) % 10], schema=EVENTS)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """How many events the engine's runs read."""
    counts: list[int] = []
    answer = stream_steps.answer

    def counted(plan: Any, table: pa.Table, **given: Any) -> pa.Table:
        counts.append(table.num_rows)
        return answer(plan, table, **given)

    monkeypatch.setattr(stream_steps, "answer", counted)
    return counts


@pytest.fixture(autouse=True)
def few_events_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let runs over few events leave some of them out, too."""
    monkeypatch.setattr(moving_streams, "_FEWEST", 0)


@pytest.fixture
def gives_up_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let streams look for events that decide nothing more among few, too."""
    monkeypatch.setattr(decisive, "_FEWEST", 0)


def rows_of(tables: list[pa.Table]) -> Counter[str]:
    return Counter(repr(row) for table in tables for row in table.to_pylist())


@pytest.mark.parametrize("name", ["three neighbours", "ordered neighbours", "neighbours", "rising", "last event", *TIED])
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.usefixtures("gives_up_soon")
def test_events_of_one_time_have_the_matches_of_a_batch(name: str, seed: int) -> None:
    query, options = (QUERIES | TIED)[name]
    random, table = np.random.default_rng(seed), events(500, 2, seed)
    table = table.set_column(0, "ts", pa.array(np.cumsum(random.integers(0, 2, 500))))
    # events of one time come in any order, and with several pushes
    table = table.take(pa.array(np.argsort(table["ts"].to_numpy() + random.random(500) * 2, kind="stable")))
    text = f"{query} WITHIN 100"
    live = cep.stream(text, EVENTS, lateness=3, late="error", **options)
    found = [live.push(table.slice(begin, 7)) for begin in range(0, 500, 7)]
    found.append(live.finish())
    batch = cep.match(table, text, **options)
    assert batch.num_rows > 1
    assert rows_of(found) == rows_of([batch])


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize(("keys", "lateness"), [(3, 7), (60, 0)])
@pytest.mark.usefixtures("gives_up_soon")
def test_pushes_have_the_matches_of_a_batch(name: str, keys: int, lateness: int) -> None:
    query, options = QUERIES[name]
    text, table = f"{query} WITHIN {600 if keys > 9 else 200}", events(1_000, keys, seed=keys + lateness)
    live = cep.stream(text, EVENTS, lateness=lateness, **options)
    found = [live.push(table.slice(begin, 40)) for begin in range(0, 1_000, 40)]
    found.append(live.finish())
    batch = cep.match(table, text, **options)
    assert batch.num_rows > 1
    if options.get("output") == "count":
        totals = pa.concat_tables(found).group_by("k").aggregate([("count", "sum")]).rename_columns(["k", "count"])
        assert rows_of([totals]) == rows_of([batch])
    elif options.get("output") == "events":
        # matches are numbered in the order in which they come out
        shown = [table.drop_columns(["match_id"]) for table in (*found, batch)]
        assert rows_of(shown[:-1]) == rows_of(shown[-1:])
    else:
        assert rows_of(found) == rows_of([batch])


@pytest.mark.parametrize("options", [{}, {"timeouts": True}, {"after_match": "skip_past_last"}, {"output": "count"}])
@pytest.mark.usefixtures("gives_up_soon")
def test_events_are_kept_as_long_as_their_run_is_open(options: dict[str, Any]) -> None:
    live = cep.stream("PATTERN SEQ(A a, B b, C c) WHERE [k] AND a.x < b.x WITHIN 1000", EVENTS, **options)
    # of key 1, a run is complete; of key 2, one waits for a C, and passes a B over; of key 3, one waits for a B
    rows = [("A", 1, 3), ("B", 1, 4), ("C", 1, 5), ("A", 2, 5), ("B", 2, 4), ("B", 2, 6), ("A", 3, 9), ("B", 3, 1)]
    types, keys, values = zip(*rows, strict=True)
    live.push(pa.table([range(8), types, keys, values], schema=EVENTS))
    assert repr(live) == f"Stream(watermark=7, events=8, late=0, matches={live.clock.reported}, kept_events=3)"
    again = cep.stream.load(live.save())
    found = again.push(pa.table([[10, 11, 12], ["C", "B", "C"], [2, 3, 3], [0, 10, 0]], schema=EVENTS))
    assert found.num_rows == (1 if "output" in options or "after_match" in options else 2)
    assert again.clock.reported == (2 if options.get("after_match") == "skip_past_last" else 3)
    # twice as many as were left are not yet worth a look
    assert again.kept_events == 6
    again.push(pa.table([[13], ["C"], [1], [0]], schema=EVENTS))
    assert again.kept_events == 0


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        ("PARTITION BY k PATTERN SEQ(a, b, c) WHERE strict_contiguity { a.x < b.x }", 6),
        ("PATTERN SEQ(a, b, c) WHERE partition_contiguity { [k] AND a.x < b.x }", 6),
        ("PATTERN SEQ(a, b, c) WHERE strict_contiguity { a.x < b.x }", 2),
        ("PATTERN a WHERE strict_contiguity { a.x > 5 }", 0),
        # what an event to come may still extend, rule out or count
        ("PATTERN SEQ(a, b+) WHERE strict_contiguity { a.x < b.x }", 900),
        ("PATTERN SEQ(a, NOT(C n), b) WHERE strict_contiguity { a.x < b.x }", 900),
        ("PATTERN AND(A a, B b) WHERE [k]", 600),
        ("PATTERN SEQ(A a, NOT(C n), B b) WHERE [k]", 900),
        ("PATTERN SEQ(A a, B b) WHERE skip_till_any_match { [k] }", 600),
        ("PARTITION BY k DEFINE H AS x > 5, L AS x <= 5 PATTERN H before L", 900),
    ],
)
@pytest.mark.usefixtures("gives_up_soon")
def test_only_what_later_matches_depend_on_is_kept(query: str, kept: int) -> None:
    live = cep.stream(f"{query} WITHIN 5000", EVENTS)
    times = np.arange(900)
    live.push(pa.table([times, np.array(list("ABC"))[times // 3 % 3], times % 3, times // 3 % 10], schema=EVENTS))
    assert live.kept_events == kept


@pytest.mark.usefixtures("gives_up_soon")
def test_situations_are_kept_as_long_as_they_touch_an_open_one() -> None:
    live, levels = cep.stream(f"{HIGH_AND_LOW} WITHIN 5000", EVENTS), [9, 8, 1, 2, 7, 3, 4]
    live.push(pa.table([range(7), ["A"] * 7, [1] * 7, levels], schema=EVENTS))
    # the last two are an open situation, the one before them touches it
    assert live.kept_events == 3
    found = live.push(pa.table([[7], ["A"], [1], [9]], schema=EVENTS))
    assert found.num_rows == 1
    assert [event["ts"] for event in found["L"][0].as_py()] == [5, 6]


@pytest.mark.usefixtures("gives_up_soon")
def test_a_decided_start_that_an_open_run_binds_is_not_started_again() -> None:
    live = cep.stream("PATTERN SEQ(A a, b, c) WHERE a.x < b.x AND c.x = 10 * a.x WITHIN 100", EVENTS)
    # the second event begins a match, and is the second of a run that waits for 10
    assert live.push(pa.table([range(4), list("AABB"), [1] * 4, [1, 2, 3, 20]], schema=EVENTS)).num_rows == 1
    assert live.push(pa.table([[4, 5], ["B", "B"], [1] * 2, [4, 20]], schema=EVENTS)).num_rows == 0
    assert live.push(pa.table([[6], ["B"], [1], [10]], schema=EVENTS)).num_rows == 1


@pytest.mark.usefixtures("gives_up_soon")
def test_an_error_of_a_run_is_one_of_the_push_that_completes_it() -> None:
    live = cep.stream("PATTERN SEQ(A a, B b, C c) WHERE a.x * b.x > 5 WITHIN 100", EVENTS, max_matches=1, max_steps=9)
    huge = pa.table([[1, 2, 3, 4], list("AABB"), [1] * 4, [1 << 62] * 4], schema=EVENTS)
    assert live.push(huge).num_rows == 0
    assert live.kept_events == 4
    with pytest.raises(cep.EventError, match="overflow"):
        live.push(pa.table([[5], ["C"], [1], [1]], schema=EVENTS))


def test_only_events_of_keys_that_have_moved_are_read(read: list[int]) -> None:
    table = events(4_000, 200, seed=1)
    for query in (PAIRS, HIGH_AND_LOW, "PATTERN SEQ(A a, B b+) WHERE [k]"):
        live = cep.stream(f"{query} WITHIN 4000", EVENTS)
        live.push(table.slice(0, 3_960))
        read.clear()
        live.push(table.slice(3_960))
        assert live.kept_events > 1_000
        assert 0 < sum(read) < live.kept_events / 3, query


@pytest.mark.parametrize(("query", "last"), [(PAIRS, "B"), ("PATTERN OR(SEQ(A a, B b), SEQ(B b, A c)) WHERE [k]", "AB")])
@pytest.mark.parametrize("saved", [False, True])
def test_only_an_event_that_may_end_a_match_has_its_key_read(read: list[int], query: str, last: str, saved: bool) -> None:
    live = cep.stream(f"{query} WITHIN 4000", EVENTS)
    live.push(pa.table([range(40), ["A", "B"] * 20, [number // 4 for number in range(40)], [5, 4] * 20], schema=EVENTS))
    for time, kind in enumerate("ABC", 50):
        live = cep.stream.load(live.save()) if saved else live
        read.clear()
        live.push(pa.table([[time], [kind], [3], [9]], schema=EVENTS))
        before = 4 + time - 50
        assert read == ([before + 1] if kind in last else []), kind


@pytest.mark.parametrize("query", [PAIRS, "PATTERN SEQ(A a, B b+) WHERE [k]"])
def test_events_that_were_kept_elsewhere_are_told_apart_by_their_keys_alone(read: list[int], query: str) -> None:
    text, table = f"{query} WITHIN 4000", events(4_000, 200, seed=3)
    live, state, found = plan_live(text, EVENTS, *read_keywords({}), Arrival()), first_state(EVENTS), []
    with patch.object(event_tags, "hash_keys", side_effect=AssertionError("keys are hashed")):
        for begin, end in ((0, 3_960), (3_960, 4_000)):
            kept = pa.concat_tables([state.events, table.slice(begin, end - begin)])
            clock = replace(state.clock, watermark=table["ts"][end - 1].as_py())
            held = hold_events(live, replace(state, clock=clock), kept, np.concatenate([state.numbers, np.arange(begin, end)]))
            read.clear()
            state, matches = certain_matches(live, held, Resources(1))
            found.append(matches)
    assert 0 < sum(read) < kept.num_rows / 2
    assert rows_of(found) == rows_of([cep.match(table, text, complete_until=table["ts"][-1])])


@pytest.mark.parametrize(("profile", "expected"), [(None, [2]), (cep.Profile(), [0, 2, 0])])
def test_only_the_events_that_may_begin_a_match_have_their_keys_read_when_windows_are_over(
    read: list[int], profile: cep.Profile | None, expected: list[int]
) -> None:  # fmt: skip
    live = cep.stream("PATTERN SEQ(A a, B b+) WHERE [k] WITHIN 10", EVENTS, profile=profile)
    live.push(pa.table([[1, 2, 3, 4], list("ABBB"), [1, 1, 2, 3], [1] * 4], schema=EVENTS))
    read.clear()
    # until 12 the windows of an A of key 1, and of three B, are over
    assert [live.advance(time).num_rows for time in (10, 11, 14)] == [0, 1, 0]
    assert read == expected


def test_only_situations_that_have_ended_lead_to_matches() -> None:
    tried: list[int] = []
    spread = join.SituationJoin._join_chunk

    def counting(self: join.SituationJoin, task: Any, situations: Any, *, counting: bool) -> Any:
        tried.append(len(self.derived.runs.stream) if self.recent is None else int(self.recent.sum()))
        return spread(self, task, situations, counting=counting)

    table = events(4_000, 3, seed=2)
    live = cep.stream(f"{HIGH_AND_LOW} WITHIN 4000", EVENTS)
    live.push(table.slice(0, 3_960))
    with patch.object(join.SituationJoin, "_join_chunk", counting):
        found = live.push(table.slice(3_960))
    assert 0 < found.num_rows <= tried[0] < 60


@pytest.mark.parametrize("shown", ["A overlaps B; A contains B; A before B", "A meets B; B starts A; A before B; A finishes B"])
@pytest.mark.parametrize("detect", ["final", "early"])
def test_recent_situations_of_several_names_make_a_match_once(shown: str, detect: str) -> None:
    text = f"DEFINE A AS x > 4, B AS x < 7 AND x > 1, C AS x % 2 = 0 PATTERN {shown} AND C overlaps B; C during B; C before B WITHIN 20"
    table = events(300, 1, seed=5)
    with patch.object(run, "_RECENT", 0):
        live = cep.stream(text, EVENTS, detect=detect)
        found = [*(live.push(table.slice(begin, 9)) for begin in range(0, 300, 9)), live.finish()]
    batch = cep.match(table, text, detect=detect)
    assert batch.num_rows > 2
    assert rows_of(found) == rows_of([batch])
