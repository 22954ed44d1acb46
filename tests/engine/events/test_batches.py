"""Cut anywhere, stopped anywhere, in any number of threads: the matches are the same."""

from __future__ import annotations

import random
from functools import partial

import pyarrow as pa
import pytest

import gpu_cep as cep
from gpu_cep.engine import run
from gpu_cep.engine.events.batches import cut_batches
from gpu_cep.engine.matchers.automaton import ses_automaton
from gpu_cep.engine.phase_one import label_events
from gpu_cep.errors import EventError

PATTERNS = [
    "PATTERN SEQ(A a, B b) WITHIN 6",
    "PATTERN SEQ(AND(A a, B b+), C c) WITHIN 6",
    "PATTERN SEQ(A a, B b+, C c) WHERE a.x < c.x AND prev(b.x) <= b.x WITHIN 7",
    "PATTERN SEQ(A a, AND(b{2}, C c)) WHERE b.x > 3 AND a.x + b.x > c.x WITHIN 5",
    "PATTERN SEQ(A a, B b+) WITHIN 6 EVENTS",
    "PATTERN SEQ(A a, B b+, C c) WHERE a.k = b.k AND b.k = c.k WITHIN 10",
    "PATTERN SEQ(A a, B b)",
]
STRATEGIES = ["skip_till_next_match", "skip_till_any_match"]
CHOICE = random.Random(7)
SIZE = 150


def one_stream(step=1):
    """A stream in which `step` events of every two tie."""
    return pa.table(
        {
            "ts": [event // step for event in range(SIZE)],
            "type": CHOICE.choices("ABCX", k=SIZE),
            "x": CHOICE.choices(range(8), k=SIZE),
            "k": CHOICE.choices([1, 2, None], k=SIZE),
        }
    )


EVENTS = {"distinct times": one_stream(), "ties": one_stream(2)}


def found(events, pattern, strategy, **options):
    return cep.match(events, pattern, strategy=strategy, output="indices", **options)


def shorter(pattern, strategy):
    """A pattern without a window has all pairs for matches."""
    return EVENTS["ties"].slice(0, 60) if "WITHIN" not in pattern and strategy == "skip_till_any_match" else EVENTS["ties"]


@pytest.mark.parametrize("size", [1, 7, 64])
@pytest.mark.parametrize("events", EVENTS)
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_slices_of_one_long_stream(monkeypatch, pattern, strategy, events, size):
    table = EVENTS[events]
    wanted = found(table, pattern, strategy)
    counted = cep.match(table, pattern, strategy=strategy, output="count")
    assert counted["count"].to_pylist() == [wanted.num_rows] != [0]
    monkeypatch.setattr(run, "cut_batches", partial(cut_batches, size=size))
    assert found(table, pattern, strategy).equals(wanted)
    assert cep.match(table, pattern, strategy=strategy, output="count").equals(counted)


@pytest.mark.parametrize("size", [1, 7, 64])
def test_partitions_of_one_long_stream(monkeypatch, size):
    """Floats make partitions, and no streams: what follows an event there is looked up, batch by batch."""
    events = EVENTS["ties"].append_column("y", EVENTS["ties"]["x"].cast(pa.float64()))
    wanted = found(events, "PATTERN SEQ(A a, B b) WHERE [y] WITHIN 30", "partition_contiguity")
    monkeypatch.setattr(run, "cut_batches", partial(cut_batches, size=size))
    assert found(events, "PATTERN SEQ(A a, B b) WHERE [y] WITHIN 30", "partition_contiguity").equals(wanted)
    assert wanted.num_rows > 0


@pytest.mark.parametrize("size", [1, 7, 64])
def test_batches_of_many_streams(monkeypatch, size):
    wanted = found(EVENTS["ties"], PATTERNS[1], STRATEGIES[0], partition_by="x")
    monkeypatch.setattr(run, "cut_batches", partial(cut_batches, size=size))
    assert found(EVENTS["ties"], PATTERNS[1], STRATEGIES[0], partition_by="x").equals(wanted)
    assert wanted.num_rows > 0


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_an_enumeration_goes_on_where_it_stopped(monkeypatch, pattern, strategy):
    """After every step, with room for a path of one event and hardly any matches."""
    table = shorter(pattern, strategy)
    wanted, counted = found(table, pattern, strategy), cep.match(table, pattern, strategy=strategy, output="count")
    assert wanted.num_rows > 0
    output = ses_automaton.new_match_table
    monkeypatch.setattr(ses_automaton, "STEPS_PER_CALL", 0)
    monkeypatch.setattr(ses_automaton, "_PATH", 1)
    monkeypatch.setattr(ses_automaton, "_LARGEST_OUTPUT", 1)
    monkeypatch.setattr(
        ses_automaton, "new_match_table", lambda matches, events, variables: output(min(matches, 1), min(events, 40), variables)
    )
    assert found(table, pattern, strategy).equals(wanted)
    assert cep.match(table, pattern, strategy=strategy, output="count").equals(counted)


@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_threads(monkeypatch, pattern, strategy, threads):
    table = shorter(pattern, strategy).append_column("j", [[e % 5 for e in range(shorter(pattern, strategy).num_rows)]])
    wanted = found(table, pattern, strategy, threads=1, partition_by="j")
    monkeypatch.setattr(run, "cut_batches", partial(cut_batches, size=16))
    assert found(table, pattern, strategy, threads=threads, partition_by="j").equals(wanted)


@pytest.mark.parametrize("block", [1, 7])
def test_blocks_of_labels(monkeypatch, block):
    pattern = "PATTERN SEQ(A a, B b, c) WHERE a.x > 2 AND a.x + b.x > 0 AND c.x * 2 > 5 AND (c.type = 'C' OR c.x = 5) WITHIN 9"
    wanted = found(EVENTS["ties"], pattern, STRATEGIES[0])
    assert wanted.num_rows > 0
    monkeypatch.setattr(label_events, "BLOCK", block)
    assert found(EVENTS["ties"], pattern, STRATEGIES[0]).equals(wanted)
    assert found(EVENTS["ties"], pattern, STRATEGIES[0], prune=False).equals(wanted)


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("a.x + 1 > 0", r"integer overflow in a.x \+ 1 > 0 at input row 1; .*0e0 \+ a.x is a float, and before an aggregate cast"),
        ("a.x * b.y > 0", r"integer overflow in a.x \* b.y > 0, in the window that starts at ts=2 \(input row 1\) .*; 64 bits hold"),
    ],
)
def test_overflow_in_a_condition_names_its_place(condition, message):
    table = pa.table({"ts": [1, 2, 3], "type": ["A", "A", "B"], "x": [1, 2**63 - 1, 0], "y": [2, 2, 2]})
    with pytest.raises(EventError, match=message):
        cep.match(table, f"PATTERN SEQ(A a, B b) WHERE {condition}", threads=1)


@pytest.mark.parametrize(("threads", "sizes"), [(1, [34, 34, 32]), (2, [25] * 4), (3, [34, 34, 32]), (8, [13] * 7 + [9])])
def test_batches_are_as_many_for_each_thread(monkeypatch, threads, sizes):
    """Of 100 events in batches of at most 40."""
    found = []

    def cut(plan, ordered, threads):
        found.extend(cut_batches(plan, ordered, 40, threads))
        return found

    monkeypatch.setattr(run, "cut_batches", cut)
    cep.match(pa.table({"ts": range(100), "type": ["A"] * 100}), "PATTERN SEQ(A a, A b) WITHIN 1", threads=threads)
    assert [batch.own - batch.low for batch in found] == sizes
