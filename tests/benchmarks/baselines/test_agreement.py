"""The benchmarks' C++ loops and the library find the same matches; so the figures compare like with like."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest

from benchmarks.baselines import measure
from benchmarks.workloads.questions import WORKLOADS

EVENTS = 20_000

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="the C++ loops need g++")


@pytest.mark.parametrize(("name", "streams"), [("medical", 300), ("medical_pair", 300), ("stocks", 50), ("stocks", 2)])
@pytest.mark.parametrize("smallest_gap", [0, 1])
def test_streams(name: str, streams: int, smallest_gap: int) -> None:
    workload = replace(WORKLOADS[name], smallest_gap=smallest_gap)
    case = measure.Case(workload, EVENTS, streams)
    events = measure.events_of(case)
    assert measure.peer(case, events, "count").matches > 0
    measure.check_agreement(case, events)


@pytest.mark.parametrize("name", ["selective", "selective_plain"])
def test_one_stream(name: str) -> None:
    case = measure.Case(replace(WORKLOADS[name], smallest_gap=0), EVENTS, 1)
    events = measure.events_of(case)
    assert measure.peer(case, events, "count").matches > 0
    measure.check_agreement(case, events)
