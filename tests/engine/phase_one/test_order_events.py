"""Columns of ordered events: each is moved once, and is that of the rows, which are in order of time, then of `order_by`."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from gpu_cep.engine.events.stream_keys import encode_keys
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.input.times import load_pieces_of_times
from gpu_cep.engine.phase_one.label_events import label_events
from gpu_cep.engine.phase_one.order_events import order_events
from gpu_cep.keywords import make_options
from gpu_cep.plan.settings import Settings
from gpu_cep.queries.plans import make_plan

# so many that more than two of a stream tie
EVENTS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2), st.integers(-5, 5)), min_size=30, max_size=40)
TEXT = "PATTERN SEQ(a, b) WHERE a.x + a.ts < b.ts + b.y WITHIN 5"


@given(EVENTS, st.sampled_from([[], ["key"]]), st.sampled_from([[], ["x"]]), st.sampled_from([pa.int64(), pa.int32()]), st.booleans())
def test_timestamps_that_conditions_read_are_moved_with_the_events(rows, keys, order_by, kind, ascend):
    times, streams, values = zip(*(sorted(rows) if ascend else rows), strict=True)
    events = pa.table({"ts": pa.array(times, kind), "key": streams, "x": values, "y": [10 * value for value in values]})
    plan = make_plan(TEXT, events.schema, make_options(timestamp="ts", partition_by=keys, order_by=order_by), Settings())
    columns = EventColumns(events, plan.query, plan.dictionaries, threads=1)
    read = load_pieces_of_times(columns, plan.query.timestamp)
    ordered = order_events(plan, columns, read, label_events(plan, columns, 1), encode_keys(columns, plan.stream_keys), 1)
    assert ordered.times.tolist() == np.array(times)[ordered.rows].tolist()
    for column, moved in zip(plan.layout.ints, ordered.bank.ints, strict=True):
        assert moved.tolist() == np.array(events.column(columns.name(column)))[ordered.rows].tolist()
    for begin, end in pairwise(ordered.offsets.tolist()):
        own = ordered.rows[begin:end].tolist()
        assert own == sorted(own, key=lambda row: (times[row], values[row] if order_by else 0, row))
