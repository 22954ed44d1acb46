"""Timelines: what is drawn, by the figure's own account, and what cannot be."""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pytest
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.dates import date2num
from matplotlib.patches import Polygon, Rectangle

import gpu_cep as cep
from gpu_cep.display.plotting.drawing import MOST_TRACKS
from gpu_cep.display.plotting.view import MOST_LABELS

DEFINE = "DEFINE A AS x > 5, B AS y"
OVERLAP = f"{DEFINE} PATTERN A overlaps B"
# A from 2 to 6, B from 4 to 8, of ten events
X = [0.0, 1, 7, 8, 9, 6, 2, 1, 0, 0]
Y = [False, False, False, False, True, True, True, True, False, False]


def table(ts: Sequence[Any] | pa.Array = tuple(range(10)), **columns: Any) -> pa.Table:
    return pa.table({"ts": ts, "x": X, "y": Y, **columns})


def lanes(timeline: cep.Timeline) -> Axes:
    (axes,) = (each for each in timeline.figure.axes if each.get_xlabel())
    return axes


def panels(timeline: cep.Timeline) -> dict[str, Axes]:
    return {each.get_title(loc="left"): each for each in timeline.figure.axes if each.get_title(loc="left")}


def header(timeline: cep.Timeline) -> list[str]:
    return [text.get_text() for text in timeline.figure.axes[0].texts]


def outlines(timeline: cep.Timeline) -> dict[str, np.ndarray]:
    """The places of the corners of each bar: at the bottom and at the top, with the tip's between them."""
    return {patch.get_gid(): patch.get_xy()[:5, 0] for patch in lanes(timeline).patches if isinstance(patch, Polygon)}


def bars(timeline: cep.Timeline) -> dict[str, tuple[float, float]]:
    return {name: (places[0], places[1]) for name, places in outlines(timeline).items()}


def tips(timeline: cep.Timeline) -> dict[str, bool]:
    return {name: bool(places[2] > places[1]) for name, places in outlines(timeline).items()}


def tints(axes: Axes) -> list[tuple[float, float]]:
    return [(patch.get_x(), patch.get_x() + patch.get_width()) for patch in axes.patches if isinstance(patch, Rectangle)]


def detections(axes: Axes) -> list[float]:
    return [line.get_xdata()[0] for line in axes.lines if line.get_gid() == "detected"]


def drawn(axes: Axes) -> tuple[list[float], list[float]]:
    """Times and values of a panel's line."""
    line = axes.lines[0]
    return list(line.get_xdata()), list(line.get_ydata())


def test_situations_are_bars_over_the_series_that_they_read() -> None:
    timeline = cep.plot(table(), OVERLAP)
    assert bars(timeline) == {"A": (2, 6), "B": (4, 8)}
    assert [label.get_text() for label in lanes(timeline).get_yticklabels()] == ["A", "B"]
    assert [text.get_text() for text in lanes(timeline).texts] == ["x > 5", "y"]
    assert list(panels(timeline)) == ["x", "y"]
    assert drawn(panels(timeline)["x"]) == (list(range(10)), X)
    assert panels(timeline)["x"].lines[0].get_drawstyle() == "steps-post"
    assert tints(panels(timeline)["x"]) == [(2, 6)]
    assert tints(panels(timeline)["y"]) == [(4, 8)]
    assert header(timeline) == ["match 0, one of 1", "A overlaps B"]


def test_detection_is_a_line_through_everything() -> None:
    timeline = cep.plot(table(), OVERLAP)
    assert [detections(axes) for axes in (*panels(timeline).values(), lanes(timeline))] == [[8]] * 3
    assert [text.get_text() for text in panels(timeline)["x"].texts] == ["detected"]
    assert not any(tips(timeline).values())


def test_a_situation_that_is_open_when_the_match_is_detected_has_a_tip() -> None:
    timeline = cep.plot(table(), OVERLAP, detect="early")
    assert bars(timeline) == {"A": (2, 6), "B": (4, 6)}
    assert tips(timeline) == {"A": False, "B": True}
    assert detections(lanes(timeline)) == [6]


@pytest.mark.parametrize(
    "ts",
    [
        pa.array(range(10), pa.int32()),
        pa.array(range(10), pa.uint64()),
        pa.array(np.arange(10) / 4),
        pa.array(np.arange(10, dtype=np.float32)),
    ],
)
def test_numbers_are_places(ts: pa.Array) -> None:
    places = ts.to_pylist()
    timeline = cep.plot(table(ts), OVERLAP)
    assert bars(timeline) == {"A": (places[2], places[6]), "B": (places[4], places[8])}
    assert lanes(timeline).get_xlabel() == "ts"


@pytest.mark.parametrize(
    "kind",
    [pa.date32(), pa.date64(), *(pa.timestamp(unit) for unit in ("s", "ms", "us", "ns")), pa.timestamp("us", "Europe/Berlin")],
)
def test_dates_and_timestamps_are_dates(kind: pa.DataType) -> None:
    days = np.datetime64("2026-03-01") + np.arange(10)
    timeline = cep.plot(table(pa.array(days).cast(kind)), OVERLAP)
    assert bars(timeline) == {"A": tuple(date2num(days[[2, 6]])), "B": tuple(date2num(days[[4, 8]]))}
    timeline.figure.draw_without_rendering()
    assert lanes(timeline).xaxis.get_major_formatter().get_offset() == "2026-Mar"


def test_an_axis_of_times_with_a_zone_reads_as_clocks_there() -> None:
    ts = pa.array(np.datetime64("2026-03-01T23:00", "s") + np.arange(10) * np.timedelta64(1, "h")).cast(pa.timestamp("us", "Asia/Tokyo"))
    timeline = cep.plot(table(ts), OVERLAP)
    timeline.figure.draw_without_rendering()
    labels = [label.get_text() for label in lanes(timeline).get_xticklabels()]
    assert lanes(timeline).get_xlabel() == "ts (Asia/Tokyo)"
    assert "10:00" in labels  # 1:00 in UTC, where A begins
    assert lanes(timeline).xaxis.get_major_formatter().get_offset() == "2026-Mar-02"


def test_an_axis_over_the_hour_by_which_clocks_are_set_back_has_few_ticks() -> None:
    hour = np.datetime64("2024-10-27T00:30", "s") + np.arange(10) * np.timedelta64(10, "m")
    # from 2:50 in summer to 2:50 in winter: the clock has not moved
    timeline = cep.plot(table(pa.array(hour).cast(pa.timestamp("us", "Europe/Berlin"))), OVERLAP)
    lanes(timeline).set_xlim(date2num(hour[2]), date2num(hour[8]))
    assert len(lanes(timeline).xaxis.get_majorticklocs()) < 20


@pytest.mark.parametrize(
    ("ts", "label"),
    [
        (pa.array(np.arange(10) + 1_700_000_000_000_000_001), "ts − 1700000000000000003"),
        (pa.array(np.arange(10) + 1_700_000_000_000_000_001).cast(pa.timestamp("ns")), "ts − 2023-11-14 22:13:20.000000003 (ns)"),
        (pa.array(np.arange(10) + 2**61).cast(pa.timestamp("s")), None),
    ],
)
def test_times_that_floats_do_not_tell_apart_count_from_the_match_on(ts: pa.Array, label: str | None) -> None:
    timeline = cep.plot(table(ts), OVERLAP)
    assert bars(timeline) == {"A": (0, 4), "B": (2, 6)}
    assert label in (None, lanes(timeline).get_xlabel())


def test_a_bare_number_has_the_unit_that_the_caller_says() -> None:
    assert lanes(cep.plot(table(), OVERLAP + " WITHIN 10 s", time_unit="s")).get_xlabel() == "ts (s)"


@pytest.mark.parametrize(("margin", "seen"), [(0, (2, 8)), (0.25, (0, 9)), (0.5 / 3, (1, 9)), (100, (0, 9))])
def test_the_margin_says_how_much_is_seen_before_and_behind(margin: float, seen: tuple[int, int]) -> None:
    timeline = cep.plot(table(), OVERLAP, margin=margin)
    low, high = seen
    assert drawn(panels(timeline)["x"])[0] == list(range(low, high + 1))
    reach = int(np.ceil(margin * 6))
    assert lanes(timeline).get_xlim() == (2 - reach, 8 + reach)


def test_a_match_of_no_length_is_seen_with_its_neighbours() -> None:
    events = pa.table({"ts": [1, 5, 9, 30], "v": [1, 2, 3, 4]})
    timeline = cep.plot(events, "PATTERN SEQ(a) WHERE a.v = 2")
    assert lanes(timeline).get_xlim() == (1, 9)
    assert lanes(cep.plot(events.slice(1, 1), "PATTERN SEQ(a) WHERE a.v = 2")).get_xlim() == (4, 6)


@pytest.mark.parametrize("keys", [["b", "a"], pa.array(["b", None]), pa.array(["b", "a"]).dictionary_encode(), [1.5, float("nan")], [0, 1]])
def test_only_the_matchs_own_stream_is_drawn(keys: Any) -> None:
    """The other stream reads 100 and has no match; which of both is whose is told by the key alone."""
    keys = pa.array(keys) if isinstance(keys, list) else keys
    for own in range(2):
        numbers = [number % 2 for number in range(20)]
        x = [X[number // 2] if number % 2 == own else 100.0 for number in range(20)]
        y = [Y[number // 2] and number % 2 == own for number in range(20)]
        events = pa.table({"ts": [number // 2 for number in range(20)], "x": x, "y": y, "key": keys.take(pa.array(numbers))})
        timeline = cep.plot(events, OVERLAP, partition_by="key")
        assert drawn(panels(timeline)["x"]) == (list(range(10)), X)
        text = keys.cast(pa.string())[own].as_py() or "NULL"
        assert header(timeline)[0] == f"match 0, one of 1 · key = {text}"


def test_a_situation_that_a_gap_ends_ends_without_an_event() -> None:
    events = pa.table({"ts": [0, 1, 2, 3, 20, 21], "x": [0.0, 9, 9, 9, 9, 0], "y": [False, False, True, True, False, False]})
    timeline = cep.plot(events, f"{DEFINE} PATTERN B finished-by A; B during A", gap=5, margin=0.5)
    assert bars(timeline) == {"A": (1, 8), "B": (2, 8)}
    assert detections(lanes(timeline)) == [8]


def test_every_match_is_drawn_as_it_is_found() -> None:
    rng = np.random.default_rng(3)
    events = pa.table({"ts": np.arange(300) // 3, "car": np.tile([2, 0, 1], 100), **{name: rng.random(300) < 0.7 for name in "ab"}})
    query = "PARTITION BY car DEFINE A AS a, B AS b AT LEAST 2 PATTERN A overlaps B; A during B"
    query += " RETURN start(A) AS a, end(A) AS a2, start(B) AS b, end(B) AS b2"
    for detect in ("final", "early"):
        found = cep.match(events.take(rng.permutation(300)), query, detect=detect).to_pylist()
        assert len(found) > 10
        for number in range(0, len(found), 7):
            timeline, row = cep.plot(events, query, match=number, detect=detect), found[number]
            ends = [row["detected_at"] if row[name] is None else row[name] for name in ("a2", "b2")]
            assert bars(timeline) == {"A": (row["a"], ends[0]), "B": (row["b"], ends[1])}
            assert tips(timeline) == {"A": row["a2"] is None, "B": row["b2"] is None}
            assert detections(lanes(timeline)) == [row["detected_at"]]
            assert header(timeline)[0] == f"match {number}, one of {len(found)} · car = {row['car']}"


def test_unsorted_events_are_drawn_in_order_and_ties_by_order_by() -> None:
    events = table().take([3, 1, 4, 0, 5, 9, 2, 6, 8, 7])
    assert drawn(panels(cep.plot(events, OVERLAP))["x"]) == (list(range(10)), X)
    tied = pa.concat_tables([table(n=[1] * 10), pa.table({"ts": [3], "x": [30.0], "y": [False], "n": [0]})])
    times, values = drawn(panels(cep.plot(tied, OVERLAP, order_by="n"))["x"])
    assert times[3:5] == [3, 3]
    assert values[3:5] == [30, 8]


def test_series_are_numbers_truth_values_and_text_of_few_values() -> None:
    kinds = {
        "mode": pa.DictionaryArray.from_arrays([2] * 2 + [0] * 6 + [20] * 2, ["run", "b", "idle", *"cdefghijklmnopqrs", "stop"]),
        "level": [Decimal(number) / 4 for number in range(10)],
        "whole": pa.array(range(10), pa.uint8()),
        "gap": [None, 1.0, float("inf"), 3, 4, 5, 6, 7, 8, 9],
        "day": [dt.date(2026, 1, 1)] * 10,
    }
    conditions = (
        "mode <> 'x' AND level >= 0 AND whole < 99 AND (gap IS NULL OR gap > 0) AND day > DATE '2000-01-01' AND ts >= 0 AND key = 1"
    )
    query = f"PARTITION BY key DEFINE A AS x > 5 AND {conditions}, B AS y PATTERN A overlaps B"
    shown = panels(cep.plot(table(key=[1] * 10, **kinds), query))
    assert list(shown) == ["x", "mode", "level", "whole", "gap", "y"]
    assert [label.get_text() for label in shown["mode"].get_yticklabels()] == ["idle", "run", "stop"]
    assert drawn(shown["mode"])[1] == [0, 0, 1, 1, 1, 1, 1, 1, 2, 2]
    assert [label.get_text() for label in shown["y"].get_yticklabels()] == ["false", "true"]
    assert drawn(shown["level"])[1] == [number / 4 for number in range(10)]
    assert np.isnan(drawn(shown["gap"])[1][:3]).tolist() == [True, False, True]


def test_text_of_many_values_is_no_series() -> None:
    def shown(values: int) -> list[str]:
        events = table(list(range(10)), name=[f"n{number % values}" for number in range(10)])
        events = pa.concat_tables([events, events.set_column(0, "ts", pa.array(range(10, 20)))])
        return list(panels(cep.plot(events, "DEFINE A AS x > 5 AND name <> 'q', B AS y PATTERN A overlaps B", margin=0)))

    assert shown(7) == ["x", "name", "y"]
    many = pa.table({"ts": range(20), "name": [f"n{number}" for number in range(20)], "y": [0 < number < 19 for number in range(20)]})
    assert many.num_rows > MOST_LABELS
    assert list(panels(cep.plot(many, "DEFINE A AS y AND name <> 'q', B AS y PATTERN A equals B"))) == ["y"]


def test_a_computed_column_is_drawn_as_what_it_is_computed_from() -> None:
    def double(value: float) -> float:
        return 2 * value

    query = "DEFINE A AS double(x) > 10, B AS exp(level) > 2 PATTERN A overlaps B"
    shown = panels(cep.plot(table(level=[float(flag) for flag in Y]), query, functions={"double": double}))
    assert list(shown) == ["x", "level"]
    assert drawn(shown["x"])[1] == X


def test_names_are_text_and_nothing_else() -> None:
    name = "a $x^{2 _\n\x00\x1b</svg>&" + "long" * 30
    events = table().rename_columns(["ts", name, "y"])
    quoted = name.replace('"', '""')
    timeline = cep.plot(events, f'DEFINE "$\\frac{{" AS "{quoted}" > 5, B AS y PATTERN "$\\frac{{" overlaps B')
    (label, _) = lanes(timeline).get_yticklabels()
    assert label.get_text() == "$\\frac{"
    assert len(next(iter(panels(timeline)))) == 70
    ElementTree.fromstring(timeline._repr_svg_())


def test_files_are_of_the_kind_that_their_names_say(tmp_path: Path) -> None:
    timeline = cep.plot(table(), OVERLAP)
    for name, start in (("a.png", b"\x89PNG\r\n\x1a\n"), ("a.SVG", b"<?xml"), ("a.pdf", b"%PDF-")):
        timeline.save(tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(start)
    timeline.save(str(tmp_path / "b.svg"))
    assert (tmp_path / "b.svg").read_bytes() == (tmp_path / "a.SVG").read_bytes()
    with pytest.raises(cep.CepError, match=r"c\.jpg from its suffix; expected one of \.png, \.svg, \.pdf"):
        timeline.save(tmp_path / "c.jpg")


def test_notebooks_show_a_timeline() -> None:
    timeline = cep.plot(table(), OVERLAP)
    assert timeline._repr_png_().startswith(b"\x89PNG")
    root = ElementTree.fromstring(timeline._repr_svg_())
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert timeline._repr_svg_() == cep.plot(table(), OVERLAP)._repr_svg_()


def test_neither_pyplot_nor_the_users_settings_take_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    expected = cep.plot(table(), OVERLAP)._repr_svg_()
    monkeypatch.setitem(rcParams, "font.size", 31.0)
    assert cep.plot(table(), OVERLAP)._repr_svg_() == expected
    assert rcParams["font.size"] == 31.0


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(cep.EngineUnavailable, match=r"pip install 'gpu_cep\[plot\]'"):
        cep.plot(table(), OVERLAP)


@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({"match": 1}, cep.CepError, "there is no match 1 to draw: the query finds 1, numbered from 0"),
        ({"match": -1}, cep.PatternError, "match must be a whole number of at least 0, not -1"),
        ({"match": True}, cep.PatternError, "match must be a whole number"),
        ({"margin": -0.5}, cep.PatternError, "margin must be a number from 0 to 1,000, not -0.5"),
        ({"margin": 1001}, cep.PatternError, "margin must be a number"),
        ({"margin": float("nan")}, cep.PatternError, "margin must be a number"),
        ({"detect": "soon"}, cep.PatternError, "soon"),
        ({"algorithm": "nfab"}, cep.UnsupportedError, "algorithm='nfab' is for event patterns"),
        ({"threads": 0}, cep.PatternError, "threads must be a whole number"),
        ({"max_matches": 0}, cep.MatchLimitExceeded, "0"),
        ({"timestamp": "when"}, cep.PatternError, "when"),
    ],
)
def test_what_cannot_be_drawn_is_said(keywords: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        cep.plot(table(), OVERLAP, **keywords)


def test_no_match_at_all() -> None:
    for query in (f"{DEFINE} PATTERN B overlaps A", "PATTERN SEQ(a) WHERE a.x > 99"):
        with pytest.raises(cep.CepError, match="there is no match 0 to draw: the query finds none"):
            cep.plot(table(), query)


def test_faults_of_a_query_are_those_of_match() -> None:
    for query in ("DEFINE A AS xx > 5, B AS y PATTERN A overlaps B", OVERLAP + " RETURN avg(A.xx)", OVERLAP + " WITHIN"):
        with pytest.raises(cep.CepError) as expected:
            cep.match(table(), query)
        with pytest.raises(type(expected.value)) as found:
            cep.plot(table(), query)
        assert str(found.value) == str(expected.value)


def test_infinite_times_and_too_many_variables_are_refused() -> None:
    endless = [-np.inf, 1, 2, 3, 4, 5, 6, 7, 8, np.inf]
    with pytest.raises(cep.UnsupportedError, match="begins or ends at infinity"):
        cep.plot(table(endless), "PATTERN SEQ(a, b) WHERE strict_contiguity { a.x = 0 AND b.x = 1 }")
    assert bars(cep.plot(table(endless), OVERLAP)) == {"A": (2, 6), "B": (4, 8)}
    crowd = ", ".join(f"v{number}" for number in range(MOST_TRACKS + 1))
    events = pa.table({"ts": range(MOST_TRACKS + 1)})
    with pytest.raises(cep.UnsupportedError, match="a match of 101 variables cannot be drawn; supported: 100"):
        cep.plot(events, f"PATTERN SEQ({crowd})")
