"""The memory that a result takes is bounded by what is free, all copies included."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import gpu_cep as cep
from gpu_cep.engine import run
from gpu_cep.engine.accounting import match_budget
from gpu_cep.engine.input import buffers
from gpu_cep.engine.output.footprint import _OFFSET, _decoded_bytes
from gpu_cep.errors import MatchLimitExceeded

ANY = {"strategy": "skip_till_any_match"}
FORMS = {
    "indices": {"output": "indices"},
    "matches": {"output": "matches"},
    "chosen columns": {"output": "matches", "columns": ["x"]},
    "events": {"output": "events"},
    "events of a long name": {"output": "events", "name": 100 * "a"},
    "lists": {"output": "matches", "returns": "RETURN a, a.text AS texts"},
    "aggregates": {"output": "matches", "returns": "RETURN sum(a.x) AS s, max(a.text) AS t, avg(a.x) * 2 AS d, count(a) AS n"},
}


def events(count):
    return pa.table({"ts": range(count), "x": range(count), "text": [f"text {i}" for i in range(count)]})


def subsets(count, output, returns="", name="a", **options):
    """All 2 ** count − 1 subsets of the events."""
    return cep.match(events(count), f"PATTERN {name}+ {returns}", output=output, **options, **ANY)


@pytest.fixture
def traced(monkeypatch):
    """Let NumPy take all memory of arrays: tracemalloc sees NumPy's memory, not Arrow's."""
    monkeypatch.setattr(buffers, "_MANY", 1 << 62)


@pytest.mark.usefixtures("traced")
@pytest.mark.parametrize("form", FORMS)
def test_the_footprint_covers_the_peak(form, monkeypatch):
    budgets = []

    class Recorded(match_budget.Budget):
        def __init__(self, *arguments, **keywords):
            super().__init__(*arguments, **keywords)
            budgets.append(self)

    monkeypatch.setattr(match_budget, "Budget", Recorded)
    # what is compiled on the way is none of the result's memory
    subsets(16, **FORMS[form])
    tracemalloc.start()
    try:
        table = subsets(16, **FORMS[form])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert table.num_rows >= 2**16 - 1
    # tracemalloc sees no memory of the result
    assert max(peak, table.nbytes) < budgets[-1].bytes < 4 * (peak + table.nbytes)


@pytest.mark.parametrize("rows", [0, 3, 400_000])
def test_the_length_of_text_is_estimated_by_rows_of_all_chunks(rows: int) -> None:
    """Where rows are many, those of a sample say how long the texts are that codes stand for."""
    texts = pa.array(["", "view", "a text that is longer than others"])
    random = np.random.default_rng(rows)
    chunks = [
        pa.DictionaryArray.from_arrays(pa.array(random.choice(3, size, p=shares), pa.int32(), mask=random.random(size) < 0.1), texts)
        for size, shares in ((rows // 4, (1, 0, 0)), (rows // 2, (0.2, 0.5, 0.3)), (rows - rows // 4 - rows // 2, (0, 0, 1)))
    ]
    column = pa.chunked_array(chunks)
    total = pc.sum(pc.binary_length(column.cast(pa.string()))).as_py() or 0
    assert _decoded_bytes(column) == pytest.approx(_OFFSET + total / max(1, rows), rel=0.03, abs=1)


@pytest.mark.parametrize("form", FORMS)
def test_what_does_not_fit_the_free_memory_is_refused(form, monkeypatch):
    monkeypatch.setattr(match_budget, "free_memory", lambda: 2**24)
    with pytest.raises(MatchLimitExceeded, match=r"takes more than 0\.0 GiB; use output='count' .*, in the window that starts at ts=0"):
        subsets(22, **FORMS[form])
    assert subsets(10, **FORMS[form]).num_rows >= 2**10 - 1


@pytest.mark.usefixtures("traced")
def test_one_long_match_per_event_is_refused_before_it_is_built(monkeypatch):
    monkeypatch.setattr(match_budget, "free_memory", lambda: 2**30)
    tracemalloc.start()
    try:
        with pytest.raises(MatchLimitExceeded, match=r"takes more than 0\.8 GiB"):
            cep.match(pa.table({"ts": range(20_000)}), "PATTERN a+", output="indices")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2**27


def test_concurrent_runs_share_the_memory(monkeypatch):
    monkeypatch.setattr(match_budget, "free_memory", lambda: 1000)
    assert match_budget.memory_for_results(1) == int(1000 * match_budget.MEMORY_SHARE)
    assert match_budget.memory_for_results(4) == match_budget.memory_for_results(1) // 4


@pytest.mark.parametrize(
    ("stage", "message"), [("spread", "out of memory while matching; use"), ("match_table", "while building the result of 3 matches; use")]
)
@pytest.mark.parametrize("error", [MemoryError, pa.ArrowMemoryError])
def test_memory_that_runs_out_all_the_same_is_said(stage, message, error, monkeypatch):
    def exhausted(*arguments, **keywords):
        raise error("malloc of size 42 failed")

    monkeypatch.setattr(run, stage, exhausted)
    with pytest.raises(MatchLimitExceeded, match=message):
        subsets(2, "matches")
