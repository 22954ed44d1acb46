"""Streams cut into slices that lie in one table, each with copies from its neighbours, have the matches of the whole."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from gpu_cep.analysis.bound import TimeWindow
from gpu_cep.api import make_plan
from gpu_cep.engine.columns import EventColumns
from gpu_cep.engine.run import execute
from gpu_cep.engine.slices import OwnRows
from gpu_cep.engine.streams import load_times
from gpu_cep.errors import UnsupportedError
from gpu_cep.keywords import make_options
from gpu_cep.plan.plan import Plan
from gpu_cep.plan.settings import Settings
from gpu_cep.testing.results import matches_of
from gpu_cep.testing.strategies import trend_cases, whole_language
from tests.conformance.expectation import expected


def sliced(plan: Plan, table: pa.Table, length: int) -> tuple[pa.Table, np.ndarray, np.ndarray]:
    """Each event in its slice of time and copied into those beside it; the rows that these are, and which are own."""
    times = load_times(EventColumns(table, plan.query), plan.query.timestamp)
    homes = [int(time) // length for time in times.view(np.int64 if times.dtype.kind == "u" else times.dtype).tolist()]
    held = [(slice_, row) for (row, home), step in product(enumerate(homes), (-1, 0, 1)) for slice_ in (home + step,)]
    numbers, rows = (np.array(each, np.int64) for each in zip(*held, strict=True)) if held else (np.empty(0, np.int64),) * 2
    own = numbers == np.array(homes, np.int64)[rows]
    return table.take(pa.array(rows)).append_column("slice", pa.array(numbers)), rows, own


@given(st.one_of(whole_language(max_size=14, after_match=("all", "skip_to_next")), trend_cases()), st.integers(0, 9))
def test_slices_in_one_table_have_the_matches_of_the_whole(case, longer):
    expected(case)  # not too many
    given = case.options.get
    options = make_options("ts", given("partition_by"), given("order_by"), "type", given("strategy"), given("ties"), given("time_unit"))
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
    wanted = sorted(map(repr, matches_of(execute(whole, case.events))))
    found = [
        {name: tuple(int(rows[row]) for row in bound) for name, bound in match.items()}
        for match in matches_of(execute(plan, table, own=OwnRows(own)))
    ]
    assert sorted(map(repr, found)) == wanted
    counted = execute(replace(plan, settings=replace(plan.settings, output="count")), table, own=OwnRows(own))
    assert sum(counted["count"].to_pylist()) == len(wanted)


@pytest.mark.parametrize("algorithm", ["ses_automaton", "nfab", "lazy_chain", "join_tree"])
@pytest.mark.parametrize("output", ["matches", "count"])
def test_every_algorithm_leaves_out_what_starts_in_copies(algorithm, output):
    table = pa.table({"ts": [1, 2, 3, 4, 5, 6], "type": list("ABABAB"), "n": range(6)})
    options = make_options("ts", None, None, "type", "skip_till_any_match", "strict", None)
    query = "PATTERN SEQ(A a, B b) WITHIN 3 RETURN a.n AS a, b.n AS b"
    plan = make_plan(query, table.schema, options, Settings(output=output, algorithm=algorithm))
    found = execute(plan, table, own=OwnRows(np.array([False, False, True, True, False, True])))
    assert found.to_pylist()[-1] == ({"count": 2} if output == "count" else {"match_start": 3, "match_end": 6, "a": 2, "b": 5})
