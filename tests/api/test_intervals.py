"""Interval patterns as a caller meets them: Listing 1, faults at the call, bounds, and results that compose."""

from __future__ import annotations

import datetime
from typing import Any

import pyarrow as pa
import pytest

import gpu_cep as cep
from gpu_cep.errors import CepError, EventError, MatchLimitExceeded, PatternError, UnsupportedError
from tests.oracle.lanes import lanes

EVENTS = lanes("##.#.", "..##.", v=[1, 2, 3, 4, 5], k=[1, 1, 1, 2, 2])
DEFINE = "DEFINE A AS a, B AS b"
MEETS = f"{DEFINE} PATTERN A meets B"
PAIR = "PATTERN SEQ(x, y) WHERE x.v < y.v"

LISTING_1 = """
FROM CarSensors CS PARTITION BY CS.car_id
DEFINE A AS CS.accel > 8 at least 5s, B AS CS.speed > 70 between 4s AND 30s, C AS CS.accel < -9 at least 3s
PATTERN A meets B;A overlaps B;A starts B;A during B AND C during B;B finishes C;B overlaps C;B meets C AND A before C
WITHIN 5 MINUTES
RETURN first(B.car_id) AS id, avg(B.speed) AS avg_speed, duration(A) AS hard, end(C) AS stopped
"""


def cars() -> pa.Table:
    """Three cars, a row each second: the second accelerates, goes too fast and brakes hard, the third does not brake."""
    accelerations = [9] * 6 + [0] * 3 + [-10] * 5 + [0] * 2
    fast = [60] * 4 + [80] * 4 + [90] * 4 + [60] * 4
    begin = datetime.datetime(2024, 1, 1, 12)
    rows = [
        {"ts": begin + datetime.timedelta(seconds=second), "car_id": car, "accel": accel if car < 3 else min(accel, 0), "speed": speed}
        for second, accel in enumerate(accelerations)
        for car, speed in ((1, 60), (2, fast[second]), (3, fast[second]))
    ]
    return pa.Table.from_pylist(rows)


def at(second: int) -> datetime.datetime:
    return datetime.datetime(2024, 1, 1, 12, 0, second)


def test_listing_1():
    """A lasts from 0 to 6 and overlaps B, from 4 to 12, which overlaps C, from 9 to 14."""
    (match,) = cep.match(cars(), LISTING_1).to_pylist()
    assert match == {
        "car_id": 2, "match_start": at(0), "match_end": at(14), "detected_at": at(14),
        "id": 2, "avg_speed": 85.0, "hard": datetime.timedelta(seconds=6), "stopped": at(14),
    }  # fmt: skip


def test_listing_1_detected_early():
    """Braking has lasted three seconds at 12, when C's relation to B is decided, too."""
    (match,) = cep.match(cars(), LISTING_1, detect="early").to_pylist()
    assert (match["detected_at"], match["match_end"], match["stopped"], match["avg_speed"]) == (at(12), None, None, 85.0)


@pytest.mark.parametrize(
    ("output", "rows"), [("events", 19), ("indices", 1), ("count", 1)]
)  # fmt: skip
def test_listing_1_in_other_forms(output, rows):
    found = cep.match(cars(), LISTING_1, output=output)
    assert found.num_rows == rows
    assert output != "count" or found.to_pylist() == [{"car_id": 2, "count": 1}]


def test_whole_situations_are_lists_of_events():
    (match,) = cep.match(EVENTS, MEETS, columns=["v"]).to_pylist()
    assert match == {"match_start": 0, "match_end": 4, "detected_at": 4, "A": [{"v": 1}, {"v": 2}], "B": [{"v": 3}, {"v": 4}]}
    (returned,) = cep.match(EVENTS, f"{MEETS} RETURN B, A.v AS vs", columns=["v", "k"]).to_pylist()
    assert (returned["B"], returned["vs"]) == ([{"v": 3, "k": 1}, {"v": 4, "k": 2}], [1, 2])


def test_finishes_is_read_as_the_paper_prints_it_or_as_of_1983():
    events = lanes("####.", "..##.")
    counts = {allen: cep.match(events, f"{DEFINE} PATTERN A finishes B", allen=allen).num_rows for allen in ("paper", "1983")}
    assert counts == {"paper": 1, "1983": 0}


def refused(error: type[CepError], text: str, events: Any = EVENTS, **options: Any) -> list[str]:
    """The faults that a query is refused with."""
    with pytest.raises(error) as caught:
        cep.match(events, text, **options)
    assert type(caught.value) is error
    return [diagnostic.message for diagnostic in caught.value.diagnostics]


@pytest.mark.parametrize(
    ("pattern", "clashing"),
    [
        ("A before B AND B before C AND C before A", "A before B AND B before C AND C before A"),
        (
            "A before B; A meets B AND B meets C AND A equals C; A during C",
            "A before B; A meets B AND B meets C AND A equals C; A during C",
        ),
        ("A meets B AND A during C AND B after C", "A meets B AND A during C AND B after C"),
        (
            "C overlaps B AND A starts B AND A finishes B; A equals B",
            "no relation satisfies all of A starts B AND A finishes B; A equals B",
        ),
    ],
)
def test_constraints_that_clash_are_quoted(pattern, clashing):
    (message,) = refused(PatternError, f"DEFINE A AS a, B AS b, C AS NOT a PATTERN {pattern}")
    assert message.endswith(clashing)


def test_only_those_that_clash_are_quoted():
    names = "DEFINE A AS a, B AS b, C AS a AND b, D AS v > 1"
    (message,) = refused(PatternError, f"{names} PATTERN A before D AND A before B AND B before C AND C before A")
    assert message == "no situations satisfy A before B AND B before C AND C before A"


def test_constraints_that_can_hold_are_no_fault():
    assert cep.match(EVENTS, "DEFINE A AS a, B AS b, C AS NOT a PATTERN A before B AND B before C AND A before C").num_rows == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"after_match": "skip_past_last"}, "after_match='skip_past_last' is not supported for situations; supported: all"),
        (
            {"output": "compressed"},
            "output='compressed' is not supported for situations; supported: matches, events, indices, count",
        ),
        (
            {"algorithm": "nfab"},
            "algorithm='nfab' is for event patterns; supported for situations: auto, range_join, end_join, nested_loop, brute_force",
        ),
    ],
)
def test_settings_that_are_not_supported(options, message):
    assert refused(UnsupportedError, MEETS, **options) == [message]


def test_all_unsupported_settings_are_told_at_once():
    assert len(refused(UnsupportedError, MEETS, after_match="skip_to_next", output="compressed")) == 2


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (MEETS, {"ties": "position"}, "ties='position' is for event patterns: situations begin and end in the order of their stream"),
        (
            MEETS,
            {"strategy": "strict_contiguity"},
            "strategy='strict_contiguity' is for event patterns: a situation is a longest run of events",
        ),
        (MEETS, {"detect": "late"}, "unknown value of detect 'late'"),
        (MEETS, {"allen": "1984"}, "unknown value of allen '1984'"),
        (PAIR, {"detect": "early"}, "detect='early' is for interval patterns (DEFINE … PATTERN A before B)"),
        (PAIR, {"allen": "1983"}, "allen='1983' is for interval patterns (DEFINE … PATTERN A before B)"),
    ],
)
def test_keywords_of_the_other_kind_of_pattern(text, options, message):
    assert refused(PatternError, text, **options) == [message]


@pytest.mark.parametrize("algorithm", ["range_join", "end_join", "nested_loop"])
def test_algorithms_for_situations_run_no_event_pattern(algorithm):
    (message,) = refused(UnsupportedError, PAIR, algorithm=algorithm)
    assert message.startswith(f"algorithm={algorithm!r} joins situations; supported for this query: auto, ")


@pytest.mark.parametrize(
    ("text", "options", "column"),
    [
        (f"{MEETS} RETURN first(A.v) AS x, last(A.v) AS x", {}, "x"),
        (f"{MEETS} RETURN first(A.v) AS match_start", {}, "match_start"),
        (f"{MEETS} RETURN first(A.v) AS detected_at", {}, "detected_at"),
        (f"{MEETS} RETURN first(A.v) AS k", {"partition_by": "k"}, "k"),
        ("DEFINE match_end AS a, B AS b PATTERN match_end before B", {}, "match_end"),
        ("DEFINE detected_at AS a, B AS b PATTERN detected_at before B", {}, "detected_at"),
        ("DEFINE k AS a, B AS b PATTERN k before B", {"partition_by": "k"}, "k"),
    ],
)
def test_two_columns_of_one_name(text, options, column):
    (message,) = refused(PatternError, text, **options)
    assert f"{column!r}" in message
    assert "two columns" in message


def test_an_input_column_may_be_called_as_one_of_the_result():
    events = EVENTS.append_column("detected_at", pa.array(range(5))).append_column("match_id", pa.array(range(5)))
    assert cep.match(events, MEETS).num_rows == 1
    assert refused(PatternError, MEETS, events, output="events") == ["the result would have two columns 'match_id'"]
    assert cep.match(events, MEETS, output="events", columns=["v"]).column_names == ["match_id", "variable", "event_index", "v"]


# 100 situations of each name, of which each A is before all B behind it, or meets it.
MANY = pa.table({"ts": range(200), "a": [True, False] * 100, "b": [False, True] * 100, "k": ["x'y"] * 200})
BEFORE = f"{DEFINE} PATTERN A before B; A meets B"


@pytest.mark.parametrize("output", ["matches", "events", "indices", "count"])
@pytest.mark.parametrize("algorithm", ["auto", "end_join", "nested_loop"])
def test_max_matches_names_the_window(output, algorithm):
    with pytest.raises(MatchLimitExceeded, match=r"max_matches=1,000 .*starts at ts=\d+ \(input row \d+\) of stream k=\"x'y\""):
        cep.match(MANY, BEFORE, output=output, algorithm=algorithm, max_matches=1_000, partition_by="k")


def test_a_limit_that_is_just_reached_is_kept():
    (count,) = cep.match(MANY, BEFORE, output="count")["count"].to_pylist()
    assert cep.match(MANY, BEFORE, max_matches=count).num_rows == count
    for output in ("matches", "count"):
        with pytest.raises(MatchLimitExceeded):
            cep.match(MANY, BEFORE, output=output, max_matches=count - 1)


@pytest.mark.parametrize("output", ["matches", "count"])
def test_max_steps_names_the_window(output):
    with pytest.raises(MatchLimitExceeded, match=r"max_steps=50 .*starts at ts=\d+ \(input row \d+\)"):
        cep.match(MANY, BEFORE, output=output, max_steps=50)


@pytest.mark.parametrize(("values", "what"), [([0, None, 2, 3, 4], "1 NULL"), ([0.0, 1.0, float("nan"), float("nan"), 4.0], "2 NaNs")])
def test_timestamps_that_are_missing(values, what):
    with pytest.raises(EventError, match=f"timestamp column 'ts' holds {what}"):
        cep.match(EVENTS.set_column(0, "ts", pa.array(values)), MEETS)


def test_a_result_is_a_table_of_events():
    """The phases of each car as events, and what follows what among them."""
    phases = "PARTITION BY car_id DEFINE A AS accel > 8, B AS speed > 70 PATTERN A overlaps B; A before B RETURN duration(B) AS lasting"
    found = cep.match(cars(), phases)
    assert found["car_id"].to_pylist() == [2]
    again = cep.match(found, "DEFINE X AS lasting > 5 s, Y AS car_id = 1 PATTERN X before Y", timestamp="detected_at", detect="early")
    assert again.num_rows == 0
    pairs = cep.match(pa.concat_tables([found, found]), "PATTERN SEQ(x, y)", timestamp="match_start", ties="position")
    assert pairs["match_end"].to_pylist() == [at(0)]


def test_situations_of_matches_of_event_patterns():
    rises = cep.match(EVENTS, "PATTERN SEQ(x, y) WHERE strict_contiguity { x.v < y.v } RETURN x.v AS v")
    text = "DEFINE Low AS v < 3, High AS v >= 3 PATTERN Low meets High RETURN count(Low) AS low, High.v AS high"
    (match,) = cep.match(rises, text, timestamp="match_end", detect="early").to_pylist()
    assert (match["low"], match["high"], match["detected_at"], match["match_end"]) == (2, [3], 3, None)


def test_explain_says_what_a_run_did():
    explained = str(cep.explain(MANY, BEFORE, run=True))
    (count,) = cep.match(MANY, BEFORE, output="count")["count"].to_pylist()
    assert f"matches {count:,}" in explained
    assert "A before B; A meets B (expected of 44.99% of all pairs, table 3)" in explained
    assert str(cep.explain(BEFORE)).startswith("DEFINE A AS a, B AS b")
    with pytest.raises(UnsupportedError, match="no automaton to draw"):
        cep.explain(MANY, BEFORE).mermaid()


GAPS = lanes("##.#.", "..##.", ts=[0, 1, 5, 6, 20])
RELATED = f"{DEFINE} PATTERN A before B; A meets B RETURN end(A) AS ended, duration(B) AS lasted"


@pytest.mark.parametrize(
    ("gap", "found"),
    [
        (None, [(20, 5, 15)]),
        (14, [(20, 5, 15)]),
        (4, [(10, 5, 5)]),
        ("2", [(8, 3, 3)]),
        (2.9, [(8, 3, 3)]),
        (0, []),
    ],
)
def test_a_gap_ends_a_situation(gap, found):
    """Its end, and with it the time of detection, may be no event's."""
    rows = cep.match(GAPS, RELATED, gap=gap).to_pylist()
    assert [(row["match_end"], row["ended"], row["lasted"]) for row in rows] == found
    assert all(row["detected_at"] == row["match_end"] for row in rows)


@pytest.mark.parametrize(
    ("query", "gap", "found"),
    [
        # H ends by the gap at 12, and W with it: seen at 500
        ("W AS wet PATTERN H finishes W", 10, [(12, 500, 12)]),
        # the same two starts decide this one, while both go on
        ("W AS wet PATTERN H overlaps W; H finishes W; H contains W", 10, [(None, 1, None)]),
        # what starts at 500 decides it; the window is judged there
        ("C AS cold PATTERN H before C", 10, [(None, 500, 12)]),
        ("C AS cold PATTERN H before C WITHIN 499", 10, []),
        ("C AS cold PATTERN H before C WITHIN 500", 10, [(None, 500, 12)]),
        ("C AS cold PATTERN H before C", None, []),
    ],
)
@pytest.mark.parametrize("algorithm", ["auto", "nested_loop", "brute_force"])
def test_what_a_gap_ends_is_detected_early_at_the_next_event(query, gap, found, algorithm):
    silent = pa.table({
        "ts": [0, 1, 2, 500, 501], "hot": [True, True, True, False, False], "wet": [False, True, True, False, False],
        "cold": [False, False, False, True, True],
    })  # fmt: skip
    text = f"DEFINE H AS hot, {query} RETURN end(H) AS ended"
    rows = cep.match(silent, text, gap=gap, detect="early", algorithm=algorithm).to_pylist()
    assert [(row["match_end"], row["detected_at"], row["ended"]) for row in rows] == found


@pytest.mark.parametrize("kind", [pa.date32(), pa.date64(), pa.timestamp("s"), pa.timestamp("us", "Europe/Zurich"), pa.timestamp("ns")])
@pytest.mark.parametrize("algorithm", ["auto", "brute_force"])
def test_what_a_gap_ends_has_the_time_of_its_column(kind, algorithm):
    days = pa.array([datetime.datetime(2024, 1, day) for day in (1, 2, 6, 7, 21)], pa.timestamp("ms"))
    table = GAPS.set_column(0, "ts", days.cast(pa.timestamp("ms", kind.tz)) if pa.types.is_timestamp(kind) else days.cast(kind))
    events = table.cast(table.schema.set(0, pa.field("ts", kind)))
    found = cep.match(events, RELATED, gap="48 hours", algorithm=algorithm)
    assert found.schema.field("detected_at").type == found.schema.field("ended").type == kind
    ninth = [(datetime.datetime(2024, 1, 9) - datetime.datetime(1970, 1, 1)).days * 86_400]
    seconds = found["detected_at"].cast(pa.timestamp("s", getattr(kind, "tz", None))).cast(pa.int64())
    assert seconds.to_pylist() == ninth
    assert found["lasted"].cast(pa.duration("s")).to_pylist() == [datetime.timedelta(days=3)]


@pytest.mark.parametrize(
    ("error", "gap", "options", "message"),
    [
        (PatternError, "soon", {}, "gap='soon' is no length of time"),
        (PatternError, True, {}, "gap=True is no length of time"),
        (PatternError, float("nan"), {}, "gap=nan is no length of time"),
        (PatternError, -1, {}, "the gap -1 is negative"),
        (PatternError, "3 hours", {}, "ts is integer: 3 hours needs the length of its ticks"),
        (UnsupportedError, 0.4, {"detect": "early"}, "gap=0.4, no tick of the timestamp, with detect='early' is not supported"),
    ],
)
def test_gaps_that_are_refused(error, gap, options, message):
    assert refused(error, MEETS, gap=gap, **options) == [message]
    assert refused(PatternError, PAIR, gap=3) == ["gap=3 is for interval patterns (DEFINE … PATTERN A before B)"]


def test_a_text_in_double_quotes_is_told_from_an_attribute():
    with pytest.raises(PatternError, match=r"unknown attribute 'u1'(.|\n)*hint: there are ts, .*; a text stands in single quotes: 'u1'"):
        cep.match(GAPS, 'DEFINE A AS hot = "u1", B AS hot PATTERN A before B')


@pytest.mark.parametrize("algorithm", ["auto", "brute_force"])
@pytest.mark.parametrize("last", [float("-inf"), 1e17])
def test_a_gap_that_floats_are_too_coarse_for_is_told_where_a_match_may_not_wait_for_it(last, algorithm):
    """Without events after the last one a situation is open; with them it would have lasted no time."""
    options = {"gap": 0.5, "detect": "early", "algorithm": algorithm}
    columns = {"ts": [last, 1e18], "hot": [True, False], "wet": [True, False]}
    query = "DEFINE H AS hot, W AS wet PATTERN H starts W; H equals W; H started-by W"
    assert cep.match(pa.table(columns)[:1], query, **options).num_rows == 1
    with pytest.raises(EventError, match="adds nothing"):
        cep.match(pa.table(columns), query, **options)
    assert cep.match(pa.table(columns), query, **{**options, "detect": "final"}).num_rows == 0
    # what is too short is no situation, wherever it ends
    too_short = "DEFINE H AS hot AT LEAST 2, W AS wet AT LEAST 1 PATTERN H starts W; H equals W; H started-by W"
    assert cep.match(pa.table(columns), too_short, **options).num_rows == 0


@pytest.mark.parametrize("algorithm", ["auto", "brute_force"])
def test_what_is_open_has_no_end_that_a_long_gap_could_put_beyond_the_type(algorithm):
    events = pa.table({"ts": pa.array([1, 2, 3], pa.int8()), "hot": [True] * 3, "wet": [False, True, True]})
    query = "DEFINE H AS hot, W AS wet PATTERN H overlaps W; H finishes W; H contains W RETURN end(H) AS ended"
    (row,) = cep.match(events, query, gap=2**62, detect="early", algorithm=algorithm).to_pylist()
    assert row == {"match_start": 1, "match_end": None, "detected_at": 2, "ended": None}


def test_lack_of_memory_while_situations_are_derived_is_told(monkeypatch):
    def exhausted(*_):
        raise MemoryError

    monkeypatch.setattr("gpu_cep.engine.intervals.run.derive", exhausted)
    events = pa.table({"ts": [1, 2, 3], "a": [True, True, False], "b": [False, True, True]})
    with pytest.raises(cep.MatchLimitExceeded, match="out of memory"):
        cep.match(events, "DEFINE A AS a, B AS b PATTERN A overlaps B")


@pytest.mark.parametrize("algorithm", ["auto", "brute_force"])
@pytest.mark.parametrize(
    "condition", ["regexp_like(s, 'a')", "NOT regexp_like(s, 'b')", "coalesce(f, FALSE)", "nullif(f, FALSE)", "early(ts)"]
)
def test_a_duration_stands_behind_any_truth_value(condition: str, algorithm: str) -> None:
    flags = [True, True, False, False, False, True, True, True, None, None, True]
    events = pa.table({"ts": range(11), "s": list("aabbbaaabba"), "f": flags})
    query = f"DEFINE A AS {condition} BETWEEN 3 AND 5, B AS s = 'b' PATTERN A meets B RETURN start(A) AS a, end(A) AS b"
    found = cep.match(events, query, functions={"early": lambda ts: ts % 5 < 2 or ts == 7}, algorithm=algorithm)
    assert found.select(["a", "b"]).to_pylist() == [{"a": 5, "b": 8}]
