"""Contiguous matches that are read off labels: which ones are, which are left to the automaton, and what is told of them."""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa
import pytest

import gpu_cep as cep
from gpu_cep.engine.events import batches
from gpu_cep.engine.windows import candidates
from gpu_cep.errors import EventError, MatchLimitExceeded
from tests.effort import every_pair

RISE = "PATTERN SEQ(a, b+, c) WHERE b[1].x > a.x AND b[i].x > b[i-1].x AND c.x < last(b.x)"
SIZE = 4_000
RANDOM = np.random.default_rng(5)
EVENTS = pa.table({"ts": np.arange(SIZE), "x": np.cumsum(RANDOM.normal(size=SIZE)), "k": np.arange(SIZE) % 7})


def found(query=RISE, events=EVENTS, **options):
    return cep.match(events, query, **{"strategy": "strict_contiguity", "output": "indices", **options})


def stages(**options):
    """The matches, and the stages in which they were found."""
    profile = cep.Profile()
    matches = found(**options, profile=profile)
    return matches, profile


def test_no_step_of_the_automaton_is_taken():
    matches, profile = stages()
    assert matches.num_rows > 1_000
    assert profile.counts["steps"] == 0
    assert profile.counts["matches"] == matches.num_rows
    assert "lift" in profile.seconds
    assert "occurrences" not in profile.seconds


def test_labels_that_leave_a_choice_are_left_to_the_automaton():
    matches, profile = stages(query="PATTERN SEQ(a, b+, c) WHERE b[i].x > b[i-1].x WITHIN 9")
    assert profile.counts["steps"] > 0
    assert matches.equals(found("PATTERN SEQ(a, b+, c) WHERE b[i].x > b[i-1].x WITHIN 9", prune=False))


def test_a_condition_that_fails_for_a_row_is_judged_where_it_matters_only():
    """The sum overflows for rows of other types; for a row that a run comes to it is an error, which names the window."""
    huge = EVENTS.append_column("n", pa.array(np.where(np.arange(SIZE) % 50 == 49, 2**62, 1)))
    typed = huge.append_column("type", pa.array(np.where(np.arange(SIZE) % 50 >= 48, "X", np.where(np.arange(SIZE) % 2, "B", "A"))))
    text = "PATTERN SEQ({} a, {} b) WHERE b.n * 2 > a.n"
    assert found(text.format("A", "B"), typed).num_rows > 1_000
    with pytest.raises(EventError, match=r"integer overflow in b.n \* 2 > a.n, in the window that starts at ts=48"):
        found(text.format("X", "X"), typed)


# Slices of a stream begin inside matches that other slices take; of a union, one branch's matches stand between another's.
QUERIES = [
    RISE,
    f"{RISE} WITHIN 12",
    "PATTERN SEQ(a, b+, c?) WHERE b[1].x > a.x AND b[i].x > b[i-1].x AND c.x < last(b.x) WITHIN 12",
    f"{RISE} AND e.x > d.x + 1.0 WITHIN 12".replace("SEQ(a, b+, c)", "OR(SEQ(a, b+, c), SEQ(d, e))"),
]


@every_pair(after_match=["all", "skip_past_last", "skip_to_next"], keys=[None, "k"], query=QUERIES)
def test_batches_and_threads_change_nothing(query, after_match, keys, monkeypatch):
    find = partial(found, query, EVENTS.slice(0, 800), after_match=after_match, partition_by=keys)
    wanted = find(prune=False)
    assert find().equals(wanted)
    monkeypatch.setattr("gpu_cep.engine.run.cut_batches", partial(batches.cut_batches, size=37))
    monkeypatch.setattr(candidates, "BATCH", 10)
    monkeypatch.setattr(candidates, "_EVENTS_PER_PART", 5)
    for threads in (1, 3):
        assert find(threads=threads).equals(wanted)
        assert find(threads=threads, output="count").to_pylist() == find(prune=False, output="count").to_pylist()


def test_matches_that_are_dropped_are_not_made():
    """A rise of a million events and a fall: every start but the last matches, with half a trillion events in all."""
    size = 1_000_000
    events = pa.table({"ts": np.arange(size), "x": np.append(np.arange(size - 1), -1)})
    (match,) = found(events=events, after_match="skip_past_last").to_pylist()
    assert (match["a"], match["b"][0], len(match["b"]), match["c"]) == (0, 1, size - 2, size - 1)
    assert found(events=events, output="count")["count"].to_pylist() == [size - 2]


@pytest.mark.parametrize("after_match", ["all", "skip_past_last", "skip_to_next"])
@pytest.mark.parametrize("order", ["as it comes", "shuffled"])
def test_keys_that_the_query_implies(after_match, order):
    """Matches of one key rule out overlapping ones of another, and results are in order of time."""
    events = EVENTS if order == "as it comes" else EVENTS.take(np.random.default_rng(2).permutation(SIZE))
    find = partial(found, f"{RISE} AND [k]", events, strategy="partition_contiguity", after_match=after_match)
    assert find().num_rows > 100
    assert find().equals(find(prune=False))
    assert find(order_by="x").equals(find(order_by="x", prune=False))


def test_one_long_session_in_several_batches():
    """A match from every event to the end, of which one is taken: the others need no memory."""
    text = "PATTERN SEQ(a, b+) WHERE b[1].ts - a.ts <= 4 AND b.ts - prev(b.ts) <= 4"
    events = pa.table({"ts": np.arange(300_000)})
    (match,) = found(text, events, after_match="skip_past_last", threads=2).to_pylist()
    assert (match["a"], len(match["b"])) == (0, 299_999)


def test_limits_name_the_window():
    with pytest.raises(MatchLimitExceeded, match="more than max_matches=10 matches, in the window that starts at ts="):
        found(max_matches=10)


def test_more_variables_than_a_label_has_bits():
    names = [f"v{n}" for n in range(70)]
    text = f"PATTERN SEQ({', '.join(names)}) WHERE v69.x > v68.x"
    assert found(text).equals(found(text, prune=False))
    assert found(text).num_rows > 1_000
