"""Where rare events are needed, only what windows around them reach is kept; nothing else changes."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_cep as cep
from gpu_cep.engine.accounting.profile import Profile
from gpu_cep.engine.input import chunks
from gpu_cep.engine.input.pieces import Pieces
from gpu_cep.engine.phase_one.label_events import BLOCK
from gpu_cep.engine.phase_one.rare_events import _merge_spans

SIZE = 400_000
SEQUENCE = "PATTERN SEQ(A a, B b, C c) WHERE a.x < b.x"
OTHERS = ["filter", "partition", "summary", "chain", "overlap"]


def events(*, share=2e-4, rare="C", size=SIZE, seed=3, **columns):
    """Events one tick apart, of which `share` are of the type `rare`."""
    random = np.random.default_rng(seed)
    types = np.array(["A", "B", "C", "D"])
    shares = [share if name == rare else (1 - share) / 3 for name in types]
    drawn = {"ts": np.arange(size), "type": types[random.choice(4, size, p=shares)], "x": random.random(size)}
    return pa.table(drawn | columns)


def kept(table, query, **options):
    """How many events are kept, where the matches are those without the step."""
    profile = Profile()
    options = {"strategy": "skip_till_any_match", "output": "indices", **options}
    found = cep.match(table, query, profile=profile, **options)
    assert found.equals(cep.match(table, query, **{**options, "prune": [step for step in OTHERS if step in options.get("prune", OTHERS)]}))
    assert found.num_rows
    return profile.counts["filtered"]


@pytest.mark.parametrize(("rare", "sides"), [("A", 1), ("B", 2), ("C", 1)])
def test_windows_reach_the_sides_on_which_others_are(rare, sides):
    """Three types of four have labels; few windows overlap."""
    table = events(rare=rare)
    number = table["type"].to_pylist().count(rare)
    assert kept(table, f"{SEQUENCE} WITHIN 30") == pytest.approx(number * (1 + sides * 30 * 2 / 3), rel=0.1)


@given(st.lists(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), max_size=5), min_size=1, max_size=3))
def test_spans_are_merged_where_they_meet(parts):
    """Of rows at times of their own each begins no earlier, and ends no earlier, than the one before."""
    steps = np.cumsum([[0, 0], *([step, step] for part in parts for step, _ in part)], axis=0)[1:]
    widths = np.array([width for part in parts for _, width in part], np.int64)
    spans = np.stack([steps[:, 0], np.maximum.accumulate(steps[:, 1] + widths + 1)]) if len(steps) else np.empty((2, 0), np.int64)
    begins, ends = _merge_spans(np.split(spans, np.cumsum([len(part) for part in parts])[:-1], axis=1))
    held = sorted({row for begin, end in spans.T.tolist() for row in range(begin, end)})
    assert [row for begin, end in zip(begins, ends, strict=True) for row in range(begin, end)] == held
    assert (begins[1:] > ends[:-1]).all()


def test_nothing_is_kept_where_there_is_no_rare_event():
    table, profile = events(share=0.0), Profile()
    assert cep.match(table, f"{SEQUENCE} WITHIN 30", output="count", profile=profile)["count"].to_pylist() == [0]
    assert profile.counts["filtered"] == 0


def test_a_branch_may_need_no_event():
    """It has no matches; the other one without `b?` needs frequent ones."""
    assert kept(events(), "PATTERN OR(SEQ(A a, C c), SEQ(B b?, NOT(D d))) WITHIN 4") == SIZE


@pytest.mark.parametrize(
    "pattern", ["SEQ(A a, C c, NOT(B b))", "SEQ(NOT(B b), C c, A a)", "SEQ(A a, NOT(B b), C c)", "AND(C c, A a, NOT(B b))"]
)
def test_negations_look_beyond_matches(pattern):
    assert kept(events(), f"PATTERN {pattern} WITHIN 4") < SIZE / 100


@pytest.mark.parametrize("strategy", ["skip_till_next_match", "robust_skip_till_next_match", "partition_contiguity", "skip_till_any_match"])
@pytest.mark.parametrize("pattern", ["SEQ(A a, C c+)", "SEQ(C c+, A a)", "SEQ(A a, AND(B b+, C c+))", "AND(C c, A a+)"])
def test_bindings_that_could_go_on(pattern, strategy):
    assert kept(events(share=0.01), f"PATTERN {pattern} WITHIN 4", strategy=strategy) < SIZE / 5


def test_what_is_between_the_events_of_a_binding_is_kept():
    """A run of rare events alone ends at the next event of another kind."""
    table = events(share=0.02)
    assert kept(table, "PATTERN C c+ WHERE count(c) = 1 WITHIN 4", strategy="strict_contiguity") < SIZE / 4


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_keep_the_same(threads):
    table = events()
    assert kept(table, f"{SEQUENCE} WITHIN 30", threads=threads) == kept(table, f"{SEQUENCE} WITHIN 30", threads=3)


@pytest.mark.parametrize(
    ("query", "share", "options"),
    [
        (SEQUENCE, 2e-4, {}),
        (f"{SEQUENCE} WITHIN 100000", 2e-4, {}),
        (f"{SEQUENCE} WITHIN 30", 2e-4, {"prune": OTHERS}),
        (f"{SEQUENCE} WITHIN 30", 0.2, {}),
    ],
)
def test_all_are_kept_where_little_is_promised(query, share, options):
    """Without a window, with one that reaches nearly all, without the step, and where no type is rare."""
    table = events(share=share, size=100_000)
    labelled = sum(kind != "D" for kind in table["type"].to_pylist())
    assert kept(table, query, strategy="skip_till_next_match", **options) == labelled


def test_windows_of_events_are_left_alone():
    """Positions count in them."""
    assert kept(events(), f"{SEQUENCE} WITHIN 30 EVENTS", strategy="skip_till_next_match") == SIZE


def test_all_are_kept_of_events_in_no_order():
    """Whether a sample shows it or not."""
    table = events()
    whole = table["type"].to_pylist()
    labelled = sum(kind != "D" for kind in whole)
    shuffled = table.take(np.random.default_rng(1).permutation(SIZE))
    assert kept(shuffled, f"{SEQUENCE} WITHIN 30") == labelled
    for place in (77_000, BLOCK - 1, SIZE // 2 - 1):
        times = np.arange(SIZE)
        times[[place, place + 1]] = times[[place + 1, place]]
        swapped = table.set_column(0, "ts", pa.array(times))
        for threads in (1, 2):
            assert kept(swapped, f"{SEQUENCE} WITHIN 30", threads=threads) == labelled


def in_chunks(table, *cuts):
    """The rows as chunks that begin at these rows."""
    borders = sorted({0, len(table), *cuts})
    return pa.concat_tables([table.slice(low, high - low) for low, high in pairwise(borders)])


@pytest.mark.parametrize(("window", "share"), [(30, 2e-4), (3_000, 1e-5), (20_000, 1e-5)])
@pytest.mark.parametrize("threads", [1, 3])
def test_windows_reach_from_chunk_to_chunk(monkeypatch, window, share, threads):
    """Chunks begin at a rare event, beside others, and so near one another that a window reaches over several."""
    monkeypatch.setattr(chunks, "FEWEST_ROWS", 0)
    table = events(size=300_000, share=share, rare="B")
    rare = np.flatnonzero(np.array(table["type"]) == "B")
    cuts = [*rare[:2], *(rare[2:] + 1), *(rare[1] + np.arange(5)), *rare[-1] + np.arange(-40, 40, 7), *range(0, 300_000, 70_000)]
    query, options = f"{SEQUENCE} WITHIN {window}", {"threads": threads, "strategy": "skip_till_next_match"}
    whole = kept(table, query, **options)
    assert kept(in_chunks(table, *cuts), query, **options) == whole < SIZE / 3


def test_times_that_fall_between_chunks_alone(monkeypatch):
    monkeypatch.setattr(chunks, "FEWEST_ROWS", 0)
    table = events()
    labelled = sum(kind != "D" for kind in table["type"].to_pylist())
    for place in (77_000, SIZE // 2):
        times = np.arange(SIZE)
        times[place:] -= 2
        fallen = table.set_column(0, "ts", pa.array(times))
        for threads in (1, 2):
            assert kept(in_chunks(fallen, place), f"{SEQUENCE} WITHIN 30", threads=threads) == labelled


def test_times_of_long_chunks_are_not_joined(monkeypatch):
    """Nor are they where windows reach from one to the next."""
    joined = []
    whole = Pieces.__dict__["whole"].func
    monkeypatch.setattr(Pieces, "whole", property(lambda pieces: joined.append(len(pieces.arrays)) or whole(pieces)))
    table = events()
    times = pa.chunked_array([pa.array(range(low, low + SIZE // 4)) for low in range(0, SIZE, SIZE // 4)])
    chunked = table.set_column(0, "ts", times)
    found = cep.match(chunked, f"{SEQUENCE} WITHIN 30", strategy="skip_till_any_match", output="indices", threads=1)
    assert found.num_rows
    assert max(joined, default=1) == 1


def test_streams_share_their_times():
    """Events of one stream are kept for rare ones of another: what streams there are is not asked for."""
    table = events(k=np.arange(SIZE) % 4)
    number = table["type"].to_pylist().count("C")
    assert kept(table, f"{SEQUENCE} WITHIN 30", partition_by="k") == pytest.approx(number * 21, rel=0.1)


def test_each_branch_has_its_own_rare_variable():
    kinds = np.array(["A", "B", "C", "D"])[np.random.default_rng(5).choice(4, SIZE, p=[0.0002, 0.4996, 0.0002, 0.5])]
    table = events().set_column(1, "type", pa.array(kinds))
    number = np.isin(kinds, ["A", "C"]).sum()
    query = "PATTERN OR(SEQ(A a, B b), SEQ(D d, C c)) WITHIN 20"
    # each reaches one side: the B behind an A, the D before a C, and of the other type as many
    assert kept(table, query) == pytest.approx(number * 41, rel=0.1)


def test_variables_of_several_words():
    """The rare variable is the last of 70."""
    alternatives = ", ".join(f"e{n}" for n in range(69))
    conditions = " AND ".join(f"e{n}.type = 'A' AND e{n}.x > {1 - (n + 1) / 69}" for n in range(69))
    table = events()
    number = table["type"].to_pylist().count("C")
    query = f"PATTERN SEQ(OR({alternatives}), C c) WHERE {conditions} WITHIN 10"
    assert kept(table, query, strategy="skip_till_next_match") == pytest.approx(number * (1 + 10 / 3), rel=0.1)


def test_rows_that_are_kept_without_labels():
    """Contiguity asks for all rows between those of a match."""
    table = events(share=5e-4)
    number = table["type"].to_pylist().count("C")
    query = "PATTERN SEQ(A a, B b, C c) WITHIN 30"
    assert kept(table, query, strategy="strict_contiguity") == pytest.approx(number * 31, rel=0.1)


@pytest.mark.parametrize("kind", [pa.float64(), pa.timestamp("us"), pa.int32()])
def test_types_of_time(kind):
    table = events()
    number = table["type"].to_pylist().count("C")
    cast = table.set_column(0, "ts", table["ts"].cast(pa.int64()).cast(kind))
    assert kept(cast, f"{SEQUENCE} WITHIN 30", time_unit="us") == pytest.approx(number * 21, rel=0.1)


def test_the_plan_says_so():
    text = str(cep.explain(events(size=10), f"{SEQUENCE} WITHIN 30"))
    assert "reach      where rare events are needed" in text
    assert "reach  " not in str(cep.explain(events(size=10), f"{SEQUENCE} WITHIN 30 EVENTS"))
