"""How matches are shown: their keys, by the events themselves, and whole events as short texts."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import gpu_cep as cep
from gpu_cep.display.event_texts import event_texts
from gpu_cep.display.match_view import MatchView, view_matches
from gpu_cep.keywords import read_keywords
from gpu_cep.queries.plans import as_query, make_plan

_DRAW = np.random.default_rng(16)
EVENTS = pa.table(
    {
        "ts": np.arange(120),
        "type": _DRAW.choice(list("ABCD"), 120),
        "k": _DRAW.choice(["x", "y", "z"], 120),
        "p": _DRAW.integers(0, 2, 120),
        "v": _DRAW.integers(0, 9, 120),
        "w": _DRAW.integers(0, 9, 120),
    }
)


def view_of(query: str, events: pa.Table = EVENTS, **keywords: Any) -> tuple[MatchView, pa.Table]:
    """How a query's result is shown, and the result with its keys."""
    options, settings = read_keywords(keywords)
    view = view_matches(make_plan(query, events.schema, options, settings), as_query(query), options)
    return view, view.put_keys_first(cep.match(events, view.asked, **keywords))


@pytest.mark.parametrize(
    ("query", "keys"),
    [
        ("PATTERN SEQ(A a, B b) WHERE [k] WITHIN 20", ["k"]),
        ("PATTERN SEQ(A a, B b) WHERE [k] WITHIN 9 EVENTS", ["k"]),
        ("PATTERN SEQ(A a?, B b+, C c) WHERE [k] AND [p] WITHIN 20", ["k", "p"]),
        ("PATTERN OR(SEQ(A a, B b), SEQ(C c, D d)) WHERE [k] WITHIN 8", ["k"]),
        ("PATTERN OR(SEQ(A a, B b), SEQ(C c, D d)) WHERE a.k = b.k WITHIN 4", []),
        ("PATTERN AND(A a, B b) WHERE a.k = b.k WITHIN 8", ["k"]),
        ("PATTERN SEQ(A a+) WHERE [k] WITHIN 20", ["k"]),
        ("PARTITION BY p PATTERN SEQ(A a, NOT(B n), C c) WHERE [k] AND n.k = a.k WITHIN 20", ["p", "k"]),
        ("PARTITION BY p PATTERN SEQ(A a, C c) WITHIN 9", ["p"]),
        ("PATTERN SEQ(A a, C c) WITHIN 9", []),
    ],
)
def test_keys_are_those_of_all_events_of_the_match(query: str, keys: list[str]) -> None:
    _, shown = view_of(query)
    plain = cep.match(EVENTS, query)
    assert plain.num_rows > 3
    assert shown.select([name for name in shown.column_names if name in plain.column_names]).equals(
        plain.select([name for name in shown.column_names if name in plain.column_names])
    )
    assert shown.column_names[: len(keys) + 1] == [*keys, "match_start"]
    for told, match in zip(shown.to_pylist(), plain.to_pylist(), strict=True):
        values = [value if isinstance(value, list) else [value] for value in match.values()]
        bound = [event for value in values for event in value if isinstance(event, dict)]
        assert all(event[key] == told[key] for event in bound for key in keys)


@pytest.mark.parametrize(
    ("returned", "names"),
    [
        ("b.v AS v", ["k", "match_start", "match_end", "v"]),
        ("b.v AS v, a.k AS who", ["who", "match_start", "match_end", "v"]),
        ("count(b) AS k", ["[k]", "match_start", "match_end", "k"]),
        ("a.k AS who, count(b) AS k", ["who", "match_start", "match_end", "k"]),
        ("first(b.k) AS f", ["k", "match_start", "match_end", "f"]),
        ("b, b.v AS a", ["k", "match_start", "match_end", "b", "a"]),
    ],
)
def test_keys_stand_beside_what_the_query_returns(returned: str, names: list[str]) -> None:
    query = f"PATTERN SEQ(A a, B b+) WHERE [k] WITHIN 20 RETURN {returned}"
    view, shown = view_of(query)
    plain = cep.match(EVENTS, query)
    assert shown.column_names == names
    assert set(shown.column(0).to_pylist()) <= {"x", "y", "z"}
    assert all(shown.column(name).equals(plain.column(name)) for name in plain.column_names)
    assert view.shorten(shown).column_names == names


def test_a_key_that_the_query_returns_of_some_matches_stands_first_for_all() -> None:
    _, shown = view_of("PATTERN OR(SEQ(A a, B b), SEQ(C c, D d)) WHERE [k] WITHIN 8 RETURN c.k AS who")
    assert shown.column_names == ["k", "match_start", "match_end", "who"]
    assert shown.column("who").null_count > 0 == shown.column("k").null_count


@pytest.mark.parametrize("output", ["events", "indices", "count"])
def test_other_outputs_are_those_of_the_query(output: str) -> None:
    query = "PATTERN SEQ(A a, B b) WHERE [k] WITHIN 20"
    _, shown = view_of(query, output=output)
    plain = cep.match(EVENTS, query, output=output)
    assert shown.select(plain.column_names).equals(plain)
    assert shown.num_columns == plain.num_columns
    assert (shown.column_names[0] == "k") == (output == "events")


FEW = pa.table({"ts": range(6), "type": list("ABXBDX"), "k": ["k"] * 6, "v": [2, 5, 1, 4, 3, 9], "w": [7] * 6})
RISE = "PATTERN SEQ(A a, B b+, D d) WHERE [k] AND b.v > a.v"


@pytest.mark.parametrize(
    ("query", "keywords", "texts"),
    [
        (RISE, {}, {"a": "0 v=2", "b": "2 events 1 … 3 v=5 … 4", "d": "4"}),
        (RISE, {"columns": "w"}, {"a": "1 event w=7", "b": "2 events w=7", "d": "1 event w=7"}),
        (f"{RISE} RETURN b AS bs, d.v AS v, b.v AS d", {}, {"bs": "2 events 1 … 3 v=5 … 4", "v": 3, "d": [5, 4]}),
        ("PATTERN SEQ(A a, C c?, D d) WHERE [k]", {}, {"a": "0", "c": None, "d": "4"}),
        ("DEFINE low AS v < 5, high AS v > 4 PATTERN high meets low", {}, {"high": "1 v=5", "low": "3 events 2 … 4 v=1 … 3"}),
    ],
)
def test_events_are_told_by_time_and_by_what_conditions_read(query: str, keywords: dict[str, Any], texts: dict[str, Any]) -> None:
    view, shown = view_of(query, FEW, **keywords)
    first = view.shorten(shown).to_pylist()[0]
    assert {name: first[name] for name in texts} == texts


MICROSECONDS = pa.timestamp("us")


def told(
    events: list[Any], starts: list[Any] | None = None, kind: pa.DataType = MICROSECONDS, attributes: tuple[str, ...] = ()
) -> list[str | None]:
    struct = pa.struct([("ts", kind), ("v", pa.float64())])
    values = pa.array(events, pa.list_(struct) if any(isinstance(each, list) for each in events) else struct)
    texts: list[str | None] = event_texts(values, "ts", attributes, None if starts is None else pa.array(starts, kind)).to_pylist()
    return texts


def at(day: int, second: float) -> dict[str, Any]:
    return {"ts": dt.datetime(2026, 3, day) + dt.timedelta(seconds=second), "v": second}


def test_a_day_is_told_once() -> None:
    start = dt.datetime(2026, 3, 1)
    events = [[at(1, 1)], [at(1, 1), at(1, 2)], [at(1, 1), at(2, 1)], [at(2, 1), at(2, 2)], [at(2, 1), at(3, 1)], [], None]
    assert told(events, [start] * 7) == [
        "00:00:01",
        "2 events 00:00:01 … 00:00:02",
        "2 events 00:00:01 … 2026-03-02 00:00:01",
        "2 events 2026-03-02 00:00:01 … 00:00:02",
        "2 events 2026-03-02 00:00:01 … 2026-03-03 00:00:01",
        None,
        None,
    ]
    assert told([at(1, 1), None]) == ["2026-03-01 00:00:01", None]


def test_fractions_are_as_long_as_some_event_needs() -> None:
    assert told([at(1, 1), at(1, 2)]) == ["2026-03-01 00:00:01", "2026-03-01 00:00:02"]
    assert told([at(1, 1), at(1, 2.25)]) == ["2026-03-01 00:00:01.000", "2026-03-01 00:00:02.250"]
    zoned = told([at(1, 1)], [dt.datetime(2026, 3, 1)], pa.timestamp("ns", "Asia/Tokyo"))
    assert zoned == ["09:00:01+0900"]


def test_attributes_that_do_not_change_are_told_once() -> None:
    events = [[at(1, 1), at(1, 1)], [at(1, 1), at(1, 2)], [{"ts": dt.datetime(2026, 3, 1), "v": None}]]
    assert told(events, attributes=("v", "missing")) == [
        "2 events 2026-03-01 00:00:01 v=1.0",
        "2 events 2026-03-01 00:00:01 … 00:00:02 v=1.0 … 2.0",
        "2026-03-01 00:00:00 v=NULL",
    ]
