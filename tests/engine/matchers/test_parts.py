"""One window over a whole stream: one batch, whose starts are divided among threads."""

from __future__ import annotations

import threading
from functools import partial

import numpy as np
import pyarrow as pa
import pytest

import gpu_cep as cep
from gpu_cep.engine.events import batches
from gpu_cep.engine.matchers.automaton.two_phase import TwoPhase
from gpu_cep.engine.matchers.joins import workplace
from gpu_cep.engine.matchers.lazy.enumeration import ChainEnumeration
from gpu_cep.engine.matchers.nfab import buffer_paths
from gpu_cep.engine.windows import candidates
from gpu_cep.errors import EventError, MatchLimitExceeded, UnsupportedError

SIZE = 3_000
PATTERNS = [
    "SEQ(A a, B b, C c) WHERE a.x < b.x AND b.x < c.x WITHIN 2000",
    "SEQ(A a, B b+, C c) WHERE b[i].x > b[i-1].x AND c.x > a.x WITHIN 2000",
    "SEQ(A a, B b, C c) WITHIN 2000",
    "SEQ(AND(A a, B b), OR(C c, D d)) WHERE a.x < b.x WITHIN 2000",
    "SEQ(A a, ~D d, B b) WHERE d.x > a.x WITHIN 2000",
]
RANDOM = np.random.default_rng(3)
TYPES = RANDOM.choice(list("ABCD"), SIZE)
EVENTS = pa.table({"ts": np.arange(SIZE), "type": TYPES, "x": RANDOM.random(SIZE), "k": np.arange(SIZE) % 3 - 1})


def found(pattern, events=EVENTS, output="indices", **options):
    return cep.match(events, f"PATTERN {pattern}", output=output, algorithm="ses_automaton", **options)


@pytest.fixture
def working(monkeypatch):
    """The threads that were at work on parts, of a batch of a hundred events or more."""
    working = []
    candidates_of = TwoPhase._candidates

    def watched(self, windows, direct):
        working.append(threading.get_ident())
        return candidates_of(self, windows, direct)

    monkeypatch.setattr(candidates, "BATCH", 100)
    monkeypatch.setattr(candidates, "_EVENTS_PER_PART", 50)
    monkeypatch.setattr(TwoPhase, "_candidates", watched)
    return working


@pytest.mark.parametrize("strategy", ["skip_till_next_match", "robust_skip_till_next_match", "partition_contiguity"])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_parts_find_what_the_whole_does(pattern, strategy, monkeypatch, request):
    # without the steps that read contiguous matches off labels
    find = partial(found, pattern, strategy=strategy, prune=("filter", "chain"))
    wanted, counted = find(threads=1), find(output="count", threads=1)
    working = request.getfixturevalue("working")
    assert wanted.num_rows > 0
    for threads in (1, 2, 3):
        assert find(threads=threads).equals(wanted)
        assert find(output="count", threads=threads).equals(counted)
    assert len(working) >= 3 * 2 * 30


@pytest.fixture
def meeting(monkeypatch):
    """Lets the first two threads that call a function wait for each other, in batches of a hundred events or more; returns who called."""
    callers, both = [], threading.Barrier(2, timeout=300)

    def watch(owner, name):
        called = getattr(owner, name)

        def waiting(*args, **options):
            if threading.get_ident() not in callers:
                callers.append(threading.get_ident())
                both.wait()
            return called(*args, **options)

        monkeypatch.setattr(candidates, "BATCH", 100)
        monkeypatch.setattr(candidates, "_EVENTS_PER_PART", 50)
        monkeypatch.setattr(owner, name, waiting)
        return callers

    return watch


def assert_shared(meeting, owner, name, pattern, **options):
    """Two threads find together what one does alone."""
    find = partial(cep.match, EVENTS, f"PATTERN {pattern.replace('2000', '40')}", **options)
    wanted, counted = find(output="indices", threads=1), find(output="count", threads=1)
    assert wanted.num_rows > 0
    callers = meeting(owner, name)
    assert find(output="indices", threads=2).equals(wanted)
    assert len(callers) == 2
    assert find(output="count", threads=2).equals(counted)


@pytest.mark.parametrize("algorithm", ["lazy_chain", "lazy_tree"])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_parts_of_pivots_find_what_the_whole_does(pattern, algorithm, meeting):
    assert_shared(meeting, ChainEnumeration, "advance", pattern, strategy="skip_till_any_match", algorithm=algorithm)


@pytest.mark.parametrize("strategy", ["skip_till_any_match", "skip_till_next_match", "partition_contiguity"])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_parts_of_a_buffer_hold_what_the_whole_does(pattern, strategy, meeting):
    assert_shared(meeting, buffer_paths, "enumerate_paths", pattern, strategy=strategy, algorithm="nfab")


@pytest.mark.parametrize("pattern", [*PATTERNS[2:4], "SEQ(A a, B b, AND(C c, D d)) WHERE a.k = b.k AND c.x + d.x > 1.0 WITHIN 2000"])
def test_threads_share_the_rows_of_a_join(pattern, meeting):
    assert_shared(meeting, workplace, "filter_partners", pattern, strategy="skip_till_any_match", algorithm="join_tree")


def test_threads_share_one_window(working, monkeypatch):
    """Each thread's first part waits until another thread has come to one: were there none, this would fail."""
    both = threading.Barrier(2, timeout=300)
    watched = TwoPhase._candidates

    def waiting(self, windows, direct):
        if threading.get_ident() not in working:
            working.append(threading.get_ident())
            both.wait()
        return watched(self, windows, direct)

    monkeypatch.setattr(TwoPhase, "_candidates", waiting)
    found(PATTERNS[0], threads=2)
    assert len(set(working)) == 2


def test_streams_of_many_events_share_the_threads(working):
    """Two batches, each divided: work that is spread spreads its own."""
    wanted = found(PATTERNS[0], threads=1, partition_by="k")
    assert found(PATTERNS[0], threads=2, partition_by="k").equals(wanted)


def test_limits_and_faults_name_their_window(working):
    with pytest.raises(MatchLimitExceeded, match="more than max_matches=100 matches, in the window that starts at ts="):
        found(PATTERNS[0], threads=2, max_matches=100)
    with pytest.raises(MatchLimitExceeded, match="more than max_steps=500 steps, in the window that starts at ts="):
        found(PATTERNS[0], threads=2, max_steps=500)
    huge = pa.array(np.where(np.arange(SIZE) == 1_700, 2**62, 1))
    events = EVENTS.append_column("y", huge).set_column(1, "type", pa.array(["A", "B"] * (SIZE // 2)))
    for threads in (1, 2):
        with pytest.raises(EventError, match=r"integer overflow in a.y \* 2 < b.y, in the window that starts at ts=1700 "):
            found("SEQ(A a, B b) WHERE a.y * 2 < b.y WITHIN 2000", events, threads=threads)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_streams_of_more_events_than_can_be_numbered_are_cut(monkeypatch, pattern):
    pattern = pattern.replace("2000", "500")
    wanted = found(pattern)
    monkeypatch.setattr(batches, "MOST_EVENTS", 1_200)
    monkeypatch.setattr("gpu_cep.engine.run.cut_batches", partial(batches.cut_batches, size=16))
    assert found(pattern).equals(wanted)


def test_more_events_than_can_be_numbered_are_refused(monkeypatch):
    monkeypatch.setattr(batches, "MOST_EVENTS", 1_000)
    # a window over all of a stream makes it one batch, of the half of its events that are an A or a B
    whole = partial(found, "SEQ(A a, B b) WITHIN 2999")
    monkeypatch.setattr("gpu_cep.engine.run.cut_batches", partial(batches.cut_batches, size=64))
    assert found("SEQ(A a, B b) WITHIN 20").num_rows > 0
    assert whole(partition_by="k").num_rows > 0
    with pytest.raises(UnsupportedError, match=r"reach over 1,\d\d\d events of one stream are not supported, only over 1,000; use"):
        whole()
