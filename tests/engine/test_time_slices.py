"""A stream fed slice by slice, with the events kept from before, has the matches of the whole stream."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_cep.analysis.options import Options
from gpu_cep.api import make_plan
from gpu_cep.engine.run import execute
from gpu_cep.engine.slices import TimeSlice, events_to_keep
from gpu_cep.plan.settings import Settings

WINDOW = 6
QUERIES = [
    "PATTERN SEQ(A a, B b+) WITHIN 6 RETURN a.n AS a, b.n AS b",
    "PATTERN SEQ(AND(A a, B b), C c) WHERE a.k = b.k AND b.k = c.k WITHIN 6 RETURN a.n AS a, b.n AS b, c.n AS c",
    "PATTERN SEQ(A a, C c) WHERE skip_till_any_match { a.k < c.k } WITHIN 6 RETURN a.n AS a, c.n AS c",
]


def rows(tables: list[pa.Table]) -> list[str]:
    return sorted(repr(row) for table in tables for row in table.to_pylist())


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("dtype", [pa.int64(), pa.float64()])
@given(st.lists(st.tuples(st.integers(0, 40), st.sampled_from("ABCD"), st.integers(0, 2)), max_size=40), st.integers(1, 15))
def test_slices_have_the_matches_of_the_whole(query, dtype, events, width):
    times, types, keys = zip(*sorted(events), strict=True) if events else ((), (), ())
    table = pa.table(
        {
            "ts": pa.array(times, dtype),
            "type": pa.array(types, pa.string()),
            "k": pa.array(keys, pa.int64()),
            "n": pa.array(range(len(events)), pa.int64()),
        }
    )
    plan = make_plan(query, table.schema, Options(), Settings())
    found, kept = [], table.slice(0, 0)
    for begin in range(0, 41, width):
        own = TimeSlice(begin, begin + width)
        # what has arrived by the time at which the windows of the slice are over
        seen = begin - 1 + WINDOW if begin else -1
        arrived = table.filter(pa.array([seen < time <= begin + width - 1 + WINDOW for time in times], pa.bool_()))
        batch = pa.concat_tables([kept, arrived])
        found.append(execute(plan, batch, own=own))
        kept = events_to_keep(plan, batch, own)
    assert rows(found) == rows([execute(plan, table)])


def test_a_slice_without_end_leaves_nothing():
    table = pa.table({"ts": [1, 2], "type": ["A", "B"]})
    plan = make_plan("PATTERN SEQ(A a, B b)", table.schema, Options(), Settings(output="count"))
    assert execute(plan, table, own=TimeSlice(begin=2)).to_pylist() == [{"count": 0}]
    assert execute(plan, table, own=TimeSlice(begin=1)).to_pylist() == [{"count": 1}]
    assert events_to_keep(plan, table, TimeSlice(begin=1)).num_rows == 0
