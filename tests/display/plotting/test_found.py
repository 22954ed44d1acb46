"""What one run finds: the table that match() gives, and the rows that timelines are drawn of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest

import gpu_cep as cep
from gpu_cep.display.plotting import found
from gpu_cep.keywords import read_keywords
from gpu_cep.queries.plans import make_plan
from gpu_cep.queries.runs import MatchCall

EVENTS = pa.table(
    {
        "ts": range(8),
        "type": list("ABBACBAB"),
        "k": list("xxyyxxyy"),
        "v": pa.array([1, 2, None, 4, 5, 6, 7, 8]),
    }
)
DEFINE = "DEFINE P AS type = 'A', Q AS type = 'B' PATTERN P before Q; P meets Q"
QUERIES: dict[str, tuple[str, dict[str, Any]]] = {
    "whole events": ("PATTERN SEQ(A a, B b+)", {}),
    "some columns": ("PATTERN SEQ(A a, B b+)", {"columns": ("v", "k")}),
    "absent variables": ("PATTERN SEQ(A a, OR(B b, C c?))", {}),
    "a stream key": ("PARTITION BY k PATTERN SEQ(A a, B b+)", {"after_match": "skip_to_next"}),
    "items": ("PATTERN SEQ(A a, B b+) RETURN a.v, count(b), b, a.v + 1, last(b.k) AS ______", {}),
    "brute force": ("PATTERN SEQ(A a, B b+) RETURN b.v AS v", {"algorithm": "brute_force"}),
    "situations": (DEFINE, {}),
    "situations, early": (f"PARTITION BY k {DEFINE}", {"detect": "early"}),
    "items of situations": (f"{DEFINE} RETURN avg(P.v), start(Q) AS begun, P", {}),
}


def findings(text: str, given: Mapping[str, Any], **how: Any) -> found.Findings:
    options, settings = read_keywords({"engine": "cpu", **given})
    plan = make_plan(text, EVENTS.schema, options, settings)
    return found.find_with_rows(plan, MatchCall(text, options, settings, threads=1), EVENTS, **how)


@pytest.mark.parametrize("name", QUERIES)
def test_one_run_gives_what_match_returns_and_the_rows_of_it(name: str) -> None:
    text, given = QUERIES[name]
    seen = findings(text, given)
    expected = cep.match(EVENTS, text, **given)
    assert seen.returned.equals(expected)
    assert expected.num_rows > 1
    without = findings(text, given, returned=False)
    assert without.bound.equals(seen.bound)
    if "DEFINE" in text:
        return
    indices = cep.match(EVENTS, text, output="indices", **{key: value for key, value in given.items() if key != "columns"})
    assert seen.bound.to_pydict() == dict(zip(seen.bound.column_names, indices.to_pydict().values(), strict=True))


def test_a_report_runs_its_query_once(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = []
    monkeypatch.setattr(found, "run_plan", lambda *given, _run=found.run_plan, **how: ran.append(1) or _run(*given, **how))
    profile = cep.Profile()
    report = cep.report(EVENTS, "PATTERN SEQ(A a, B b+)", profile=profile, timelines=2)
    assert len(ran) == 1
    assert profile.counts["events"] == EVENTS.num_rows
    assert report.html.count("<template id=") == 2
