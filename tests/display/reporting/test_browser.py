"""The page of a report in a browser: headless Chromium, without network."""

from __future__ import annotations

import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pyarrow as pa
import pytest

import gpu_cep as cep

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium: apt-get install chromium")

MATCHES = 60
EVENTS = pa.table({"ts": range(2 * MATCHES), "type": ["A", "B"] * MATCHES, "v": [v * 7 % 100 for v in range(2 * MATCHES)]})
QUERY = "PATTERN SEQ(A a, B b) WITHIN 1 RETURN a.v AS low, b.v AS high, a.type AS name"


@pytest.fixture(scope="module")
def html() -> str:
    return cep.report(EVENTS, QUERY, timelines=2).html


class Rendered(HTMLParser):
    """What a browser made of the page: the rows of the table of matches, and the dialog's text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.rows: list[int] = []
        self.open = False
        self.pictures = 0
        self._in_dialog = False
        self.words: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        if "data-match" in attributes:
            self.rows.append(int(attributes["data-match"] or 0))
        if tag == "dialog":
            self._in_dialog, self.open = True, "open" in attributes
        self.pictures += self._in_dialog and tag == "svg"

    def handle_endtag(self, tag):
        self._in_dialog = self._in_dialog and tag != "dialog"

    def handle_data(self, data):
        self.words.append(data.strip())

    @property
    def position(self):
        return next(words for words in self.words if re.search(r"matches, page", words))


def rendered(tmp_path: Path, html: str, address: str = "", script: str = "") -> Rendered:
    """The page at `address`, after a `script` of what a user does."""
    path = tmp_path / "report.html"
    path.write_text(html.replace("</body>", f"<script>{script}</script></body>"), encoding="utf-8")
    command = [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom"]
    run = subprocess.run([*command, f"{path.as_uri()}{address}"], capture_output=True, text=True, check=True, timeout=120)
    return Rendered(run.stdout)


def typed(selector: str, text: str) -> str:
    return f"{{const box = document.querySelector({selector!r}); box.value = {text!r}; box.dispatchEvent(new Event('input'));}}"


def clicked(selector: str) -> str:
    return f"document.querySelector({selector!r}).click();"


def test_the_table_is_paged(tmp_path, html):
    first = rendered(tmp_path, html)
    assert first.rows == list(range(25))
    assert first.position == "60 matches, page 1 of 3"
    assert not first.open
    last = rendered(tmp_path, html, script=clicked("#forth") * 5)
    assert last.rows == list(range(50, 60))
    assert last.position == "60 matches, page 3 of 3"


def test_words_and_columns_filter_the_table(tmp_path, html):
    low = EVENTS["v"].to_pylist()[::2]
    few = [number for number, value in enumerate(low) if value > 90]
    assert rendered(tmp_path, html, script=typed("#matches th:nth-child(4) input", "> 90")).rows == few
    assert rendered(tmp_path, html, "#filter=no+such+words").position == "0 matches, page 1 of 1"
    worded = rendered(tmp_path, html, script=typed("#filter", f"A {low[7]}"))
    assert 7 in worded.rows
    assert len(worded.rows) < 25


def test_whole_events_are_shown_short_and_found_by_all_that_they_hold(tmp_path):
    query = "PATTERN SEQ(A a, B b) WHERE b.v <> a.v WITHIN 1"
    html = cep.report(EVENTS, query, timelines=0).html
    first, last = (f"{2 * MATCHES - 2 + number} v={EVENTS['v'][2 * MATCHES - 2 + number]}" for number in range(2))
    assert {first, last} <= set(rendered(tmp_path, html, "#filter=" + first.replace(" ", "+")).words)
    assert rendered(tmp_path, html, script=typed("#matches th:nth-child(4) input", first)).rows == [MATCHES - 1]
    assert rendered(tmp_path, html, script=typed("#matches th:nth-child(4) input", '"ts": 4,')).rows == [2]


def test_a_column_sorts_the_table(tmp_path, html):
    low = EVENTS["v"].to_pylist()[::2]
    ascending = sorted(range(MATCHES), key=lambda number: (low[number], number))
    by_low = clicked("#matches th:nth-child(4) button")
    assert rendered(tmp_path, html, script=by_low).rows == ascending[:25]
    descending = sorted(range(MATCHES), key=lambda number: (-low[number], number))
    assert rendered(tmp_path, html, script=by_low * 2).rows == descending[:25]


def test_nulls_are_sorted_last_either_way(tmp_path):
    events = pa.table({"ts": range(3), "v": [2, None, 10]})
    html = cep.report(events, "PATTERN x RETURN x.v AS v", timelines=0).html
    by_v = clicked("#matches th:nth-child(4) button")
    assert rendered(tmp_path, html, script=by_v).rows == [0, 2, 1]
    assert rendered(tmp_path, html, script=by_v * 2).rows == [2, 0, 1]


def test_a_row_opens_its_timeline(tmp_path, html):
    clicked_row = rendered(tmp_path, html, script=clicked("tr[data-match='1']"))
    assert clicked_row.open
    assert clicked_row.pictures == 1
    assert "match 1" in clicked_row.words
    assert any(words.startswith("match 1, one of 60") for words in clicked_row.words)
    linked = rendered(tmp_path, html, "#match=0")
    assert linked.open
    assert linked.pictures == 1


def test_a_row_without_timeline_says_so(tmp_path, html):
    stepped = rendered(tmp_path, html, "#match=1", script=clicked("#later"))
    assert stepped.open
    assert stepped.pictures == 0
    assert "match 2" in stepped.words
    assert "This page holds 2 timelines, none of this match." in stepped.words


def test_rows_of_row_patterns_are_called_rows(tmp_path):
    text = "MATCH_RECOGNIZE (ORDER BY ts MEASURES CLASSIFIER() AS c ALL ROWS PER MATCH PATTERN (S U+) DEFINE U AS v > PREV(v))"
    html = cep.report(EVENTS, text).html
    rows = cep.match(EVENTS, text).num_rows
    opened = rendered(tmp_path, html, "#row=1")
    assert opened.rows == list(range(25))
    assert opened.open
    assert "row 1" in opened.words
    assert f"{rows} rows, page 1 of {-(-rows // 25)}" in opened.words
    assert rendered(tmp_path, html, script=typed("#filter", "no such words")).rows == []
