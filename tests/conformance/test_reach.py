"""Random queries over events in order of time, of which only what rare ones reach is kept, against the oracle."""

from __future__ import annotations

import math
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_cep.engine.phase_one import on_cpu, rare_events
from gpu_cep.plan.settings import EVENT_ALGORITHMS, PRUNING_STEPS
from tests.conformance.expectation import answered, expected
from tests.conformance.test_conformance import applicable
from tests.drawn.queries import AFTER_MATCH, trend_cases, whole_language
from tests.effort import examples
from tests.results import matches_of

thoroughly = examples(200, 1_000)
CASES = st.one_of(whole_language(), whole_language(max_size=30), trend_cases(after_match=AFTER_MATCH))
THREADS = st.integers(1, 3)


@pytest.fixture(autouse=True)
def _always_tried(monkeypatch):
    """Any number of events is enough, and nothing is promised too little."""
    monkeypatch.setattr(rare_events, "_SAMPLES", 2)
    monkeypatch.setattr(rare_events, "_SAMPLE_ROWS", 1)
    monkeypatch.setattr(rare_events, "_LOOK", -math.inf)
    monkeypatch.setattr(rare_events, "BLOCK", 8)


@st.composite
def stretched(draw, cases=CASES):
    """A case with its events in order of time, and long pauses between some of them."""
    case = draw(cases)
    events = case.events.sort_by("ts")
    times, kind = events["ts"].combine_chunks(), events["ts"].type
    values = times.view(f"float{kind.bit_width}" if pa.types.is_floating(kind) else f"int{kind.bit_width}").to_numpy()
    pauses = np.cumsum(draw(st.lists(st.sampled_from((0, 0, 1)), min_size=len(values), max_size=len(values))))
    if len(values) and abs(float(values[0])) < 2**60 > abs(float(values[-1])):
        paused = values + pauses.astype(values.dtype) * (values[-1] - values[0])
        events = events.set_column(events.schema.get_field_index("ts"), events.schema.field("ts"), pa.array(paused).view(kind))
    return replace(case, events=events)


STRETCHED = stretched()


@thoroughly
@given(STRETCHED, THREADS)
def test_same_matches(case, threads):
    wanted = expected(case)
    assert matches_of(answered(case, output="indices", threads=threads)) == wanted
    assert sum(row["count"] for row in answered(case, output="count", threads=threads).to_pylist()) == len(wanted)


@given(STRETCHED, THREADS, st.sets(st.sampled_from(PRUNING_STEPS)).map(lambda steps: sorted({"reach", *steps})))
def test_same_matches_with_other_steps(case, threads, prune):
    wanted = expected(case)
    assert matches_of(answered(case, output="indices", prune=prune, threads=threads)) == wanted


@given(STRETCHED, st.data())
def test_same_matches_by_every_algorithm(case, data):
    wanted = expected(case)
    algorithm = data.draw(st.sampled_from([name for name in applicable(case) if name in EVENT_ALGORITHMS]))
    assert matches_of(answered(case, output="indices", algorithm=algorithm)) == wanted


@given(CASES, THREADS)
def test_same_matches_of_events_in_any_order(case, threads):
    wanted = expected(case)
    assert matches_of(answered(case, output="indices", threads=threads)) == wanted


@pytest.mark.usual
def test_cases_are_pruned():
    """The properties above would hold of a step that is never taken."""
    dropped = []

    def counted(plan, columns, tables, times, threads):
        labelled = rare_events.label_near_rare(plan, columns, tables, times, threads)
        if labelled is not None:
            alone = on_cpu.label_events(plan, columns, threads)
            dropped.append(sum(map(len, alone.rows)) - sum(map(len, labelled.rows)))
        return labelled

    @given(STRETCHED)
    @settings(max_examples=200, database=None, derandomize=True)
    def run(case):
        answered(case, output="count")

    with patch.object(on_cpu, "label_near_rare", counted):
        run()
    assert sum(number > 0 for number in dropped) > 10
    assert min(dropped) >= 0
