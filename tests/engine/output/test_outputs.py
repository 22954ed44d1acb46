"""The forms of output beside RETURN: matches, events, indices and count, per stream and in order."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from numba import typeof

import gpu_cep as cep
from gpu_cep.engine.output import result_tables
from gpu_cep.errors import PatternError
from gpu_cep_kernels.matches.flat_matches import number_bound
from tests.kernel_cases.matches import MATCH_CASES

# Two streams, rows in no order: k=2 has one match, k=1 two, NULL one, k=3 none.
EVENTS = pa.table(
    {
        "ts": [4, 1, 2, 3, 1, 2, 1, 2, 1],
        "k": [1, 1, 1, 1, 2, 2, None, None, 3],
        "type": ["B", "A", "A", "B", "A", "B", "A", "B", "B"],
    }
)
PATTERN = "PARTITION BY k PATTERN SEQ(A a+, B b)"
SITUATIONS = "PARTITION BY k DEFINE a AS type = 'A', b AS type = 'B' PATTERN a meets b"
INDICES = [{"a": [6], "b": 7}, {"a": [1, 2], "b": 3}, {"a": [2], "b": 3}, {"a": [4], "b": 5}]


def test_indices_are_input_rows_by_stream_first_and_last_event():
    assert cep.match(EVENTS, PATTERN, output="indices").to_pylist() == INDICES


def test_counts_of_the_streams_that_have_any():
    assert cep.match(EVENTS, PATTERN, output="count").to_pylist() == [
        {"k": None, "count": 1}, {"k": 1, "count": 2}, {"k": 2, "count": 1},
    ]  # fmt: skip


@pytest.mark.parametrize(("pattern", "options"), [(PATTERN, {}), (SITUATIONS, {"detect": "early"})])
def test_events_are_numbered_by_the_one_form_of_their_kernel(pattern, options):
    """For an array with gaps, or of another type, it would be compiled once more."""
    with patch.object(result_tables, "over_slices", wraps=result_tables.over_slices) as called:
        cep.match(EVENTS, pattern, output="events", **options)
    kernel, matches, _, *given = called.call_args.args
    (case,) = (each for each in MATCH_CASES if each.kernel is kernel)
    assert (kernel, matches > 1) == (number_bound, True)
    assert [*map(typeof, given)] == [*map(typeof, case.make(3, np.random.default_rng(0), 1).arguments)]


@pytest.mark.parametrize("pattern", ["PARTITION BY k PATTERN SEQ(A a, B b)", "PATTERN SEQ(A a, B b) WHERE [k] AND a.w < b.w"])
def test_keys_of_whole_events_are_looked_up_once(pattern):
    events = EVENTS.append_column("w", pa.array(range(9))).set_column(1, "k", EVENTS["k"].cast(pa.string()))
    found = cep.match(events, pattern, engine="cpu").combine_chunks()
    a, b = (found[name].chunk(0) for name in "ab")
    lie = {name: [part.field(name).buffers()[-1].address for part in (a, b)] for name in ("k", "w")}
    assert (len({*lie["k"]}), len({*lie["w"]})) == (1, 2)
    assert a.field("k").to_pylist() == [event["k"] for event in b.to_pylist()]
    assert {*a.field("k").to_pylist()} >= {"1", "2"}


@pytest.mark.parametrize("pattern", ["PARTITION BY k PATTERN SEQ(A a, B b)", "PATTERN SEQ(A a, B b) WHERE [k]"])
def test_keys_that_are_equal_but_differ_are_those_of_each_event(pattern):
    events = pa.table({"ts": [1, 2], "k": [-0.0, 0.0], "type": ["A", "B"]})
    (match,) = cep.match(events, pattern).to_pylist()
    assert [str(match[name]["k"]) for name in "ab"] == ["-0.0", "0.0"]


@pytest.mark.parametrize("output", ["events", "indices", "count"])
@pytest.mark.parametrize("pattern", [PATTERN, SITUATIONS])
def test_outputs_without_items_are_the_same_with_return_and_columns(pattern, output):
    with_items, columns = f"{pattern} RETURN sum(a.ts) AS t", None if output == "events" else "ts"
    assert cep.match(EVENTS, with_items, output=output, columns=columns) == cep.match(EVENTS, pattern, output=output)
    told = "RETURN     not computed with output="
    assert (told in str(cep.explain(EVENTS, with_items, output=output)), told in str(cep.explain(EVENTS, with_items))) == (True, False)


def test_events_number_the_matches_of_each_stream_and_the_events_of_each_binding():
    found = cep.match(EVENTS, PATTERN, output="events")
    assert found.schema.names == ["match_id", "variable", "event_index", "ts", "k", "type"]
    assert found.drop(["type"]).to_pylist() == [
        {"match_id": 0, "variable": "a", "event_index": 1, "ts": 1, "k": None},
        {"match_id": 0, "variable": "b", "event_index": 1, "ts": 2, "k": None},
        {"match_id": 0, "variable": "a", "event_index": 1, "ts": 1, "k": 1},
        {"match_id": 0, "variable": "a", "event_index": 2, "ts": 2, "k": 1},
        {"match_id": 0, "variable": "b", "event_index": 1, "ts": 3, "k": 1},
        {"match_id": 1, "variable": "a", "event_index": 1, "ts": 2, "k": 1},
        {"match_id": 1, "variable": "b", "event_index": 1, "ts": 3, "k": 1},
        {"match_id": 0, "variable": "a", "event_index": 1, "ts": 1, "k": 2},
        {"match_id": 0, "variable": "b", "event_index": 1, "ts": 2, "k": 2},
    ]


def test_matches_hold_whole_events():
    found = cep.match(EVENTS, PATTERN)
    event = pa.struct(list(EVENTS.schema))
    assert found.schema == pa.schema(
        [("k", pa.int64()), ("match_start", pa.int64()), ("match_end", pa.int64()), ("a", pa.list_(event)), ("b", event)]
    )
    assert found.to_pylist()[1] == {
        "k": 1, "match_start": 1, "match_end": 3,
        "a": [{"ts": 1, "k": 1, "type": "A"}, {"ts": 2, "k": 1, "type": "A"}], "b": {"ts": 3, "k": 1, "type": "B"},
    }  # fmt: skip


@pytest.mark.parametrize("columns", ["type", ["type"], ["type", "ts"], []])
def test_columns_choose_what_whole_events_carry(columns):
    names = [columns] if isinstance(columns, str) else columns
    found = cep.match(EVENTS, PATTERN, columns=columns)
    assert found.schema.field("b").type == pa.struct([EVENTS.schema.field(name) for name in names])
    assert [list(event) for event in found["b"].to_pylist()] == [names] * 4
    carried = cep.match(EVENTS, PATTERN, columns=columns, output="events")
    assert carried.schema.names == ["match_id", "variable", "event_index", *names]


def test_a_column_of_the_result_cannot_stand_twice():
    for options in ({"output": "events", "columns": ["ts", "ts"]}, {"columns": ["ts", "ts"]}):
        with pytest.raises(PatternError, match="ts"):
            cep.match(EVENTS, PATTERN, **options)


@pytest.mark.parametrize(
    ("column", "pattern", "options", "hint"),
    [
        ("x", "PATTERN SEQ(A match_start, B b)", {}, "rename the variable match_start$"),
        ("x", "PATTERN SEQ(A x, B b)", {"partition_by": "x"}, "rename the variable x, since keys of streams are columns, too$"),
        ("match_end", "PATTERN SEQ(A a, B b)", {"partition_by": "match_end"}, "rename the input column$"),
        ("match_end", "PATTERN SEQ(A a, B b) RETURN a.ts", {"partition_by": "match_end"}, "rename the input column$"),
        ("x", "PATTERN SEQ(A a, B b) WITHIN 5 RETURN a.ts AS missing", {"timeouts": True}, "name it otherwise with AS$"),
        ("count", "PATTERN SEQ(A a, B b)", {"partition_by": "count", "output": "count"}, "rename the input column$"),
        ("variable", "PATTERN SEQ(A a, B b)", {"output": "events"}, "rename the input column, or leave it out with columns=$"),
        (
            "match_end",
            "PATTERN SEQ(A a, B b) RETURN a.ts AS match_start",
            {},
            "each result has that column: name the item otherwise with AS$",
        ),
    ],
)
def test_columns_that_clash_are_renamed_where_they_come_from(column, pattern, options, hint):
    with pytest.raises(PatternError, match=rf"two columns (?s:.*)hint: {hint}"):
        cep.match(EVENTS.append_column(column, [range(9)]), pattern, **options)


@pytest.mark.parametrize("output", ["matches", "events", "indices", "count"])
@pytest.mark.parametrize("strategy", ["skip_till_next_match", "skip_till_any_match"])
def test_brute_force_gives_the_same_table(output, strategy):
    options = {"output": output, "strategy": strategy}
    assert cep.match(EVENTS, PATTERN, algorithm="brute_force", **options).equals(cep.match(EVENTS, PATTERN, **options))


def test_extension_and_nested_columns_are_carried():
    nested = pa.array([{"x": [n]} for n in range(9)])
    found = cep.match(EVENTS.append_column("n", nested), PATTERN, columns=["n"])
    assert found["b"].to_pylist()[0] == {"n": {"x": [7]}}


@pytest.mark.parametrize("first", [None, {"unit": "volt"}])
def test_a_result_has_the_metadata_of_its_own_events(first):
    """A schema is remembered; one that differs in the metadata of a field counts as the same to Arrow."""
    for metadata in (first, {"unit": "watt"}, None):
        events = pa.table({"ts": [1, 2], "x": [3, 4]}, schema=pa.schema([("ts", pa.int64()), pa.field("x", pa.int64(), metadata=metadata)]))
        found = cep.match(events, "PATTERN SEQ(a, b)", output="events").schema.field("x").metadata
        assert found == (None if metadata is None else {name.encode(): value.encode() for name, value in metadata.items()})
