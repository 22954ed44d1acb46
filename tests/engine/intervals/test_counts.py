"""Where zones and the window say all, the last join of situations is counted and not tried; its counts are the numbers of matches."""

from __future__ import annotations

from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_cep as cep
from gpu_cep.plan.interval_order import OrderChoice
from tests.effort import examples

BY_ZONES = [
    "A before B",
    "A after B",
    "A contains B",
    "A before B; A after B",
    "A before B AND B before C",
    "A contains B AND A before C",
    "A before B AND C contains A AND C before B",
]
TRIED = ["A before B; A meets B", "A during B", "A overlaps B AND B before C AND A before C"]

FLAGS = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3), *(st.booleans() for _ in "abc")), min_size=1, max_size=40)


def table_of(rows):
    streams, gaps, *flags = zip(*rows, strict=True)
    times = [sum(gaps[: place + 1]) for place in range(len(gaps))]
    return pa.table({"ts": times, "k": streams, **dict(zip("abc", flags, strict=True))})


def query_of(pattern, window):
    names = ", ".join(f"{name} AS {name.lower()}" for name in "ABC" if name in pattern)
    return f"PARTITION BY k DEFINE {names} PATTERN {pattern}" + (f" WITHIN {window}" if window else "")


@pytest.mark.parametrize("pattern", BY_ZONES + TRIED)
@examples(12, 50)
@given(FLAGS, st.sampled_from([None, 3, 8, 20]), st.sampled_from(["final", "early"]), st.sampled_from([2, 1 << 13]))
def test_counts_are_the_numbers_of_matches(pattern, rows, window, detect, part):
    events, query = table_of(rows), query_of(pattern, window)
    with patch("gpu_cep.engine.intervals.join._CHUNK", part):
        counts = cep.match(events, query, output="count", detect=detect)
        found = cep.match(events, query, detect=detect)
        assert sum(counts["count"].to_pylist()) == found.num_rows
        assert found.equals(cep.match(events, query, detect=detect, algorithm="brute_force"))


def tried(pattern, detect):
    """How many pairs are tried to count."""
    size = 400
    flags = {name: [place % period < period // 2 for place in range(size)] for name, period in zip("abc", (11, 5, 7), strict=True)}
    events, profile = pa.table({"ts": range(size), "k": [0] * size, **flags}), cep.Profile()
    counts = cep.match(events, query_of(pattern, 50), output="count", detect=detect, profile=profile)
    assert counts["count"].to_pylist() > [0]
    return profile.counts.get("pairs", 0)


@pytest.mark.parametrize("detect", ["final", "early"])
def test_what_zones_say_is_not_tried(detect):
    assert tried("A before B", detect) == 0
    assert tried("A before B; A after B", detect) == 0
    assert tried("A overlaps B", detect) > 0


@pytest.mark.parametrize(("detect", "some"), [("final", False), ("early", True)])
def test_what_is_decided_late_is_tried(detect, some):
    with patch.object(OrderChoice, "order", lambda _, buffers: (0, 1)):
        assert (tried("A contains B", detect) > 0) == some
