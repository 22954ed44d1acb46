"""Matches that labels decide, counted on the device by states: the same numbers as on the CPU, and none is enumerated."""

from __future__ import annotations

from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_cep
from gpu_cep.engine.phase_one.device import counted_matches, in_pieces, on_device
from gpu_cep.engine.phase_one.device.card_memory import memory_of
from gpu_cep.engine.windows import state_counts
from tests.conformance.expectation import expected
from tests.drawn.queries import label_cases
from tests.gpu.pieces import PIECES

ANY = {"strategy": "skip_till_any_match", "output": "count"}


def counted(engine, events, text, **options):
    return gpu_cep.match(events, text, engine=engine, **{**ANY, **options})


def events_of(types, times=None):
    return pa.table({"ts": range(len(types)) if times is None else times, "type": list(types)})


@given(label_cases(), st.none() | PIECES, st.sampled_from([1, 2, 16]))
def test_same_counts(case, pieces, least):
    expected(case)  # not too many to count
    of = memory_of if pieces is None else lambda device, plan: pieces
    with patch.object(in_pieces, "memory_of", of), patch.object(state_counts, "_LEAST", least):
        found = counted("gpu", case.events, case.text, **case.options)
    wanted = counted("cpu", case.events, case.text, **case.options)
    assert repr(found.to_pylist()) == repr(wanted.to_pylist())  # NaN equals NaN


@pytest.mark.parametrize("text", ["SEQ(A a, B b, C c)", "SEQ(A a+, B b{2,3})", "AND(A a, B b+)", "SEQ(a, b, c)"])
@pytest.mark.parametrize("ties", ["strict", "position"])
def test_the_device_leaves_nothing(text, ties):
    events, profile = events_of("ABCAB" * 20, [e // 2 for e in range(100)]), gpu_cep.Profile()
    wanted = counted("cpu", events, f"PATTERN {text} WITHIN 7", ties=ties)
    with patch.object(on_device, "_find_candidates", side_effect=AssertionError):
        found = counted("gpu", events, f"PATTERN {text} WITHIN 7", ties=ties, profile=profile)
    assert found.equals(wanted)
    assert "candidates back" in profile.seconds
    assert profile.counts["matches"] == found["count"][0].as_py() > 0


def test_without_room_the_cpu_counts():
    events, text = events_of("ABC" * 20), "PATTERN SEQ(A a, B b) WITHIN 7"
    candidates = patch.object(on_device, "_find_candidates", wraps=on_device._find_candidates)
    with patch.object(counted_matches, "_CANDIDATE", 1 << 60), candidates as left:
        found = counted("gpu", events, text)
    assert left.call_count == 1
    assert found.equals(counted("cpu", events, text))


@pytest.mark.parametrize("size", [62, 63, 64, 200])
def test_counts_that_fit_and_that_do_not(size):
    events = events_of("A" * size)
    if size == 62:
        assert counted("gpu", events, "PATTERN A a+ WITHIN 1000")["count"].to_pylist() == [2**62 - 1]
        return
    with pytest.raises(gpu_cep.MatchLimitExceeded, match="does not fit a 64-bit count"):
        counted("gpu", events, "PATTERN A a+ WITHIN 1000")


@pytest.mark.parametrize("most", [0, 3, 29])
def test_max_matches_names_the_same_window(most):
    events, messages = events_of("AAAABAAAAB" * 5), []
    for engine in ("cpu", "gpu"):
        with pytest.raises(gpu_cep.MatchLimitExceeded) as raised:
            counted(engine, events, "PATTERN SEQ(A a, B b) WITHIN 3", max_matches=most)
        messages.append(str(raised.value))
    assert messages[0] == messages[1]
