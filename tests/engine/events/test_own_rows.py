"""Streams cut into slices that lie in one table, each with copies from its neighbours, have the matches of the whole."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import product
from operator import itemgetter
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from gpu_cep.analysis.bound import TimeWindow
from gpu_cep.engine import run
from gpu_cep.engine.answers import answer
from gpu_cep.engine.events import own_events
from gpu_cep.engine.events.batches import Batch, cut_batches
from gpu_cep.engine.events.own_events import OwnRows, cut_at_own
from gpu_cep.engine.events.reported import Reported
from gpu_cep.engine.events.stream_keys import encode_keys
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.input.times import load_times
from gpu_cep.errors import UnsupportedError
from gpu_cep.keywords import make_options
from gpu_cep.plan.event_plan import EventPlan
from gpu_cep.plan.interval_plan import IntervalPlan
from gpu_cep.plan.settings import Settings
from gpu_cep.queries.plans import make_plan
from tests.conformance.expectation import expected
from tests.drawn.queries import trend_cases, whole_language
from tests.drawn.situations import situation_cases
from tests.results import matches_of


def sliced(plan: EventPlan, table: pa.Table, length: int) -> tuple[pa.Table, np.ndarray, np.ndarray]:
    """Each event in its slice of time and copied into those beside it; the rows that these are, and which are own."""
    times = load_times(EventColumns(table, plan.query, threads=1), plan.query.timestamp)
    homes = [int(time) // length for time in times.view(np.int64 if times.dtype.kind == "u" else times.dtype).tolist()]
    held = [(slice_, row) for (row, home), step in product(enumerate(homes), (-1, 0, 1)) for slice_ in (home + step,)]
    numbers, rows = (np.array(each, np.int64) for each in zip(*held, strict=True)) if held else (np.empty(0, np.int64),) * 2
    own = numbers == np.array(homes, np.int64)[rows]
    return table.take(pa.array(rows)).append_column("slice", pa.array(numbers)), rows, own


@given(st.one_of(whole_language(max_size=14, after_match=("all", "skip_to_next")), trend_cases()), st.integers(0, 9), st.data())
def test_slices_in_one_table_have_the_matches_of_the_whole(case, longer, data):
    expected(case)  # not too many
    given = case.options.get
    options = make_options(**{name: given(name) for name in ("partition_by", "order_by", "strategy", "ties", "time_unit")})
    settings = Settings(output="indices", after_match=given("after_match", "all"))
    try:
        whole = make_plan(case.text, case.events.schema, options, settings)
        plan = make_plan(case.text, case.events.schema.append(pa.field("slice", pa.int64())), options, settings)
    except UnsupportedError:
        reject()
    if not isinstance(plan.query.window, TimeWindow):
        reject()
    table, rows, own = sliced(plan, case.events, int(plan.query.window.length) + 1 + longer)
    number = len(case.events.schema)
    keys = (*plan.query.partition_by, number)
    plan = replace(plan, query=replace(plan.query, partition_by=keys), stream_keys=(*keys, *plan.derived))
    wanted = sorted(map(repr, matches_of(answer(whole, case.events))))
    together, size = data.draw(st.sampled_from([(0, 3), (0, 1 << 17), (1 << 12, 5)]))
    with patch.object(own_events, "TOGETHER", together), patch.object(run, "cut_batches", partial(cut_batches, size=size)):
        assert_same(plan, table, rows, OwnRows(own), wanted)


def assert_same(plan, table, rows, own, wanted):
    """The plan finds the matches that are wanted, and counts as many, by every algorithm that it may take."""
    for algorithm in plan.contenders:
        by_one = replace(plan, contenders=(algorithm,))
        found = matches_of(answer(by_one, table, reported=Reported(own)))
        placed = [{name: tuple(int(rows[row]) for row in bound) for name, bound in match.items()} for match in found]
        assert sorted(map(repr, placed)) == wanted
        counted = answer(replace(by_one, settings=replace(plan.settings, output="count")), table, reported=Reported(own))
        assert sum(counted["count"].to_pylist()) == len(wanted)


@pytest.mark.parametrize("algorithm", ["ses_automaton", "nfab", "lazy_chain", "join_tree"])
@pytest.mark.parametrize("output", ["matches", "count"])
def test_every_algorithm_leaves_out_what_starts_in_copies(algorithm, output):
    table = pa.table({"ts": [1, 2, 3, 4, 5, 6], "type": list("ABABAB"), "n": range(6)})
    options = make_options(strategy="skip_till_any_match")
    query = "PATTERN SEQ(A a, B b) WITHIN 3 RETURN a.n AS a, b.n AS b"
    plan = make_plan(query, table.schema, options, Settings(output=output, algorithm=algorithm))
    found = answer(plan, table, reported=Reported(OwnRows(np.array([False, False, True, True, False, True]))))
    assert found.to_pylist()[-1] == ({"count": 2} if output == "count" else {"match_start": 3, "match_end": 6, "a": 2, "b": 5})


@pytest.mark.parametrize(
    ("marks", "cut"),
    [
        # long runs, and as many events between them as a batch is worth
        ([1, 1, 1, 0, 0, 1, 1, 1], [(0, 3), (5, 8)]),
        # few events between long runs
        ([1, 1, 1, 1, 0, 1, 1, 1], [(0, 8)]),
        # short runs
        ([1, 0, 0, 0, 0, 0, 0, 1], [(0, 8)]),
        # one run costs no further batch
        ([0, 1, 1, 1, 1, 1, 1, 1], [(1, 8)]),
        ([0, 0, 0, 0, 0, 0, 0, 0], []),
    ],
)
def test_own_events_become_batches_where_that_spares_more_than_batches_cost(marks, cut):
    own, rows = OwnRows(np.array(marks, np.bool_)), np.arange(len(marks))
    ordered = SimpleNamespace(times=rows.astype(np.uint64), rows=rows, offsets=np.array([0, 4, 8]))
    with patch.object(own_events, "TOGETHER", 2):
        found = cut_at_own(ordered, Batch(0, 8, 8), own)
    assert [(each.low, each.own) for each in found] == cut


def situations_sliced(plan: IntervalPlan, table: pa.Table, length: int, earlier: int) -> tuple[pa.Table, np.ndarray, np.ndarray]:
    """Each event in its slice of time and in the one before; and in the first slice behind it if no event lies between them, or few do."""
    columns = EventColumns(table, plan.query, threads=1)
    times = load_times(columns, plan.query.timestamp).tolist()
    codes = encode_keys(columns, plan.query.partition_by).codes
    streams = [0] * len(times) if codes is None else codes.tolist()
    homes = [int(time) // length for time in times]
    held = {(stream, home + step, row) for row, (stream, home) in enumerate(zip(streams, homes, strict=True)) for step in (-1, 0)}
    for stream, home in set(zip(streams, homes, strict=True)):
        before = [row for row in range(len(times)) if (streams[row], homes[row]) < (stream, home) and streams[row] == stream]
        latest = max((times[row] for row in before), default=0) - earlier
        held |= {(stream, home, row) for row in before if times[row] >= latest}
    numbers, rows = (np.array([each[place] for each in sorted(held, key=itemgetter(2))], np.int64) for place in (1, 2))
    own = numbers == np.array(homes, np.int64)[rows]
    return table.take(pa.array(rows)).append_column("slice", pa.array(numbers)), rows, own


@given(situation_cases(returns=(False,)), st.integers(0, 9), st.sampled_from([0, 0, 4]))
def test_slices_have_the_matches_over_situations_of_the_whole(case, longer, earlier):
    text = case.text if "WITHIN" in case.text else f"{case.text} WITHIN 9"
    # what ends by a gap may wait for an event far behind
    given = {name: each for name, each in case.options.items() if name != "gap"}
    named = {"timestamp": "ts", "type_column": "type", "strategy": None, "ties": "strict", "time_unit": "hours"}
    options = make_options(**named | {"partition_by": None, "order_by": None} | given)
    whole = make_plan(text, case.events.schema, options, Settings(output="indices"))
    plan = make_plan(text, case.events.schema.append(pa.field("slice", pa.int64())), options, Settings(output="indices"))
    if not np.isfinite(load_times(EventColumns(case.events, whole.query, threads=1), whole.query.timestamp)).all():
        reject()
    number, window = len(case.events.schema), whole.query.window.length
    table, rows, own = situations_sliced(whole, case.events, int(window) + 1 + longer, earlier)
    keys = (*plan.query.partition_by, number)
    plan = replace(plan, query=replace(plan.query, partition_by=keys), stream_keys=keys)
    wanted = sorted(map(repr, matches_of(answer(whole, case.events))))
    found = matches_of(answer(plan, table, reported=Reported(OwnRows(own))))
    placed = [{name: tuple(int(rows[row]) for row in bound) for name, bound in match.items()} for match in found]
    assert sorted(map(repr, placed)) == wanted
    counted = answer(replace(plan, settings=Settings(output="count")), table, reported=Reported(OwnRows(own)))
    assert sum(counted["count"].to_pylist()) == len(wanted)
