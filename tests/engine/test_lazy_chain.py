"""The lazy chain: its matches, slices, limits and the choice by frequency; the conformance tests hold it to the oracle."""

from __future__ import annotations

from functools import partial
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest

import gpu_cep
from gpu_cep import errors
from gpu_cep.engine import lazy_chain
from gpu_cep.engine.batches import cut_batches

QUERY = "PATTERN SEQ(AND(A a, B b), C c) WHERE a.x < b.x AND b.x <> c.x WITHIN 40"


def events(size, shares, seed=1):
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "ts": np.cumsum(rng.integers(0, 3, size)),
            "type": rng.choice(list("ABC"), size, p=shares),
            "k": rng.integers(0, 3, size),
            "x": pa.array(rng.integers(0, 50, size), mask=rng.random(size) < 0.1),
        }
    )


def matched(table, query=QUERY, **options):
    return gpu_cep.match(table, query, strategy="skip_till_any_match", **{"output": "indices", "threads": 1, **options})


@pytest.mark.parametrize("shares", [(0.9, 0.05, 0.05), (0.05, 0.9, 0.05), (0.05, 0.05, 0.9), (0.4, 0.3, 0.3)])
@pytest.mark.parametrize("ties", ["strict", "position"])
@pytest.mark.parametrize("partition_by", [None, "k"])
def test_every_frequency_order_gives_the_matches_of_the_automaton(shares, ties, partition_by):
    table = events(600, shares)
    wanted, found = (matched(table, ties=ties, partition_by=partition_by, algorithm=name) for name in ("ses_automaton", "lazy_chain"))
    assert found.num_rows > 20
    assert found.equals(wanted)


@pytest.mark.parametrize("output", ["indices", "count"])
@pytest.mark.parametrize("size", [1, 7, 100])
def test_slices_of_a_stream_report_the_matches_that_start_in_them(output, size):
    table = events(500, (0.3, 0.6, 0.1))
    wanted = matched(table, output=output)
    with patch("gpu_cep.engine.run.cut_batches", partial(cut_batches, size=size)):
        assert matched(table, output=output, algorithm="lazy_chain").equals(wanted)


@pytest.mark.parametrize("output", ["indices", "count"])
def test_an_enumeration_goes_on_where_it_stopped(monkeypatch, output):
    table = events(500, (0.3, 0.6, 0.1))
    wanted = matched(table, output=output, algorithm="ses_automaton")
    monkeypatch.setattr(lazy_chain, "_STEPS_PER_CALL", 10)
    monkeypatch.setattr(lazy_chain, "_SMALLEST_OUTPUT", 1)
    monkeypatch.setattr(lazy_chain, "_LARGEST_OUTPUT", 3)
    assert matched(table, output=output, algorithm="lazy_chain").equals(wanted)


def test_pivots_alone_are_looked_at_where_windows_do_not_reach():
    """Work follows the rarest variable: a thousand quotes more between the halts cost no step."""

    def steps(quotes):
        types = ["C"] + ["A", "B"] * quotes + ["C"]
        table = pa.table({"ts": [0, *range(10**6, 10**6 + 2 * quotes), 10**7], "type": types})
        return least_steps(table, "PATTERN SEQ(A a, B b, C c) WITHIN 10")

    assert steps(1_000) == steps(10)


def least_steps(table, query):
    """The least max_steps with which a query runs."""
    for limit in range(1_000):
        try:
            matched(table, query, algorithm="lazy_chain", max_steps=limit)
        except errors.MatchLimitExceeded:
            continue
        return limit
    raise AssertionError("more than 1,000 steps")


@pytest.mark.parametrize("output", ["indices", "count"])
def test_limits_name_the_window(output):
    table = pa.table({"ts": range(60), "type": list("ABC") * 20, "x": [1, 2, 3] * 20})
    with pytest.raises(errors.MatchLimitExceeded, match=r"more than max_matches=5 matches, in the window that starts at ts="):
        matched(table, output=output, algorithm="lazy_chain", max_matches=5)


def test_an_overflow_names_condition_and_window():
    table = pa.table({"ts": [1, 2, 3], "type": ["A", "B", "A"], "x": [2**62, 2**62, 1]})
    with pytest.raises(errors.EventError, match=r"integer overflow in a\.x \+ b\.x > 0, in the window that starts at ts=1"):
        matched(table, "PATTERN SEQ(A a, B b) WHERE a.x + b.x > 0", algorithm="lazy_chain")


def profiled(table, query=QUERY, **options):
    profile = gpu_cep.Profile()
    matched(table, query, profile=profile, **options)
    return profile.counts


def test_rare_events_are_pivots():
    rare = events(2_000, (0.6, 0.3, 0.1))
    assert profiled(rare, algorithm="lazy_chain")["pivots"] == rare["type"].to_pylist().count("C")


def test_a_batch_without_events_of_some_variable_has_no_matches():
    table = pa.table({"ts": [1, 2], "type": ["A", "B"], "x": [1, 2]})
    assert profiled(table, algorithm="lazy_chain")["pivots"] == 0
    assert matched(table).num_rows == 0
    assert matched(table, output="count").to_pylist() == [{"count": 0}]


def test_times_of_the_next_stream_say_nothing():
    events = pa.table({"ts": [0, 1, 0], "type": ["B", "B", "B"], "k": [1, 1, 2]})
    query = "PATTERN SEQ(B a, B b) WHERE skip_till_any_match { a.k = b.k }"
    assert gpu_cep.match(events, query, output="indices", algorithm="lazy_chain").to_pylist() == [{"a": 0, "b": 1}]
