"""``output="compressed"``: a graph that is small, counts exactly and enumerates lazily."""

from __future__ import annotations

from itertools import islice

import pyarrow as pa
import pyarrow.compute
import pytest

import gpu_cep as cep
from gpu_cep.engine.compressed import buffer_graph, paths
from gpu_cep.engine.output.result_tables import result_schema

ANY = {"strategy": "skip_till_any_match"}


def alike(size, **columns):
    return pa.table({"ts": range(size), "type": ["A"] * size, **columns})


def compressed(events, pattern, **options):
    return cep.match(events, pattern, output="compressed", **ANY, **options)


def set_pairs(size):
    """Matches of SEQ(A a+, B b+) where all events fit both: sets of at least two events, and where to part them."""
    return (size - 2) * 2 ** (size - 1) + 1


@pytest.mark.parametrize("size", [2, 10, 500, 3000])
def test_count_is_a_python_integer_however_large(size):
    assert compressed(alike(size), "PATTERN SEQ(A a+, A b+)").count() == set_pairs(size)


def test_nodes_grow_with_the_events_and_not_with_the_matches():
    sizes = [compressed(alike(size), "PATTERN SEQ(A a+, A b+)", columns=[]).table.num_rows for size in (100, 200, 400)]
    assert sizes == [198, 398, 798]


@pytest.mark.parametrize("rows", [3, 1 << 12])
@pytest.mark.parametrize("window", ["WITHIN 99", "WITHIN 100 EVENTS"])
def test_windows_cut_large_counts(monkeypatch, rows, window):
    monkeypatch.setattr(paths, "_ROWS", rows)
    size, length = 300, 100
    wanted = (size - length + 1) * 2 ** (length - 1) + sum(2**left for left in range(length - 1))
    assert compressed(alike(size), f"PATTERN A a+ {window}").count() == wanted


def test_matches_are_found_when_they_are_asked_for():
    found = compressed(alike(2000), "PATTERN A a+", columns=["ts"])
    some = [match["a"] for match in islice(found, 1000)]
    assert len(set(map(str, some))) == 1000
    assert all(list(times) == sorted(times, key=lambda event: event["ts"]) for times in some)
    assert next(found.indices()) == {"a": (0,)}


def test_no_node_is_entered_in_vain(monkeypatch):
    """Between two matches the walk takes no more steps than their lengths together and the ranges on the way."""
    steps = []
    choices = paths._Walk._choices

    def counting(walk, node, limit):
        steps[-1] += 1
        yield from choices(walk, node, limit)

    monkeypatch.setattr(paths._Walk, "_choices", counting)
    types = ["A", "B", "C"] * 20 + ["A"] * 50 + ["B"] * 50 + ["C"]
    found = compressed(pa.table({"ts": range(len(types)), "type": types}), "PATTERN SEQ(A a+, B b, C c) WITHIN 8")
    steps.append(0)
    for match in found.indices():
        assert steps[-1] <= sum(map(len, match.values()))
        steps.append(0)
    assert found.count() == len(steps) - 1 > 20


def test_the_schema_is_known_without_events():
    from gpu_cep.keywords import make_options
    from gpu_cep.plan.settings import Settings
    from gpu_cep.queries.plans import make_plan

    events = pa.table({"ts": [1, 2], "type": ["A", "B"], "k": ["x", "x"]})
    options = make_options(partition_by="k", strategy="skip_till_any_match")
    plan = make_plan("PATTERN SEQ(A a, B b)", events.schema, options, Settings(output="compressed"))
    found = compressed(events, "PATTERN SEQ(A a, B b)", partition_by="k")
    assert found.table.schema == result_schema(plan, events.schema)
    assert found.table.schema.names[0] == "k"
    assert found.table["event"].to_pylist() == events.to_pylist()


def test_only_what_a_match_binds_is_kept():
    events = pa.table({"ts": range(6), "type": list("BAXABA")})
    assert compressed(events, "PATTERN SEQ(A a, B b)").table["row"].to_pylist() == [1, 3, 4]


@pytest.mark.parametrize("pattern", ["PATTERN SEQ(A a, B b)", "PATTERN SEQ(A a, B b) WHERE a.ts < b.ts"])
def test_nothing_found(pattern):
    for events in (alike(3), alike(3).slice(0, 0)):
        found = compressed(events, pattern)
        assert (found.count(), list(found), repr(found)) == (0, [], "Compressed(0 nodes)")


@pytest.mark.parametrize("pattern", ["SEQ(A a, B b, C c) WHERE a.x < c.x", "SEQ(A a, NOT(X x), B b, C c) WHERE a.x < c.x"])
def test_conditions_share_prefixes(pattern):
    """In the graph of the runs; with a negation, which is judged match by match, in a tree."""
    events = pa.table({"ts": range(5), "type": list("ABCCC"), "x": range(5)})
    found = compressed(events, f"PATTERN {pattern}")
    assert found.table["row"].to_pylist() == [0, 1, 2, 3, 4]
    assert (set(found.table["group"].to_pylist()) == {-1}) == ("NOT" in pattern)
    assert sorted(match["c"] for match in found.indices()) == [(2,), (3,), (4,)]


@pytest.mark.parametrize("window", ["", " WITHIN 150"])
def test_conditions_do_not_keep_the_graph_from_being_small(window):
    """Each rising sequence of a and the b behind it: a node for each event, as many matches as there are sets of them."""
    size = 200
    events = pa.table({"ts": range(size), "type": ["A"] * (size - 1) + ["B"], "x": range(size)})
    found = compressed(events, f"PATTERN SEQ(A a+, B b) WHERE prev(a.x) < a.x{window}")
    nodes = 151 if window else size
    assert found.table.num_rows == nodes
    assert found.count() == 2 ** (nodes - 1) - 1
    assert next(found.indices()) == {"a": (size - 2,), "b": (size - 1,)}


def test_counts_of_many_groups_by_their_sums(monkeypatch):
    """As many as are found, with sums made again as windows slide; and the same as carried from event to event."""
    events = pa.table({"ts": range(40), "type": list("AABAX" * 8), "x": [7 * i % 5 for i in range(40)]})
    rising, rooted = "SEQ(A a{1,3}, B b) WHERE prev(a.x) <= a.x WITHIN 12", "SEQ(A a, AND(A b+, B c)) WHERE a.x < b.x WITHIN 9 EVENTS"
    for pattern in (rising, rooted, "A a+ WITHIN 5"):
        found = compressed(events, f"PATTERN {pattern}")
        number = sum(1 for _ in found.indices())
        counts = set()
        for most in (0, 1 << 20):
            monkeypatch.setattr(paths, "_MOST_GROUPS", most)
            counts.add(found.count())
        assert counts == {number}
        assert number > 20


def test_matches_that_windows_end_have_nodes_of_their_own():
    """Under skip till next match the first start's match ends when its window does, and the second's goes on: no node tells that."""
    events = pa.table({"ts": range(6), "type": list("AABBBB"), "x": range(6)})
    options = {"strategy": "skip_till_next_match", "output": "compressed"}
    found = cep.match(events, "PATTERN SEQ(A a, B b+) WHERE prev(b.x) < b.x WITHIN 4", **options)
    assert sorted(found.indices(), key=str) == [{"a": (0,), "b": (2, 3, 4)}, {"a": (1,), "b": (2, 3, 4, 5)}]
    assert set(found.table["group"].to_pylist()) == {-1}


def test_runs_that_are_all_apart_are_given_up(monkeypatch):
    monkeypatch.setattr(buffer_graph, "_NODES_AT_ALL", 1)
    monkeypatch.setattr(buffer_graph, "_NODES_PER_EVENT", 1)
    events = pa.table({"ts": range(300), "type": ["A"] * 299 + ["B"], "x": range(300)})
    found = compressed(events, "PATTERN SEQ(A a, A b, B c) WHERE a.x + b.x = c.x")
    assert set(found.table["group"].to_pylist()) == {-1}
    assert found.count() == len(list(found.indices())) == 149


def test_streams_can_be_taken_out_and_nodes_cannot():
    events = pa.table({"ts": [1, 2, 3, 4], "type": list("AABB"), "k": [1, 2, 1, 2]})
    found = compressed(events, "PATTERN SEQ(A a, B b)", partition_by="k")
    one = cep.Compressed.from_table(found.table.filter(pa.compute.field("k") == 2))
    assert list(one.indices()) == [{"a": (1,), "b": (3,)}]
    with pytest.raises(cep.EventError, match="nodes are missing"):
        cep.Compressed.from_table(found.table.filter(pa.compute.field("variable") == "b")).count()


def test_what_there_is_not():
    with pytest.raises(TypeError):
        len(compressed(alike(3), "PATTERN A a+"))
    with pytest.raises(cep.UnsupportedError, match="supported: auto, ses_automaton, backtracking, nfab, lazy_chain, lazy_tree, join_tree"):
        compressed(alike(3), "PATTERN A a+", algorithm="brute_force")
    with pytest.raises(cep.UnsupportedError, match="supported: arrow"):
        compressed(alike(3), "PATTERN A a+", result="cudf")
    with pytest.raises(cep.EventError, match="no row numbers"):
        cep.Compressed.from_table(compressed(alike(3), "PATTERN A a+").table.drop_columns("row")).indices()


@pytest.mark.parametrize(
    ("pattern", "output", "words"),
    [
        ("PATTERN A a+", "count", "from the states"),
        ("PATTERN A a+", "compressed", "from the states"),
        ("PATTERN SEQ(A a, A b) WHERE a.ts < b.ts", "count", "from the matches"),
        ("PATTERN SEQ(A a, A b) WHERE a.ts < b.ts", "compressed", "from the runs of nfab"),
    ],
)
def test_explain_says_how(pattern, words, output):
    assert f"{output:<10} {words}" in str(cep.explain(alike(1), pattern, output=output, **ANY))
