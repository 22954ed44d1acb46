"""Plots of event patterns: dots on the series, and the events that were passed over."""

from __future__ import annotations

import pyarrow as pa
from matplotlib.axes import Axes

import gpu_cep as cep
from tests.display.plotting.test_plot import drawn, header, lanes, panels

EVENTS = pa.table(
    {
        "ts": [1, 2, 3, 4, 5, 6, 7],
        "type": list("AXBABCC"),
        "v": [1.0, 9, 2, 3, 4, 5, 6],
        "who": [1, 1, 1, 2, 1, 1, 2],
    }
)


def marks(axes: Axes) -> list[tuple[list[float], list[float]]]:
    """Times and values of the matched events in a panel, variable by variable."""
    return [(list(line.get_xdata()), list(line.get_ydata())) for line in axes.lines[1:]]


def test_events_of_a_match_are_dots_on_the_series() -> None:
    timeline = cep.plot(EVENTS, "PATTERN SEQ(A a, B b+, C c, D d?) WHERE [who] AND b.v > a.v WITHIN 9", match=0)
    assert header(timeline) == ["match 0, one of 1 · who = 1", "SEQ(A a, B b+, C c, D d?)\nWITHIN 9"]
    dots = {line.get_gid(): list(line.get_xdata()) for line in lanes(timeline).lines}
    assert dots == {"a": [1], "b": [3, 5], "c": [6], "d": [], "passed over": [2]}
    texts = [f"{name}.type = '{name.upper()}'" for name in "abcd"]
    assert [text.get_text() for text in lanes(timeline).texts] == [*texts, "1 event in between that no variable binds"]
    assert [label.get_text() for label in lanes(timeline).get_yticklabels()] == [*"abcd", "passed over"]
    assert list(panels(timeline)) == ["v"]
    (panel,) = panels(timeline).values()
    assert drawn(panel) == ([1, 2, 3, 5, 6], [1, 9, 2, 4, 5])
    assert panel.lines[0].get_linestyle() == "None"
    assert marks(panel) == [([1], [1]), ([3, 5], [2, 4]), ([6], [5]), ([], [])]


def passed(timeline: cep.Timeline) -> tuple[list[float], list[str]]:
    """The times of the events in the lane of those that were passed over, and what is written there."""
    times = [time for line in lanes(timeline).lines if line.get_gid() == "passed over" for time in line.get_xdata()]
    return times, [text.get_text() for text in lanes(timeline).texts if "no variable binds" in text.get_text()]


def test_only_events_of_the_stream_within_the_match_were_passed_over() -> None:
    timeline = cep.plot(EVENTS, "PATTERN SEQ(B x, C y) WHERE [who] WITHIN 9", match=0, margin=2)
    assert passed(timeline) == ([5], ["1 event in between that no variable binds"])
    assert passed(cep.plot(EVENTS, "PATTERN SEQ(x, y)", match=0, margin=2)) == ([], [])
    tied = pa.table({"ts": [1, 1, 1, 2, 2], "type": list("XAXXB"), "order": [1, 2, 3, 4, 5]})
    times, _ = passed(cep.plot(tied, "PATTERN SEQ(A a, B b)", order_by="order"))
    assert times == [1, 2]


def test_of_many_passed_events_some_are_left_out_and_that_is_said() -> None:
    events = pa.table({"ts": range(5_002), "type": ["A", *["X"] * 5_000, "B"]})
    times, told = passed(cep.plot(events, "PATTERN SEQ(A a, B b)"))
    assert told == ["5,000 events in between that no variable binds; 4,000 of them are left out here"]
    assert (len(times), times[0], times[-1]) == (1_000, 1, 5_000)


def test_event_patterns_take_their_own_keywords() -> None:
    query = "PATTERN SEQ(A a, C c)"
    options = {"strategy": "skip_till_any_match", "after_match": "skip_to_next", "algorithm": "brute_force"}
    timeline = cep.plot(EVENTS.rename_columns(["at", "kind", "v", "who"]), query, timestamp="at", type_column="kind", match=1, **options)
    assert {line.get_gid(): list(line.get_xdata()) for line in lanes(timeline).lines} == {"a": [4], "c": [6], "passed over": [5]}
    assert not panels(timeline)
    assert cep.plot(EVENTS, cep.seq(cep.var("a", "A"), cep.var("c", "C"))).figure is not None
