"""Which conditions of contiguous sequences are judged between neighbours, and at what distances."""

from __future__ import annotations

import pyarrow as pa
import pytest

from gpu_cep import explain

EVENTS = pa.table({"ts": [1], "type": ["A"], "k": [1], "x": [1], "y": [1.0]})
STRICT = {"strategy": "strict_contiguity"}


def lifted(text: str, **options: object) -> list[tuple[int, bool, tuple[int, ...]]] | None:
    """Variable, repeated and distances of each lifted condition of the first branch."""
    plan = explain(EVENTS, f"PATTERN {text}", **{**STRICT, **options}).plan
    found = plan.branches[0].lifted
    assert (found is not None) == ("lift" in plan.pruning)
    return None if found is None else [(each.variable, each.repeated, each.back) for each in found]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("SEQ(a, b+, c)", []),
        ("SEQ(a, b+) WHERE b[i].x > b[i-1].x", [(1, True, (0, 1))]),
        ("SEQ(a, b+) WHERE prev(b.x) < b.x", [(1, True, (1, 0))]),
        ("SEQ(a, b+) WHERE b[1].x > a.x", [(1, False, (0, 1))]),
        ("SEQ(a, b+, c) WHERE c.x < last(b.x)", [(2, False, (0, 1))]),
        ("SEQ(a+, b+) WHERE b[1].x > a[a.LEN].x", [(1, False, (0, 1))]),
        ("SEQ(a, b, c, d) WHERE d.x > a.x AND c.x > a.x", [(3, False, (0, 3)), (2, False, (0, 2))]),
        ("SEQ(a+, b, c) WHERE last(a.x) + b.x < c.x", [(2, False, (2, 1, 0))]),
        ("SEQ(a, b+) WHERE a.k = b.k", [(1, False, (1, 0)), (1, True, (0, 1))]),
        ("SEQ(a, b{2}, c) WHERE [k]", [(1, False, (1, 0)), (2, False, (1, 0)), (1, True, (0, 1))]),
    ],
)
def test_distances(text, wanted):
    assert lifted(text) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "SEQ(a, b+) WHERE b.x > a.x",
        "SEQ(a, b+, c) WHERE c.x > a.x",
        "SEQ(a, b+, c) WHERE c.x > b[1].x",
        "SEQ(a+, b) WHERE b.x > first(a.x)",
        "SEQ(a, b+) WHERE last(b.x) > a.x",
        "SEQ(a, b+, c) WHERE count(b) > 2 AND c.x > 1",
        "SEQ(a, b+, c) WHERE c.x > avg(b.x)",
        "SEQ(a, b+) WHERE b[i].x > sum(b[..i-1].x)",
        "SEQ(a, NOT(n), b)",
        "AND(a, b)",
    ],
)
def test_what_reads_no_neighbours_is_left_to_the_automaton(text):
    assert lifted(text) is None


def test_only_where_the_neighbour_is_the_next_event():
    text = "SEQ(a, b+) WHERE b[i].x > b[i-1].x"
    assert lifted(text, strategy="partition_contiguity") == [(1, True, (0, 1))]
    assert lifted(text, strategy="skip_till_next_match") is None
    assert lifted(f"{text} AND [k]", strategy="partition_contiguity") == [(1, True, (0, 1))]
    # positions in the undivided stream count, so that k does not divide it
    assert lifted(f"{text} AND [k] WITHIN 9 EVENTS", strategy="partition_contiguity") is None
    assert lifted(text, prune=("chain",)) is None
    assert lifted(text, algorithm="nfab") is None
