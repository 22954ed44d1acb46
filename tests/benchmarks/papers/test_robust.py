"""Robust skip-till-next-match by post-processing is the oracle's; so its benchmark compares like with like."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import gpu_cep
from benchmarks.papers.post_processing import conforming
from gpu_cep.oracle import events as oracle
from gpu_cep.oracle.options import EventOptions
from tests.results import matches_of

QUERIES = [
    "PATTERN SEQ(a, b, c) WHERE a.v > b.v AND b.v > c.v WITHIN 8",
    "PATTERN SEQ(a, b+) WHERE b[1].v < a.v AND prev(b.v) > b.v WITHIN 6",
    "PATTERN SEQ(a, b+, c) WHERE a.v > b.v AND prev(b.v) < b.v AND c.v < a.v WITHIN 6",
    "PATTERN SEQ(AND(a, b), c) WHERE a.v > c.v AND b.v < c.v WITHIN 6",
    "PATTERN AND(a{2}, b) WHERE prev(a.v) > a.v AND b.v > 3 WITHIN 5",
    "PATTERN SEQ(a, NOT(h), b) WHERE a.v > b.v AND h.v < 1 WITHIN 8",
]


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("seed", range(3))
def test_post_processing(query: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    events = pa.table({"ts": np.cumsum(rng.integers(0, 3, 12)), "v": rng.integers(0, 6, 12)})
    wanted = oracle.matches(gpu_cep.parse(query), events, EventOptions(strategy="robust_skip_till_next_match"))
    every = gpu_cep.match(events, query, strategy="skip_till_any_match", output="indices")
    assert len(wanted) < every.num_rows
    assert matches_of(conforming(every)) == wanted


def test_nothing_is_left_of_no_match() -> None:
    events = pa.table({"ts": [1, 2], "v": [1, 2]})
    every = gpu_cep.match(events, QUERIES[0], strategy="skip_till_any_match", output="indices")
    assert conforming(every).equals(every)
