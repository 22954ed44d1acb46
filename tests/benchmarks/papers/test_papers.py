"""The papers' figures: queries run, all ways agree, events are what they are said to be, and the baseline finds the sets' matches."""

from __future__ import annotations

import math
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import gpu_cep
from benchmarks.baselines.measure import Disagreement
from benchmarks.papers import figures, pages, permutations, runs, tpstream
from benchmarks.papers.run import FIGURES
from benchmarks.workloads import drives, paper_events
from gpu_cep.errors import UnsupportedError

EVENTS = 40
MOST_ORDERS = 24

# Events


@pytest.mark.parametrize(("name", "arguments"), [("onco", ()), ("nyse", ()), ("tickers", (0.7,)), ("regions", ()), ("shifting", (100,))])
def test_events_are_the_same_each_time_and_in_order(name: str, arguments: tuple[Any, ...]) -> None:
    draw = getattr(paper_events, name).__wrapped__
    events = draw(1_000, *arguments)
    assert events.equals(draw(1_000, *arguments))
    assert events.num_rows == 1_000
    assert (np.diff(events["ts"].cast(pa.int64()).to_numpy()) > 0).all()


def test_ten_patients_are_treated_at_a_time() -> None:
    events = paper_events.onco(5_000)
    days = events["ts"].cast(pa.int64()).to_numpy() // 86_400
    patients = events["patient"].to_numpy()
    treated = [np.unique(patients[days // 4 == interval]) for interval in np.unique(days // 4)]
    assert all(len(found) <= 10 and np.ptp(found) < 10 for found in treated)
    assert 5_000 / (days[-1] + 1) == pytest.approx(paper_events.ONCO_EVENTS_PER_DAY, rel=0.1)


def test_trades_come_in_bursts() -> None:
    gaps = np.diff(paper_events.nyse(5_000)["ts"].cast(pa.int64()).to_numpy())
    assert np.mean(gaps > 10_000) == pytest.approx(0.05, abs=0.02)
    assert np.median(gaps) < 400


def test_copies_stand_behind_their_events() -> None:
    events = paper_events.onco(200)
    tripled = paper_events.copied(events, ["C", "M"], 3)
    assert tripled.num_rows == 200
    kinds, times = tripled["type"].to_pylist(), tripled["ts"].cast(pa.int64()).to_pylist()
    wanted = []
    for kind, time in zip(events["type"].to_pylist(), events["ts"].cast(pa.int64()).to_pylist(), strict=True):
        wanted += [(kind, time + copy) for copy in range(3 if kind in "CM" else 1)]
    assert list(zip(kinds, times, strict=True)) == wanted[:200]
    assert paper_events.copied(events, ["C"], 1).equals(events)


def test_prices_rise_as_often_as_asked() -> None:
    events = paper_events.tickers(10_000, 0.7)
    one = events.filter(pc.field("symbol") == 1)["price"].to_numpy()
    steps = (np.diff(one) + 500) % 1_000 - 500  # 1000 is followed by 1
    assert {-1, 0, 1} == set(steps)
    assert [np.mean(steps == step) for step in (1, -1, 0)] == pytest.approx([0.7, 0.15, 0.15], abs=0.02)
    assert pc.min_max(events["volume"]).as_py() == {"min": 1, "max": 1_000}


def test_regions_are_as_frequent_as_their_companies() -> None:
    events = paper_events.regions(20_000)
    counts = dict(zip(*(column.to_pylist() for column in events["type"].combine_chunks().value_counts().flatten()), strict=True))
    companies = sum(paper_events.REGIONS.values())
    for region in ("NorthAmerica", "Europe", "Asia"):
        assert counts[region] / 20_000 == pytest.approx(paper_events.REGIONS[region] / companies, rel=0.1)
    assert paper_events.REGIONS["NorthAmerica"] == 700 * paper_events.REGIONS["Pacific"]


def test_another_type_is_rare_in_each_phase() -> None:
    kinds = np.array(paper_events.shifting(3_000, 1_000)["type"].to_pylist())
    assert [min("ABC", key=list(kinds[low : low + 1_000]).count) for low in (0, 1_000, 2_000)] == ["A", "B", "C"]


# Figures


def test_every_figure_is_there_with_its_words() -> None:
    names = [figure.name for figure in FIGURES]
    wanted = [f"thesis-{number}" for number in ("4.12", "4.13", "4.14", "5.5", "5.6", "5.7")]
    wanted += [f"sase-{number}" for number in range(1, 7)] + [f"lazy-{number}" for number in range(10, 20)]
    assert len(names) == len(set(names))
    assert all(any(name.startswith(each) for name in names) for each in wanted)
    assert all(figure.paper and figure.ours and figure.measure in runs.MEASURES for figure in FIGURES)


def test_panels_are_drawn_once_and_when_they_are_asked_for() -> None:
    drawn: list[str] = []
    experiment = figures.Experiment("small", lambda: drawn.append("small") or ())
    assert not drawn
    assert experiment.panels == experiment.panels == ()
    assert drawn == ["small"]


def test_all_ways_agree_at_both_ends_of_every_panel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tpstream, "_all_reports", lambda: drives.car_reports(EVENTS))
    panels = {(figure.experiment.name, panel.title): panel for figure in FIGURES for panel in figure.experiment.panels}
    for place, panel in panels.items():
        for point in (panel.points[0], panel.points[-1]):
            events = point.stream(EVENTS)
            for query in point.queries:
                found = {way.name: _matches(way, point, events, query) for way in panel.ways}
                assert len({count for count in found.values() if count is not None}) <= 1, (place, point.x, found)


def _matches(way: Any, point: Any, events: pa.Table, query: str) -> int | None:
    """How many matches a way finds; None where it runs no such query, or has too many automata for a test."""
    sets = permutations.sets_of(gpu_cep.parse(query)) if way.name == "all permutations" else []
    if math.prod(math.factorial(len(members)) for members in sets) > MOST_ORDERS:
        return None
    try:
        return int(way.count(runs.prepared(way, point, events, query)(), events, query))
    except UnsupportedError:
        assert way.options["algorithm"] != "ses_automaton"
        return None


# The baseline


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "pattern",
    [
        "AND(A a, B b, C c)",
        "SEQ(AND(A a, B b, C c), D d)",
        "SEQ(AND(A a, A b), AND(B c, C d))",
        "SEQ(AND(A a, B b), AND(A c, B d))",
        "AND(A a, A b, A c)",
    ],
)
@pytest.mark.parametrize("where", ["", "WHERE [k]"])
def test_permutations_find_the_matches_of_the_sets(pattern: str, where: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    events = pa.table({"ts": np.cumsum(rng.integers(1, 3, 60)), "type": rng.choice(list("ABCD"), 60), "k": rng.integers(0, 2, 60)})
    query = f"PATTERN {pattern} {where} WITHIN 25"
    wanted = gpu_cep.match(events, query, output="indices")
    every = permutations.by_permutations(events, query, {})()
    order = [(name, "ascending") for name in wanted.column_names]
    assert wanted.num_rows > 0
    assert permutations.conforming(every, events, query).sort_by(order).equals(wanted.sort_by(order))
    assert every.group_by(every.column_names).aggregate([]).num_rows == every.num_rows


def test_there_is_an_automaton_for_each_order() -> None:
    query = gpu_cep.parse("PATTERN SEQ(AND(A a, B b, C c), AND(D d, A e), B f) WITHIN 9")
    assert len(set(permutations.orders(query))) == 12


# Measuring


@pytest.fixture
def small() -> tuple[Any, Any]:
    """A figure of two ways, one of which does not run its query, and its results."""
    point = figures.Point(3, ("PATTERN SEQ(C a, D b+) WITHIN 30 days",), paper_events.onco, 500)
    ways = tuple(figures.Way(name, {"algorithm": name}) for name in ("ses_automaton", "lazy_chain"))
    experiment = figures.Experiment("small", lambda: (figures.Panel("one", "size", (point,), ways),), ("steps", "peak"))
    found = list(runs.measure(experiment, 1, 0.0))
    return figures.Figure("small-1", "Small", experiment, "events/s", "Rises.", "So it does."), pages.results_of(found)


def test_measurement(small: tuple[Any, Any]) -> None:
    _, results = small
    (each,) = results.measured.values()
    events = paper_events.onco(500)
    found = gpu_cep.match(events, "PATTERN SEQ(C a, D b+) WITHIN 30 days", output="indices")
    assert (each.events, each.matches) == (500, found.num_rows)
    assert each.bound == found.num_rows + pc.sum(pc.list_value_length(found["b"])).as_py()
    assert each.peak > 0
    assert [refusal.way for refusal in results.refused] == ["lazy_chain"]


def test_page(small: tuple[Any, Any]) -> None:
    figure, results = small
    page = pages.markdown([figure], results, "# Head", {"small-1": "folder/small-1.svg"})
    assert "The paper: Rises." in page
    assert "Not run: `lazy_chain`: algorithm='lazy_chain' needs skip_till_any_match" in page
    assert "![small-1](folder/small-1.svg)" in page
    assert "| one | 3 | 500 |" in page


def test_ways_that_disagree_are_an_error(small: tuple[Any, Any]) -> None:
    figure, _ = small
    (panel,) = figure.experiment.panels
    wrong = figures.Way("wrong", {"algorithm": "ses_automaton"}, count=lambda *_: -1)
    experiment = figures.Experiment("small", lambda: (figures.Panel("one", "size", panel.points, (*panel.ways, wrong)),))
    with pytest.raises(Disagreement, match="small, one, 3"):
        list(runs.measure(experiment, 1, 0.0))


@pytest.mark.skipif(find_spec("matplotlib") is None, reason="plots need matplotlib")
def test_plot(small: tuple[Any, Any], tmp_path: Path) -> None:
    from benchmarks.papers import plots

    figure, results = small
    assert plots.draw([figure], results, tmp_path) == {"small-1": "small-1.svg"}
    assert "events/s" in (tmp_path / "small-1.svg").read_text()
