"""Streams take matches that do not overlap as a batch does where `order_by` decides among events of one time."""

from __future__ import annotations

from collections import Counter
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_cep as cep
from gpu_cep.engine.streaming import decisive, moving_streams
from tests.effort import examples

# a small table need not have an event of each type
pytestmark = pytest.mark.filterwarnings("ignore::gpu_cep.AbsentValueWarning")
PATTERNS = ("SEQ(A a, B b)", "SEQ(A a, B b+)", "SEQ(A a, NOT(X n), B b)", "SEQ(A a+, NOT(X n))", "SEQ(a, B b)")
WINDOWS = ("WHERE [k] WITHIN 3", "WITHIN 3", "WITHIN 3 EVENTS")
STRATEGIES = ("skip_till_next_match", "skip_till_any_match", "strict_contiguity", "partition_contiguity")


def found_by(events: pa.Table, query: str, cuts: list[int], **options: object) -> tuple[Counter[str], Counter[str]]:
    """The matches of a stream whose watermark is just before the events to come, and those of a batch."""
    kept = {"time_to_live": 50} if "EVENTS" in query and "partition_by" in options else {}
    options |= {"after_match": "skip_past_last", "order_by": "x", "output": "indices"}
    # small streams, too, read and keep but the events of some keys and runs
    with patch.multiple(moving_streams, _FEWEST=0, _MOST=1.0), patch.object(decisive, "_FEWEST", 0):
        live = cep.stream(query, events.schema, lateness=1, **kept, **options)
        tables = [live.push(events.slice(low, high - low)) for low, high in zip([0, *cuts], [*cuts, events.num_rows], strict=True)]
        tables.append(live.finish())
    assert live.clock.late == 0
    streamed = Counter(repr(row) for table in tables for row in table.to_pylist())
    return streamed, Counter(map(repr, cep.match(events, query, **options).to_pylist()))


@examples(150, 1_500)
@given(st.data())
def test_a_stream_takes_the_matches_of_a_batch(data):
    size, draw = data.draw(st.integers(4, 12)), data.draw
    steps = draw(st.lists(st.sampled_from((0, 0, 1, 2)), min_size=size, max_size=size))
    columns = {"ts": [sum(steps[: place + 1]) for place in range(size)]}
    columns |= {"type": draw(st.lists(st.sampled_from("AABBX"), min_size=size, max_size=size))}
    columns |= {name: draw(st.lists(st.integers(0, 2), min_size=size, max_size=size)) for name in ("x", "k")}
    query = f"PATTERN {draw(st.sampled_from(PATTERNS))} {draw(st.sampled_from(WINDOWS))}"
    options = {"strategy": draw(st.sampled_from(STRATEGIES)), "ties": draw(st.sampled_from(("strict", "position")))}
    options |= draw(st.sampled_from(({}, {"partition_by": "k"})))
    cuts = sorted(draw(st.lists(st.integers(0, size), max_size=6)))
    streamed, wanted = found_by(pa.table(columns), query, cuts, **options)
    assert streamed == wanted


@pytest.mark.parametrize(
    ("query", "types", "x", "k", "options"),
    [
        # the events of runs without a match alone are kept: the second A
        ("PATTERN SEQ(A a, B b) WITHIN 5", "ABAXB", [0, 1, 2, 0, 0], [1] * 5, {}),
        # the last match lies in another stream of a derived key than the first one
        ("PATTERN SEQ(A a, B b) WHERE [k] WITHIN 5", "ABAXB", [0, 1, 2, 0, 0], [1, 1, 2, 9, 2], {}),
        # the window of the first B is over
        ("PATTERN SEQ(A a, B b, NOT(X n)) WITHIN 3 EVENTS", "ABAYBYY", [0, 1, 2, 0, 0, 0, 0], [1] * 7, {}),
        ("PATTERN SEQ(A a, B b, NOT(X n)) WITHIN 3 EVENTS", "ABAYBYY", [0, 1, 2, 0, 0, 0, 0], [1] * 7, {"partition_by": "k"}),
    ],
)
def test_an_event_keeps_its_place_among_those_of_its_time(query, types, x, k, options):
    events = pa.table({"ts": [0, 1, 1, *range(3, 1 + len(types) - 1)][: len(types)], "type": list(types), "x": x, "k": k})
    streamed, wanted = found_by(events, query, list(range(1, len(types))), **options)
    assert streamed == wanted
    assert wanted.total() == 2
