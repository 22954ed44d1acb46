"""Reports: what the page holds, what it says that it does not, and what asks for the impossible."""

from __future__ import annotations

import json
import re
import sys
from html.parser import HTMLParser

import pyarrow as pa
import pytest

import gpu_cep as cep

QUERY = "PATTERN SEQ(A a, B b)\nWHERE b.v > a.v AND a.note <> '</script><b>'\nWITHIN 3"
EVENTS = pa.table({"ts": range(12), "type": list("ABX" * 4), "v": [float(v) for v in range(12)], "note": ["<i>&\u2028"] * 12})
SITUATIONS = "DEFINE P AS v < 4, Q AS v > 3 PATTERN P meets Q"


class Page(HTMLParser):
    """A page's elements with their attributes, and the text of those that have an id."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, str] = {}
        self._inside: str | None = None
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self._inside = dict(attrs).get("id") or self._inside

    def handle_endtag(self, tag):
        self._inside = None

    def handle_data(self, data):
        if self._inside:
            self.texts[self._inside] = self.texts.get(self._inside, "") + data

    def of(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def data(self):
        return json.loads(self.texts["data"])


@pytest.fixture(scope="module")
def page() -> Page:
    return Page(cep.report(EVENTS, QUERY).html)


def test_the_page_holds_the_query_as_written_the_plan_and_the_waterfall(page):
    assert page.texts["query"].startswith(QUERY)
    assert page.texts["summary"].startswith("12 events, 4 matches, ")
    assert "skip_till_next_match" in page.texts["plan"]
    assert "ran " in page.texts["plan"]
    assert [each["class"] for each in page.of("svg") if "class" in each] == ["plan", "waterfall"]
    assert next(each["data-name"] for each in page.of("rect") if "data-name" in each) == "events"


def test_the_page_holds_all_matches_and_a_timeline_of_each(page):
    found = cep.match(EVENTS, QUERY)
    assert [column["name"] for column in page.data["columns"]] == found.column_names
    assert [row[:2] for row in page.data["rows"]] == [[row["match_start"], row["match_end"]] for row in found.to_pylist()]
    assert [each["id"] for each in page.of("template")] == [f"timeline-{n}" for n in range(4)]
    assert page.data["timelines"] == 4
    assert page.texts["bounds"].startswith("This page holds all matches, and a timeline of each.")


def test_the_page_loads_nothing(page):
    policy = next(each["content"] for each in page.of("meta") if each.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'")
    assert not [each for tag in ("link", "img", "iframe", "object") for each in page.of(tag)]
    assert not [each["src"] for each in page.of("script") if "src" in each]
    assert all(
        value.startswith(("#", "data:")) for _, attributes in page.elements for name, value in attributes.items() if name in ("href", "src")
    )


def test_ids_are_unique_outside_of_templates():
    html = re.sub(r"<template.*?</template>", "", cep.report(EVENTS, QUERY).html, flags=re.DOTALL)
    ids = [attributes["id"] for _, attributes in Page(html).elements if "id" in attributes]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize(
    ("rows", "timelines", "held"),
    [
        (2, 20, "the first 2 of 4 matches, and a timeline of each"),
        (3, 1, "the first 3 of 4 matches, and timelines of the first 1"),
        (9, 0, "all matches, and no timelines"),
    ],
)
def test_bounds_are_kept_and_told(rows, timelines, held):
    page = Page(cep.report(EVENTS, QUERY, rows=rows, timelines=timelines).html)
    assert page.texts["bounds"].startswith(f"This page holds {held}.")
    assert len(page.data["rows"]) == min(rows, 4)
    assert len(page.of("template")) == min(rows, timelines, 4)


def test_a_page_without_matches_says_so():
    assert Page(cep.report(EVENTS.slice(0, 1), QUERY).html).texts["bounds"].startswith("There are no matches.")
    assert Page(cep.report(EVENTS, QUERY, rows=0).html).texts["bounds"].startswith("This page holds none of the matches: rows=0.")


def test_situations_have_a_page_too():
    page = Page(cep.report(EVENTS, SITUATIONS, detect="early").html)
    assert page.data["rows"][0][:1] == [0]
    assert page.texts["query"].startswith(SITUATIONS)
    assert len(page.of("template")) == 1


@pytest.mark.parametrize("returned", ["", " RETURN P, end(Q) AS until"])
def test_situations_by_the_definition_have_the_same_page(returned):
    query, ways = SITUATIONS + returned, ("brute_force", "auto")
    found, expected = (Page(cep.report(EVENTS, query, detect="early", algorithm=way).html) for way in ways)
    assert found.data == expected.data
    assert len(found.of("template")) == 1


def test_a_query_built_in_python_and_brute_force():
    built = cep.seq(cep.var("a", "A"), cep.var("b", "B")).within(3)
    page = Page(cep.report(EVENTS, built, algorithm="brute_force", timelines=0, columns="v").html)
    assert page.texts["query"].startswith("PATTERN SEQ(A a, B b)")
    assert "Nothing was counted" in cep.report(EVENTS, built, algorithm="brute_force", timelines=0).html
    assert page.data["rows"][0][2:] == ['{"v": 0.0}', '{"v": 1.0}']


def test_keys_come_first_and_whole_events_and_times_have_a_short_text():
    at = pa.array([0, 1, 2, 90_000], pa.timestamp("s")).cast(pa.timestamp("us"))
    events = pa.table({"ts": at, "type": list("ABBB"), "user": ["</ann>"] * 4, "v": [1, 2, 3, 0], "w": [7] * 4})
    data = Page(cep.report(events, "PATTERN SEQ(A a, B b+) WHERE [user] AND b.v > a.v WITHIN 1 hour", timelines=0).html).data
    assert [column["name"] for column in data["columns"]] == ["user", "match_start", "match_end", "a", "b"]
    start, end = "1970-01-01 00:00:00", "1970-01-01 00:00:02"
    assert data["texts"] == {"1": [start], "2": [end], "3": ["00:00:00 v=1"], "4": ["2 events 00:00:01 … 00:00:02 v=2 … 3"]}
    assert data["rows"][0][0] == "</ann>"
    assert [event["w"] for event in json.loads(data["rows"][0][4])] == [7, 7]


def test_whole_numbers_that_scripts_would_round_are_text():
    events = pa.table({"ts": [2**60 + 1, 2**60 + 2], "type": ["A", "B"]})
    page = Page(cep.report(events, "PATTERN SEQ(A a, B b) RETURN 7 AS seven", timelines=0).html)
    assert page.data["rows"] == [[str(2**60 + 1), str(2**60 + 2), 7]]


def test_a_report_is_saved_and_shown_in_a_frame(tmp_path):
    made = cep.report(EVENTS, QUERY, timelines=0)
    made.save(tmp_path / "run.html")
    assert (tmp_path / "run.html").read_text(encoding="utf-8") == made.html
    (frame,) = Page(made._repr_html_()).of("iframe")
    assert frame["srcdoc"] == made.html
    assert repr(made) == f"Report({len(made.html):,} characters of HTML)"
    with pytest.raises(cep.CepError, match=r"expected \.html"):
        made.save(tmp_path / "run.htm")


def test_a_profile_receives_what_was_done():
    profile = cep.Profile()
    cep.report(EVENTS, QUERY, timelines=0, profile=profile)
    assert profile.counts["matches"] == 4


@pytest.mark.parametrize("bound", [{"rows": -1}, {"timelines": True}, {"rows": 1.5}, {"margin": -1}])
def test_bounds_that_are_none(bound):
    with pytest.raises(cep.PatternError, match=f"{next(iter(bound))} must be a"):
        cep.report(EVENTS, QUERY, **bound)


def test_without_matplotlib_the_page_has_no_timelines_and_says_why(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    page = Page(cep.report(EVENTS, QUERY).html)
    why = "timelines need matplotlib, which is not installed: pip install 'gpu_cep[plot]'"
    assert page.texts["bounds"].startswith(f"This page holds all matches, and no timelines ({why}).")
    assert page.of("template") == []
    assert Page(cep.report(EVENTS, QUERY, timelines=0).html).texts["bounds"].startswith("This page holds all matches, and no timelines.")


FALLS = """
    MATCH_RECOGNIZE (PARTITION BY k ORDER BY at
    MEASURES CLASSIFIER() AS "</v>" ALL ROWS PER MATCH
    PATTERN (S D+) DEFINE D AS v < PREV(v))"""
TICKS = pa.table(
    {"at": pa.array([4, 3, 2, 1, 0, 9], pa.timestamp("s")), "k": list("aaabbb"), "v": [1, 2, 3, 4, 5, 6], "w": [{"t": None}] * 6}
)


def test_row_patterns_have_a_page_of_the_rows_of_their_result():
    profile = cep.Profile()
    page = Page(cep.report(TICKS, FALLS, profile=profile).html)
    found = cep.match(TICKS, FALLS)
    assert page.texts["query"].startswith("MATCH_RECOGNIZE (PARTITION BY k ORDER BY at\n")
    assert page.texts["summary"].startswith("6 rows, 2 matches, 5 rows in the result, ")
    assert "D: v < PREV(v), by rows at -1, 0" in page.texts["plan"]
    assert "ran        rows 6 → partitions 2 → matches 2" in page.texts["plan"]
    assert page.texts["bounds"].startswith("This page holds all rows, and no timelines (matches of rows are not drawn).")
    assert [column["name"] for column in page.data["columns"]] == found.column_names == ["k", "at", "</v>", "v", "w"]
    assert [row[2] for row in page.data["rows"]] == found.column("</v>").to_pylist()
    assert page.data["texts"]["1"] == [f"1970-01-01 00:00:0{second}" for second in (2, 3, 4, 0, 1)]
    assert (page.data["noun"], page.data["nouns"], page.data["timelines"]) == ("row", "rows", 0)
    assert [each["data-name"] for each in page.of("rect") if "data-name" in each] == ["rows", "matches"]
    assert set(profile.seconds) == {"columns", "order", "labels", "reach", "matching", "results"}


def test_of_row_patterns_bounds_are_kept_and_errors_are_those_of_match():
    page = Page(cep.report(TICKS, FALLS, rows=2).html)
    assert page.texts["bounds"].startswith("This page holds the first 2 of 5 rows, and no timelines")
    assert len(page.data["rows"]) == 2
    assert Page(cep.report(TICKS.slice(0, 0), cep.parse(FALLS)).html).texts["bounds"].startswith("There are no rows.")
    with pytest.raises(cep.PatternError, match="unknown column 'x'"):
        cep.report(TICKS, FALLS.replace("PREV(v)", "x"))
    with pytest.raises(cep.UnsupportedError, match=r"columns=.* is not supported for MATCH_RECOGNIZE"):
        cep.report(TICKS, FALLS, columns="v")


@pytest.mark.parametrize(
    ("query", "algorithm"),
    [(query, algorithm) for query in (QUERY, SITUATIONS, FALLS) for algorithm in ("auto", "brute_force")],
)
def test_a_page_shows_its_own_run_alone(query, algorithm):
    """Whatever runs the caller's profile holds, to which this one is added."""
    events = TICKS if query is FALLS else EVENTS
    profile, alone = cep.Profile(), cep.Profile()
    cep.match(EVENTS, "PATTERN SEQ(A a, B b)", profile=profile)
    before = dict(profile.counts)
    page = Page(cep.report(events, query, timelines=0, algorithm=algorithm, profile=profile).html)
    expected = Page(cep.report(events, query, timelines=0, algorithm=algorithm, profile=alone).html)
    told, wanted = (re.sub(r"[\d.]+ ms", "", each.texts["plan"]) for each in (page, expected))
    assert told == wanted
    assert page.texts["summary"].rpartition(", ")[0] == expected.texts["summary"].rpartition(", ")[0]
    assert page.of("rect") == expected.of("rect")
    assert profile.joins == alone.joins
    assert profile.counts == {name: before.get(name, 0) + alone.counts.get(name, 0) for name in dict.fromkeys([*before, *alone.counts])}


def test_row_patterns_by_the_definition_have_no_plan_and_no_counts():
    page = Page(cep.report(TICKS, FALLS, algorithm="brute_force").html)
    assert page.texts["summary"].startswith("6 rows, 5 rows in the result, ")
    assert page.texts["plan"].startswith("MATCH_RECOGNIZE (\n  PARTITION BY k")
    assert "algorithm" not in page.texts["plan"]
