"""The oracle of interval patterns on streams small enough to check by hand."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pytest

from gpu_cep.errors import PatternError, UnsupportedError
from gpu_cep.lang.ast_intervals import IntervalQuery
from gpu_cep.lang.parser import parse
from gpu_cep.oracle import intervals
from gpu_cep.oracle.options import IntervalOptions
from tests.oracle.lanes import detected, found, lanes

# Table 1, as printed: A, B, and td of Table 2.
PICTURES = {
    "before": ("##.....", "....##.", 4),
    "meets": ("##...", "..##.", 2),
    "starts": ("##...", "####.", 2),
    "equals": ("##.", "##.", 2),
    "started-by": ("####.", "##...", 2),
    "overlaps": ("###..", ".###.", 3),
    "finishes": ("####.", "..##.", 4),
    "contains": ("####.", ".##..", 3),
}
INVERSES = {"before": "after", "meets": "met-by", "overlaps": "overlapped-by", "finishes": "finished-by", "contains": "during"}
RELATIONS = (*PICTURES, *INVERSES.values())
ALL_PICTURES = {**PICTURES, **{INVERSES[name]: (b, a, at) for name, (a, b, at) in PICTURES.items() if name in INVERSES}}


@pytest.mark.parametrize("relation", RELATIONS)
def test_table_1(relation):
    """Of the thirteen relations, two situations satisfy one."""
    a, b, _ = ALL_PICTURES[relation]
    assert [name for name in RELATIONS if found(f"A {name} B", lanes(a, b))] == [relation]


@pytest.mark.parametrize("relation", RELATIONS)
def test_table_2(relation):
    a, b, at = ALL_PICTURES[relation]
    assert detected(f"A {relation} B", lanes(a, b)) == [at]
    assert detected(f"B {relation} A", lanes(b, a)) == [at]


GROUPS = [
    (("before", "meets"), (4, 2)),
    (("after", "met-by"), (4, 2)),
    (("starts", "equals", "started-by"), (0, 0, 0)),
    (("overlaps", "finishes", "contains"), (1, 2, 1)),
    (("overlapped-by", "finished-by", "during"), (1, 2, 1)),
]


@pytest.mark.parametrize(("group", "starts"), GROUPS)
@pytest.mark.parametrize("further", [(), ("before",), ("during", "met-by")])
def test_prefix_groups_of_table_2(group, starts, further):
    """A constraint with all relations of a group is decided as soon as both have started."""
    pattern = "; ".join(f"A {name} B" for name in (*group, *further))
    assert tuple(detected(pattern, lanes(*ALL_PICTURES[name][:2]))[0] for name in group) == starts


@pytest.mark.parametrize("group", [group for group, _ in GROUPS])
def test_a_prefix_group_decides_none_but_its_own_relations(group):
    pattern = "; ".join(f"A {name} B" for name in group)
    assert {name for name in RELATIONS if detected(pattern, lanes(*ALL_PICTURES[name][:2]))} == set(group)


@pytest.mark.parametrize("group", [group for group, _ in GROUPS if len(group) == 3])
def test_a_part_of_a_prefix_group_decides_nothing(group):
    for missing in group:
        present = [name for name in group if name != missing]
        pattern = "; ".join(f"A {name} B" for name in present)
        assert [detected(pattern, lanes(*ALL_PICTURES[name][:2])) for name in present] == [[ALL_PICTURES[name][2]] for name in present]
        assert detected(pattern, lanes(*ALL_PICTURES[missing][:2])) == []


def test_a_prefix_group_is_gathered_from_one_constraint_in_any_direction():
    pictures = lanes("#####.", "..###.")
    assert detected("A overlaps B; B finished-by A; B during A", pictures) == [2]
    assert detected("A overlaps B; A finishes B; A contains B AND A finishes B", pictures) == [5]
    assert detected("A overlaps B; A finishes B AND A finishes B; A contains B", pictures) == [5]


def test_finishes_of_1983():
    first, second = lanes("####.", "..##."), lanes("..##.", "####.")
    assert [len(found("A finishes B", events)) for events in (first, second)] == [1, 0]
    assert [len(found("A finishes B", events, allen="1983")) for events in (first, second)] == [0, 1]
    assert [len(found("A finished-by B", events, allen="1983")) for events in (first, second)] == [1, 0]
    group = "A overlaps B; A finished-by B; A contains B"
    assert (detected(group, first, allen="1983"), detected(group, first)) == ([2], [])


FIGURE_4 = "A before B AND A before C AND A before D AND D during C; C finishes D; C meets D"


@pytest.mark.parametrize(
    ("b", "c", "d", "at"),
    [
        ("........##.", "...####....", "....##.....", 8),  # B.ts: D ended during C long ago
        ("....######.", "...##......", ".....####..", 5),  # D.ts: C meets D; B and D are open
        ("....######.", "...#####...", "....##.....", 6),  # D.te: D during C; B and C are open
        ("...##......", "...###.....", "....##.....", 6),  # D.te: C ends with D
    ],
)
def test_figure_4(b, c, d, at):
    define = "A AS a, B AS b, C AS c, D AS d"
    assert detected(FIGURE_4, lanes("##.........", b, c, d), define) == [at]
    assert [match.detected_at for match in found(FIGURE_4, lanes("##.........", b, c, d), define)] == [
        max(lane.rindex("#") + 1 for lane in (b, c, d))
    ]


LISTING_1 = """
FROM CarSensors CS PARTITION BY CS.car_id
DEFINE A AS CS.accel > 8 at least 5s, B AS CS.speed > 70 between 4s AND 30s, C AS CS.accel < -9 at least 3s
PATTERN A meets B;A overlaps B;A starts B;A during B AND C during B;B finishes C;B overlaps C;B meets C AND A before C
WITHIN 5 MINUTES
RETURN first(B.car_id) AS id, avg(B.speed) AS avg_speed
"""


def _car(car, accelerations, speeds):
    return [{"ts": ts, "car_id": car, "accel": a, "speed": s} for ts, (a, s) in enumerate(zip(accelerations, speeds, strict=True))]


def _listing_1(detect):
    query = parse(LISTING_1)
    assert isinstance(query, IntervalQuery)
    accelerations = [9] * 6 + [0] * 3 + [-10] * 5 + [0] * 2
    fast = [60] * 4 + [80] * 4 + [90] * 4 + [60] * 4  # A = [0, 6) overlaps B = [4, 12), which overlaps C = [9, 14)
    slow = [60] * 16
    rows = [*_car(1, accelerations, slow), *_car(2, accelerations, fast)]
    return intervals.matches(query, pa.Table.from_pylist(rows), IntervalOptions(detect=detect, time_unit="s"))


def test_listing_1():
    (match,) = _listing_1("final")
    assert match.keys == (2,)
    assert match.rows == {"A": tuple(range(16, 22)), "B": tuple(range(20, 28)), "C": tuple(range(25, 30))}
    assert (match.match_start, match.match_end, match.detected_at) == (0, 14, 14)
    assert match.returned == (2, 85.0)


def test_listing_1_early():
    """B counts from its end on, C from its third second on: both at 12."""
    (match,) = _listing_1("early")
    assert match.rows == {"A": tuple(range(16, 22)), "B": tuple(range(20, 28)), "C": tuple(range(25, 29))}
    assert (match.match_start, match.match_end, match.detected_at) == (0, None, 12)
    assert match.returned == (2, 85.0)


# Durations ----------------------------------------------------------------------------

DURING = lanes("..##......", "#########.")


@pytest.mark.parametrize(
    ("duration", "early", "final"),
    [
        ("", [4], [9]),
        ("AT LEAST 3", [4], [9]),
        ("AT LEAST 6", [6], [9]),
        ("AT LEAST 9", [9], [9]),
        ("AT LEAST 10", [], []),
        ("AT MOST 9", [9], [9]),
        ("AT MOST 8", [], []),
        ("BETWEEN 1 AND 20", [9], [9]),
    ],
)
def test_durations(duration, early, final):
    """The paper's example: A during B is not detected at A.te, 4, where B did not last long enough."""
    define = f"A AS a, B AS b = TRUE {duration}"
    assert detected("A during B", DURING, define) == early
    assert [match.detected_at for match in found("A during B", DURING, define)] == final


def test_an_open_situation_is_available_at_the_first_event_late_enough():
    events = lanes("..##....", "########", ts=[0, 1, 2, 3, 4, 5, 9, 10])
    (match,) = found("A during B RETURN end(B), count(B)", events, "A AS a, B AS b AT LEAST 6", detect="early")
    assert (match.detected_at, match.returned) == (9, (None, 7))


def test_a_situation_that_ends_at_the_first_event_late_enough_has_an_end():
    events = lanes("..##...", "######.", ts=[0, 1, 2, 3, 4, 5, 9])
    (match,) = found("A during B RETURN end(B), count(B)", events, "A AS a, B AS b AT LEAST 6", detect="early")
    assert (match.detected_at, match.returned) == (9, (9, 6))


def test_a_prefix_group_waits_for_both():
    group = "A overlaps B; A finishes B; A contains B"
    assert detected(group, lanes("########.", ".####....")) == [1]
    assert detected(group, lanes("########.", ".####...."), "A AS a, B AS b AT LEAST 3") == [4]
    assert detected(group, lanes("########.", ".####...."), "A AS a AT LEAST 7, B AS b") == [7]
    assert detected(group, lanes("########.", ".####...."), "A AS a, B AS b AT MOST 4") == [5]


def test_before_waits_for_the_second_to_last():
    assert detected("A before B", lanes("##.......", "...#####."), "A AS a AT LEAST 2, B AS b AT LEAST 3") == [6]
    assert detected("A before B", lanes("##.......", "...#####."), "A AS a AT LEAST 3, B AS b") == []


def test_durations_have_units():
    seconds = [datetime.datetime(2020, 1, 1, 0, 0, second) for second in range(5)]
    events = lanes("###..", "....#", ts=seconds)
    assert len(found("A before B", events, "A AS a AT LEAST 3 s, B AS b", detect="early")) == 1
    assert found("A before B", events, "A AS a AT LEAST 3.1 s, B AS b", detect="early") == []


# Streams --------------------------------------------------------------------------------


def test_runs_are_longest_and_names_are_combined():
    found_rows = [match.rows for match in found("A before B", lanes("##.#....", "....#.#."))]
    assert found_rows == [{"A": (0, 1), "B": (4,)}, {"A": (0, 1), "B": (6,)}, {"A": (3,), "B": (6,)}]


def test_null_is_not_satisfied():
    assert [match.rows["A"] for match in found("A before B", lanes("#?#....", "?....#."))] == [(0,), (2,)]


def test_a_run_without_extent_is_no_situation():
    events = lanes("#.....", "..#...", "....#.", ts=[0, 0, 1, 2, 3, 4])
    assert found("A before B", events) == detected("A before B", events) == []
    assert found("B before C", events, "A AS a, B AS b, C AS c") == detected("B before C", events, "A AS a, B AS b, C AS c") == []
    assert len(found("B before C", events, "B AS b, C AS c")) == 1


def test_a_run_may_end_at_the_time_of_its_last_event():
    (match,) = found("A before B RETURN start(A), end(A), duration(A)", lanes("##....", "...#..", ts=[0, 1, 1, 2, 3, 4]))
    assert (match.rows["A"], match.returned) == ((0, 1), (0, 1, 1))


def test_events_of_one_time_are_seen_together():
    """A ends with the first event of 1, B with the second one: they end together."""
    events = lanes("#...", "##..", ts=[0, 1, 1, 2])
    assert detected("A starts B", events) == []
    assert detected("A equals B", events) == [1]


def test_a_situation_that_starts_among_events_of_one_time_is_open_after_them():
    events = lanes("##....", "....#.", ts=[0, 1, 1, 2, 2, 3])
    assert detected("A before B", events) == [2]
    assert detected("A meets B", lanes("#...", "..##", ts=[0, 1, 1, 2])) == [1]


def test_order_by_breaks_ties():
    events = lanes("#.#.", "...#", ts=[0, 1, 1, 2], rank=[0, 2, 1, 0])
    assert [match.rows for match in found("A before B", events, order_by="rank", detect="early")] == [{"A": (0, 2), "B": (3,)}]
    assert len(found("A before B", events, detect="early")) == 1


def test_open_at_the_end():
    events = lanes("##...", "...##")
    assert found("A before B", events) == []
    (match,) = found("A before B RETURN end(A), end(B), duration(B), count(B)", events, detect="early")
    assert (match.match_start, match.match_end, match.detected_at, match.returned) == (0, None, 3, (2, None, None, 1))
    assert match.rows == {"A": (0, 1), "B": (3,)}


def test_one_event_and_none():
    pattern = "A equals B; A starts B; A started-by B"
    assert detected(pattern, lanes("#", "#")) == [0]
    assert detected("A equals B", lanes("#", "#")) == found(pattern, lanes("#", "#")) == []
    assert detected(pattern, lanes("#", "#").slice(1)) == []


def test_a_name_in_no_constraint_takes_one_situation():
    events = lanes("##......", "..##....", ".#.#..#.")
    assert [match.rows["C"] for match in found("A meets B", events, "A AS a, B AS b, C AS c")] == [(1,), (3,), (6,)]
    assert detected("A meets B", events, "A AS a, B AS b, C AS c") == [2, 3, 6]
    assert detected("A meets B", events, "A AS a, B AS b, C AS c AT MOST 1") == [2, 4, 7]


def test_streams_are_independent_and_sorted():
    events = pa.table({"ts": [3, 2, 1, 0] * 2, "k": [1, 2] * 4, "a": [False, False, False, True] * 2, "b": [False, True, False, False] * 2})
    assert [(match.keys, match.rows) for match in found("A before B", events, detect="early")] == [((), {"A": (3, 7), "B": (1, 5)})]
    assert found("A before B", events, detect="early", partition_by="k") == []


# Windows --------------------------------------------------------------------------------


@pytest.mark.parametrize(("window", "early", "final"), [(3, 0, 0), (4, 1, 0), (5, 1, 0), (6, 1, 1)])
def test_windows(window, early, final):
    """To the last end finally, to the detection early."""
    events = lanes("##.....", "....##.")
    assert len(detected(f"A before B WITHIN {window}", events)) == early
    assert len(found(f"A before B WITHIN {window}", events)) == final


# RETURN ---------------------------------------------------------------------------------


def test_returned_values():
    events = lanes("###...", ".##...", x=[5, None, 2, 1, 1, 1])
    text = "A finishes B RETURN first(A.x), last(A.x), min(A.x), max(A.x), avg(A.x), sum(A.x), count(A.x), count(A), A.x"
    (match,) = found(text, events)
    assert match.returned == (5, 2, 2, 5, 3.5, 7, 2, 3, [5, None, 2])
    (match,) = found("A finishes B RETURN duration(A) * 2 - duration(B), end(A) - start(B), avg(A.x) + count(B)", events)
    assert match.returned == (4, 2, 5.5)
    (match,) = found("A finishes B RETURN median(A.x), count(DISTINCT A.x), median(B.x)", events)
    assert match.returned == (3.5, 2, 2.0)


def test_aggregates_of_an_open_situation_cover_its_events_up_to_detection():
    events = lanes("###....", ".#####.", x=[1, 2, 4, 8, 16, 32, 64])
    text = "A overlaps B RETURN sum(A.x), sum(B.x), last(B.x), duration(B) + 1"
    assert [match.returned for match in found(text, events, detect="early")] == [(7, 14, 8, None)]
    assert [match.returned for match in found(text, events)] == [(7, 62, 32, 6)]


def test_times_are_nanoseconds():
    seconds = [datetime.datetime(1970, 1, 1, 0, 0, second) for second in range(4)]
    (match,) = found("A meets B RETURN start(A), duration(A), end(B) - start(A)", lanes("##..", "..#.", ts=seconds))
    assert match.returned == (0, 2 * 10**9, 3 * 10**9)
    assert match.detected_at == 3 * 10**9


# Faults ---------------------------------------------------------------------------------


@pytest.mark.parametrize("pattern", ["A before A", "A before C", "A before B; A before C"])
def test_constraints_that_mean_nothing(pattern):
    with pytest.raises(PatternError, match="the same two situations"):
        found(pattern, lanes("#", "#", "#"))


@pytest.mark.parametrize(("option", "value"), [("detect", "late"), ("allen", "1984")])
def test_unknown_options(option, value):
    with pytest.raises(PatternError, match=f"{option} is one of"):
        found("A before B", lanes("#", "#"), **{option: value})


def test_conditions_read_the_current_event():
    for condition in ("x.a", "avg(A.ts) > 1"):
        with pytest.raises(PatternError, match="the current event"):
            found("A before B", lanes("#", "#"), f"A AS {condition}, B AS b")


def test_the_limit():
    with pytest.raises(UnsupportedError, match="more than 3 combinations"):
        found("A before B", lanes("#.#.#.", "#.#.#."), limit=3)
