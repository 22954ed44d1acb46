"""partition_contiguity: which event is the very next one, by the keys that streams are split by and by those that they are not."""

from __future__ import annotations

import math
from functools import partial
from unittest.mock import patch

import pyarrow as pa
import pytest

import gpu_cep as cep
from gpu_cep.engine.events.batches import cut_batches
from gpu_cep.engine.matchers.search import Search

PARTITION, STRICT = "partition_contiguity", "strict_contiguity"


def events(types, times=None, **columns):
    return pa.table({"ts": list(times or range(len(types))), "type": list(types), **columns})


def found(table, pattern, strategy=PARTITION, **options):
    options = {"strategy": strategy, "output": "indices", **options}
    return [tuple(match.values()) for match in cep.match(table, pattern, **options).to_pylist()]


INTERLEAVED = events("ABABXBAB", k=[1, 2, 2, 1, 1, 2, 1, 1], s=list("ppppqppp"))


@pytest.mark.parametrize("prune", [True, False])
def test_a_derived_key_makes_partitions(prune):
    pattern = "PATTERN SEQ(A a, B b) WHERE a.k = b.k"
    assert found(INTERLEAVED, pattern, prune=prune) == [(0, 3), (2, 5), (6, 7)]
    assert found(INTERLEAVED, pattern, STRICT, prune=prune) == [(6, 7)]


def test_partition_by_and_strict_contiguity_are_about_its_streams():
    assert found(INTERLEAVED, "PATTERN SEQ(A a, B b)", STRICT, partition_by="k") == [(0, 3), (6, 7), (2, 5)]
    assert found(INTERLEAVED, "PATTERN SEQ(A a, B b)", partition_by="k") == [(0, 3), (6, 7), (2, 5)]


def test_several_keys_make_finer_partitions():
    table = events("AABB", k=[1, 1, 1, 1], s=list("pqpq"))
    assert found(table, "PATTERN SEQ(A a, B b) WHERE [k]") == [(1, 2)]
    assert found(table, "PATTERN SEQ(A a, B b) WHERE [k] AND [s]") == [(0, 2), (1, 3)]
    assert found(table, "PATTERN SEQ(A a, B b) WHERE [s]", partition_by="k") == [(0, 2), (1, 3)]


def test_each_branch_has_partitions_of_its_own():
    """Of the pair of a and b, k alone is the same; of that of a and c, s is so too."""
    table = events("AXBAXC", k=[1, 2, 1, 1, 1, 1], s=list("pppqrq"))
    pattern = "PATTERN SEQ(A a, OR(B b, C c)) WHERE [k] AND a.s = c.s"
    assert found(table, pattern) == [(0, 2, None), (3, None, 5)]
    assert found(table, "PATTERN SEQ(A a, OR(B b, C c)) WHERE [k]") == [(0, 2, None)]


def test_floats_make_partitions_though_streams_are_not_split_by_them():
    table = events("AABBAB", y=[0.0, 1.5, -0.0, 1.5, math.nan, math.nan])
    pattern = "PATTERN SEQ(A a, B b) WHERE a.y = b.y"
    assert found(table, pattern) == [(0, 2), (1, 3)]
    assert cep.explain(table, pattern, strategy=PARTITION).plan.derived == ()


def test_events_without_a_key_are_in_no_match_and_in_nobodys_way():
    table = events("AXAB", k=[1, None, None, 1])
    assert found(table, "PATTERN SEQ(A a, B b) WHERE a.k = b.k") == [(0, 3)]


def test_a_window_of_events_counts_those_of_the_stream():
    table = events("AXXBAXB", k=[1, 2, 2, 1, 1, 2, 1])
    pattern = "PATTERN SEQ(A a, B b) WHERE a.k = b.k WITHIN {} EVENTS"
    assert found(table, pattern.format(3)) == [(4, 6)]
    assert found(table, pattern.format(4)) == [(0, 3), (4, 6)]
    assert found(table, pattern.format(2)) == []


def test_a_run_goes_on_while_the_next_event_extends_it():
    table = events("ABBXBA", k=[1, 1, 1, 2, 1, 1])
    assert found(table, "PATTERN SEQ(A a, B b+) WHERE [k]") == [(0, [1, 2, 4])]
    assert found(table, "PATTERN SEQ(A a, B b+) WHERE [k]", STRICT) == [(0, [1, 2])]
    assert found(table, "PATTERN SEQ(A a, B b{1,2}) WHERE [k]") == [(0, [1, 2])]


def test_the_very_next_event_is_next_in_stream_order_also_among_ties():
    table = events("ABB", [1, 1, 2], k=[1, 1, 1])
    assert found(table, "PATTERN SEQ(A a, B b)", STRICT) == [], "the next event ties with a, and cannot follow it"
    assert found(table, "PATTERN SEQ(A a, B b)", STRICT, ties="position") == [(0, 1)]


def test_events_that_no_variable_fits_end_a_run():
    assert found(events("AXB"), "PATTERN SEQ(A a, B b)", STRICT) == []
    assert found(events("AXB"), "PATTERN SEQ(A a, B b)") == []
    assert found(events("AB"), "PATTERN SEQ(A a, B b)") == [(0, 1)]


def test_events_of_later_batches_are_not_looked_up(monkeypatch):
    tables = []
    make = Search.event_table
    monkeypatch.setattr(Search, "event_table", lambda *given: tables.append(make(*given)) or tables[-1])
    table = events("ABABAXXXAB", y=[0.0, 0.0, 1.5, 1.5, 9.0, 8.0, 8.0, 8.0, 9.0, 9.0])
    with patch("gpu_cep.engine.run.cut_batches", partial(cut_batches, size=1)):
        assert found(table, "PATTERN SEQ(A a, B b) WHERE a.y = b.y WITHIN 3", algorithm="ses_automaton") == [(0, 1), (2, 3), (8, 9)]
    # a kernel looks up what occurs from a successor on
    assert max(each.successor.max() - each.occurrence.shape[1] for each in tables) < 0
