"""The C++ loops of the kinds of questions and the library find the same matches, and the page shows the worst ratio first."""

from __future__ import annotations

import json
import shutil
import time
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import gpu_cep
from benchmarks.baselines.environment import environment
from benchmarks.baselines.measure import Disagreement
from benchmarks.kinds import run, small_calls
from benchmarks.kinds.agreement import check_rows, in_one_order
from benchmarks.kinds.events import SECOND, make, plain_types, through_parquet
from benchmarks.kinds.forms import BASE, FORMS, TABLES, forms_of
from benchmarks.kinds.loops import loop_of
from benchmarks.kinds.measure import LOOP, TAKEN, TWO_LOOPS, Contestant, ShortestTimes, check, in_turns, measured
from benchmarks.kinds.questions import KINDS, Kind
from benchmarks.kinds.report import PACKAGES, markdown

EVENTS = 20_000
FEW = {"situations_few"}

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="the C++ loops need g++")
each_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


@pytest.fixture(scope="module")
def made() -> dict[str, pa.Table]:
    return {name: make(kind.workload, kind.shape, EVENTS) for name, kind in KINDS.items()}


@each_kind
def test_rows(kind: Kind, made: dict[str, pa.Table]) -> None:
    events = made[kind.name]
    theirs = loop_of(kind, events).rows()
    assert len(theirs) > (0 if kind.name in FEW else 20)
    chunked = through_parquet(events, EVENTS // 7)
    assert chunked["ts"].num_chunks > 7
    check_rows(kind, FORMS[BASE].answer(kind, chunked), theirs)
    check_rows(kind, gpu_cep.match(events, kind.text(EVENTS), output="indices", prune=False, threads=1, **kind.options), theirs)
    if kind.labels:
        check_rows(kind, loop_of(kind, plain_types(events)).rows(), theirs)


@each_kind
def test_forms(kind: Kind, made: dict[str, pa.Table]) -> None:
    tables = {name: TABLES[name](made[kind.name]) for name in {form.table for form in forms_of(kind).values()}}
    assert check(kind, tables, {LOOP: loop_of(kind, made[kind.name])}) > 0


@each_kind
def test_events(kind: Kind, made: dict[str, pa.Table]) -> None:
    """They are the same whenever they are made, and have what the kind says of ties and of names that are one word."""
    events = made[kind.name]
    assert events.equals(make(kind.workload, kind.shape, EVENTS))
    assert (SECOND in events.column_names) == bool(kind.define)
    groups = ["ts", *(["key"] if kind.keyed else [])]
    ties = len(events.group_by(groups).aggregate([])) < EVENTS
    assert ties == (kind.workload.smallest_gap == 0)
    assert all(len(label) <= 8 for label in kind.labels)


def test_disagreement_is_found(made: dict[str, pa.Table]) -> None:
    kind = KINDS["or_of_two"]
    rows = loop_of(kind, made[kind.name]).rows()
    assert rows["a"].null_count > 0
    turned = rows.take(pa.array(range(len(rows) - 1, -1, -1)))
    assert in_one_order(kind, turned).equals(in_one_order(kind, rows))
    with pytest.raises(Disagreement):
        check_rows(kind, rows.slice(1), rows)
    with pytest.raises(Disagreement):
        check_rows(kind, rows.set_column(1, "b", rows["d"]), rows)


def test_worst_stands_first() -> None:
    found = [measured(KINDS[name], 5_000, 1) for name in ("selective_prices", "rise_fall")]
    assert found[1].ratio("plain types") is None
    assert all(each.seconds[TAKEN].wall > 0 for each in found)
    found[0] = replace(found[0], seconds=found[0].seconds | {LOOP: ShortestTimes(1.0, 1.0), TWO_LOOPS: ShortestTimes(1.25, 2.0)})
    assert found[0].second_core == 1.6
    page = markdown(environment(PACKAGES), found, 1)
    assert any(line.startswith(f"| {found[0].kind} |") and line.endswith("| 1.60 |") for line in page.splitlines())
    worst = min(found, key=lambda each: each.ratio(BASE) or 0)
    lines = page.splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("| ---")) + 1
    assert lines[first].startswith(f"| {worst.kind} |")
    assert f"worst {worst.ratio(BASE):.2f} ({worst.kind})" in page


def test_contestants_take_turns_and_the_shortest_run_counts() -> None:
    runs: list[str] = []
    pauses = iter([0.05, 0.0, 0.05, 0.05])
    slow = Contestant(lambda: (runs.append("slow"), time.sleep(next(pauses))), lambda answer: runs.append("dropped"), tries=2)
    found = in_turns([slow, Contestant(lambda: runs.append("quick"))], 2)
    assert runs == ["slow", "dropped", "slow", "dropped", "quick"] * 2
    assert found[0].wall < 0.05


def test_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main(["--kinds", "label_runs", "--events", "5000", "--repeats", "1", "--folder", str(tmp_path)]) == 0
    record = json.loads(next(tmp_path.glob("kinds-*.json")).read_text())
    assert set(record["kinds"][0]["ratios"]) >= set(FORMS)
    assert next(tmp_path.glob("kinds-*.md")).read_text() in capsys.readouterr().out


def test_small_calls(capsys: pytest.CaptureFixture[str]) -> None:
    """Each kind has a line with what a call takes, and the last one has the medians."""
    assert small_calls.main(["--events", "200", "--kinds", "next_kleene", "situations_few", "--rounds", "1"]) == 0
    _, *lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["next_kleene", "situations_few", "median"]
    figures = [[float(figure.replace(",", "")) for figure in line.split()[1:]] for line in lines]
    assert all(figure > 0 for row in figures for figure in row)
    for one, other, middle, last_digit in zip(*figures, (0.001, 0.001, 1), strict=True):
        assert middle == pytest.approx((one + other) / 2, abs=last_digit)
