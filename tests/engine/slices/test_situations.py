"""Situations in files that are matched slice by slice are those of the table: of any files, cuts and options."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

import gpu_cep as cep
from tests.conformance.test_untimed_events import holes
from tests.drawn.situations import Size, situation_cases
from tests.effort import examples
from tests.engine.input.files import files_of, told
from tests.engine.slices.test_slices import OUTPUTS, in_slices

CASES = situation_cases(Size(events=24, names=3)).filter(lambda case: "WITHIN" in case.text)


@examples(60, 2_000)
@given(CASES, st.sampled_from(OUTPUTS), st.integers(2, 8), st.data())
def test_slices_answer_as_the_table_does(case, output, number, data):
    events, options = case.events, {}
    if data.draw(st.booleans()):
        events = events.sort_by("ts")
    nulls = data.draw(st.sampled_from((None, None, "error", "drop")))
    if nulls is not None:
        events, _ = data.draw(holes(events, "ts"))
        options["nulls"] = nulls
    group, cut = data.draw(st.sampled_from((1, 1, 2, 3))), data.draw(st.integers(0, events.num_rows))
    files = files_of(events, group, cut, data.draw(st.sampled_from(("file", "folder", "glob", "dataset"))))
    with files as (given_, table):
        expected = told(table, case, output=output, **options)
        with in_slices(number, sorts=data.draw(st.booleans())):
            assert told(given_, case, output=output, **options) == expected


# `on` holds for the first half of each ten events, and `odd` for two events at a time, of two keys in turn
STEPS = pa.table(
    {
        "ts": range(400),
        "k": ["x", "y"] * 200,
        "on": [step % 10 < 5 for step in range(400)],
        "odd": [step // 4 % 2 == 1 for step in range(400)],
    }
)
QUERY = "PARTITION BY k DEFINE P AS on, Q AS odd PATTERN P overlaps Q; Q overlaps P WITHIN 30"


@pytest.fixture
def steps(tmp_path: Path) -> str:
    parquet.write_table(STEPS, tmp_path / "steps.parquet", row_group_size=10)
    return str(tmp_path / "steps.parquet")


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("detect", ["final", "early"])
def test_a_run_holds_no_more_than_it_may(steps, output, detect, monkeypatch):
    monkeypatch.setattr("gpu_cep.engine.input.readers._MANY_ROWS", 0)
    profile = cep.Profile()
    found = cep.match(steps, QUERY, memory=16_000, output=output, detect=detect, profile=profile)
    whole = cep.Profile()
    assert found.equals(cep.match(STEPS, QUERY, output=output, detect=detect, profile=whole))
    assert found.num_rows
    # a match that two slices find counts once
    assert profile.counts["matches"] == whole.counts["matches"] > 0
    assert profile.slices is not None
    assert profile.slices[0] > 2


def test_a_situation_of_many_slices_begins_once(tmp_path, monkeypatch):
    monkeypatch.setattr("gpu_cep.engine.input.readers._MANY_ROWS", 0)
    long = STEPS.set_column(2, "on", pa.array([step > 7 for step in range(400)]))
    parquet.write_table(long, tmp_path / "long.parquet", row_group_size=10)
    profile = cep.Profile()
    query = "DEFINE P AS on, Q AS odd PATTERN P before Q; P contains Q; P overlaps Q; P starts Q; Q starts P; P equals Q WITHIN 30"
    options = {"detect": "early", "output": "indices"}
    found = cep.match(tmp_path / "long.parquet", query, memory=9_000, profile=profile, **options)
    assert profile.slices is not None
    assert profile.slices[0] > 1
    assert found.equals(cep.match(long, query, **options))
    assert {rows[0] for rows in found["P"].to_pylist()} == {8}


@pytest.mark.parametrize("detect", ["final", "early"])
@pytest.mark.parametrize("output", OUTPUTS)
def test_a_gap_ends_a_situation_however_late_the_next_event_comes(tmp_path, output, detect, monkeypatch):
    monkeypatch.setattr("gpu_cep.engine.input.readers._MANY_ROWS", 0)
    # x is silent from 105 on, and heard of once more at the end; y is never heard of again
    silent = STEPS.filter((pc.field("k") == "y") & (pc.field("ts") < 300) | (pc.field("ts") < 105) | (pc.field("ts") == 398))
    parquet.write_table(silent, tmp_path / "silent.parquet", row_group_size=10)
    profile, options = cep.Profile(), {"output": output, "detect": detect, "gap": 4}
    query = "PARTITION BY k DEFINE P AS on, Q AS odd PATTERN P overlaps Q; P before Q; Q before P; P equals Q; Q starts P WITHIN 30"
    found = cep.match(tmp_path / "silent.parquet", query, memory=9_000, profile=profile, **options)
    assert found.num_rows
    assert found.equals(cep.match(silent, query, **options))
    assert profile.slices is not None
    assert profile.slices[0] > 2


def test_of_events_of_one_time_the_last_in_order_is_carried(tmp_path, monkeypatch):
    monkeypatch.setattr("gpu_cep.engine.input.readers._MANY_ROWS", 0)
    # of the two events of each time, the one that `n` puts last stands first
    on, odd = [row % 2 == 0 or row // 2 % 2 == 0 for row in range(200)], [row // 2 % 4 == 1 for row in range(200)]
    tied = pa.table({"ts": [row // 2 for row in range(200)], "n": [1, 0] * 100, "on": on, "odd": odd})
    parquet.write_table(tied, tmp_path / "tied.parquet", row_group_size=10)
    query = "DEFINE P AS on, Q AS odd PATTERN P before Q; P overlaps Q; P starts Q; P during Q; P equals Q WITHIN 9"
    profile, options = cep.Profile(), {"order_by": "n", "output": "indices"}
    found = cep.match(tmp_path / "tied.parquet", query, memory=4_000, profile=profile, **options)
    assert found.equals(cep.match(tied, query, **options))
    assert found.num_rows
    assert profile.slices is not None
    assert profile.slices[0] > 2


def test_of_events_in_no_order_the_last_in_time_is_carried(tmp_path, monkeypatch):
    monkeypatch.setattr("gpu_cep.engine.input.readers._MANY_ROWS", 0)
    # each row group ends with its first event: `on` holds for it, and not for the last one
    turned = STEPS.take([row - row % 10 + 9 - row % 10 for row in range(400)])
    parquet.write_table(turned, tmp_path / "turned.parquet", row_group_size=10)
    query = "DEFINE P AS on, Q AS odd PATTERN P before Q; P overlaps Q; Q overlaps P WITHIN 30"
    profile = cep.Profile()
    found = cep.match(tmp_path / "turned.parquet", query, memory=4_000, output="indices", profile=profile)
    assert found.equals(cep.match(turned, query, output="indices"))
    assert found.num_rows
    assert profile.slices is not None
    assert profile.slices[0] > 2
