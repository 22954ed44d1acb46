"""Contiguous matches that a device reads off lifted labels; the CPU plays the device with spoilt memory: those of the definition."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

import gpu_cep as cep
from gpu_cep.engine.answers import answer
from gpu_cep.engine.events.own_events import TimeSlice
from gpu_cep.engine.events.reported import Reported
from gpu_cep.engine.phase_one.device import disjoint_matches, in_pieces, on_device
from tests.conformance.expectation import answered, expected
from tests.drawn.neighbours import neighbour_cases
from tests.effort import every_pair, examples
from tests.engine.phase_one.test_device_batches import batches_of
from tests.gpu.pieces import Pieces
from tests.gpu.spoilt_device import SpoiltDevice, cupy_if_installed
from tests.results import matches_of

RISE = "SEQ(a, b+, c) WHERE b[1].x > a.x AND b[i].x > b[i-1].x AND c.x < last(b.x)"
PAIRS = "SEQ(a, b, c) WHERE b.x > a.x AND c.x < b.x"
TWICE = "SEQ(a, b+, c{2,3}) WHERE b[1].x > a.x AND b[i].x > b[i-1].x AND c[1].x < last(b.x) AND c[i].x < c[i-1].x"
SUMS = "SEQ(a, b+) WHERE b[1].n - a.n > 2 AND b[i].n * 2 - b[i-1].n > 4"
PROGRAMS = "SEQ(a, b+, c) WHERE abs(b[1].x - a.x) > 1 AND abs(b[i].x - b[i-1].x) > 1 AND NOT (abs(c.x - last(b.x)) > 1)"
EQUAL = "SEQ(a, b{2,}) WHERE [k]"
ALTERNATIVES = [
    "OR(SEQ(a, b+, c), SEQ(d, e)) WHERE b[1].x > a.x AND b[i].x > b[i-1].x AND c.x < last(b.x) AND e.x > d.x + 3 WITHIN 9",
    "SEQ(a, b?, c) WHERE b.x > a.x AND c.n > b.n",
    "OR(SEQ(a, b, c{2}), SEQ(a, b, c{2}, d)) WHERE b.x > a.x AND c[1].x < b.x AND d.n > 4 WITHIN 5 EVENTS",
]
KEYED = "OR(SEQ(a, b), SEQ(a, c, d, e)) WHERE b.x > a.x AND c.x >= a.x AND [k]"
QUERIES = [RISE, f"{RISE} WITHIN 9", f"{RISE} WITHIN 5 EVENTS", PAIRS, f"{PAIRS} WITHIN 3", TWICE, SUMS, PROGRAMS, EQUAL]
# A match that starts with the second fall may end before one that starts with the first.
FALLS = "SEQ(a, b+, c, d, e) WHERE b[i].x > b[i-1].x AND b[1].x > a.x AND c.x < last(b.x)"
CHOICE = "SEQ(a, b+, c) WHERE b[i].x > b[i-1].x WITHIN 9"


cut_batches = on_device._batches


@contextmanager
def device(seed=3, batch=1_000, kept=1_000, lifted=True):
    opened = SpoiltDevice(cupy_if_installed(), seed)
    pieces = Pieces(bytes=1, chunk=1_000, kept_events=kept, batch=batch, bound_events=7, ranked_values=1_000, lifted=lifted)
    with (
        patch("gpu_cep_kernels.device.selection._find_device", lambda: opened),
        patch.object(in_pieces, "memory_of", lambda device, plan: pieces),
        patch.object(on_device, "_batches", lambda source, memory, most: batches_of(source, memory.batch)),
    ):
        yield opened


def events(size=300, seed=5):
    """Events of two streams, with ties and NULLs."""
    random = np.random.default_rng(seed)
    return pa.table(
        {
            "ts": np.cumsum(random.integers(0, 3, size)),
            "x": pa.array(random.integers(0, 9, size).astype(float), mask=random.random(size) < 0.05),
            "n": pa.array(random.integers(0, 9, size), mask=random.random(size) < 0.05),
            "k": random.integers(0, 2, size),
            "s": pa.array([*"pq"]).take(pa.array(random.integers(0, 2, size))),
        }
    )


def events_to_cut(batch):
    return events(300 if batch > 1 else 100)


def found(engine, text, table=None, **options):
    options = {"strategy": "partition_contiguity", "partition_by": "s", "output": "indices", **options}
    return cep.match(events() if table is None else table, f"PATTERN {text}", engine=engine, **options)


@examples(80, 900)
@given(
    neighbour_cases(),
    st.integers(0, 2**32 - 1),
    st.sampled_from([1, 3, 1_000]),
    st.sampled_from([3, 1_000]),
    st.sampled_from([True, True, True, False]),
)
def test_a_device_reads_the_matches_of_the_definition(case, seed, batch, kept, lifted):
    wanted = expected(case)
    with device(seed, batch, kept, lifted), patch.object(disjoint_matches, "BITS", 1):
        assert matches_of(answered(case, engine="gpu", output="indices")) == wanted
        assert sum(row["count"] for row in answered(case, engine="gpu", output="count").to_pylist()) == len(wanted)


# The size of batches is last; a batch takes as long as hundreds of events, so that those of one event cut few.
CUTS = [(None, "position", 20), ("s", "strict", 1_000), ("s", "position", 1), (None, "strict", 20)]


@every_pair(text=[*QUERIES, *ALTERNATIVES], cut=CUTS, output=["indices", "events", "count"])
def test_batches_and_keys_change_nothing(text, cut, output):
    """What is told of the matches is that of the CPU, but that a device looks at no windows."""
    keys, ties, batch = cut
    options, profiles = {"partition_by": keys, "ties": ties, "output": output}, (cep.Profile(), cep.Profile())
    table = events_to_cut(batch)
    wanted = found("cpu", text, table, profile=profiles[0], **options)
    with device(batch=batch):
        assert found("gpu", text, table, profile=profiles[1], **options).equals(wanted)
    assert profiles[0].counts["matches"] > 3
    assert profiles[1].counts == profiles[0].counts
    assert "lift" in profiles[1].seconds
    assert "occurrences" not in profiles[1].seconds


def test_matches_of_a_slice_of_time_start_in_it():
    table = events()
    wanted = found("cpu", RISE, table).num_rows
    plan = cep.explain(table, f"PATTERN {RISE}", strategy="partition_contiguity", partition_by="s", output="indices", engine="cpu").plan
    number = 0
    for own in (TimeSlice(end=80), TimeSlice(80, 150), TimeSlice(begin=150)):
        on_cpu = answer(plan, table, reported=Reported(own))
        with device(batch=50):
            assert answer(replace(plan, settings=replace(plan.settings, engine="gpu")), table, reported=Reported(own)).equals(on_cpu)
        number += on_cpu.num_rows
    assert number == wanted > 20


@every_pair(
    text=[RISE, f"{RISE} WITHIN 9", f"{PAIRS} WITHIN 3", TWICE, FALLS, f"{FALLS} AND [k]", *ALTERNATIVES, KEYED],
    cut=[*CUTS, (["s", "k"], "strict", 7)],
    after_match=["skip_past_last", "skip_to_next"],
    output=["indices", "count"],
)
def test_matches_are_taken_where_they_are_found(text, cut, after_match, output):
    keys, ties, batch = cut
    options, profiles = {"partition_by": keys, "ties": ties, "after_match": after_match, "output": output}, (cep.Profile(), cep.Profile())
    table = events_to_cut(batch)
    wanted = found("cpu", text, table, profile=profiles[0], **options)
    with device(batch=batch), patch.object(disjoint_matches, "BITS", 2):
        assert found("gpu", text, table, profile=profiles[1], **options).equals(wanted)
    assert profiles[0].counts["matches"] > 1
    assert profiles[1].counts["matches"] == profiles[0].counts["matches"]
    assert "lift" in profiles[1].seconds
    assert "occurrences" not in profiles[1].seconds


@pytest.mark.parametrize("after_match", ["all", "skip_past_last", "skip_to_next"])
@pytest.mark.parametrize("text", [*ALTERNATIVES, KEYED, KEYED.removesuffix(" AND [k]")])
def test_matches_that_are_kept_of_all_branches_are_counted(text, after_match):
    options = {"after_match": after_match, "output": "count"}
    wanted = found("cpu", text, **options)
    with device():
        assert found("gpu", text, **options).equals(wanted)


@every_pair(
    text=[f"{RISE} WITHIN 9", f"{PAIRS} WITHIN 3", "SEQ(a, b, c) WHERE b.x >= a.x WITHIN 6", ALTERNATIVES[0]],
    output=["indices", "count"],
    keys=[None, "s"],
)
def test_runs_of_slices_of_a_file_are_settled(tmp_path, text, output, keys):
    parquet.write_table(events(), tmp_path / "events.parquet", row_group_size=20)
    options = {"strategy": "partition_contiguity", "partition_by": keys, "after_match": "skip_past_last", "output": output}
    wanted = cep.match(events(), f"PATTERN {text}", engine="cpu", **options)
    profile = cep.Profile()
    with device(batch=7):
        path = tmp_path / "events.parquet"
        assert cep.match(path, f"PATTERN {text}", engine="gpu", memory="8kB", profile=profile, **options).equals(wanted)
    assert profile.slices is not None
    assert profile.slices[0] > 1
    assert "lift" in profile.seconds


@pytest.mark.parametrize("output", ["indices", "count"])
def test_matches_that_are_not_taken_do_not_come_back(output):
    """Of those that end with one event the first is taken; of the others nothing is asked for, not even how many there are."""
    x = np.tile([*range(20), 3.0], 40)
    table = pa.table({"ts": range(len(x)), "x": x})
    options = {"partition_by": None, "after_match": "skip_past_last", "output": output}
    wanted, asked = found("cpu", RISE, table, **options), []
    with device() as opened:
        download = opened.download
        opened.download = lambda array: (asked.append(int(array.nbytes)), download(array))[1]
        assert found("gpu", RISE, table, **options).equals(wanted)
    every = found("cpu", RISE, table, partition_by=None).num_rows
    assert every > 600
    # the events of matches come back, with their times and rows, or one number of matches
    assert sum(asked) < (40 * len(x) if output == "indices" else 400)


def test_only_events_of_matches_come_back():
    rare = "SEQ(a, b, c) WHERE b.x - a.x > 5 AND c.x > b.x"
    asked = []
    with device() as opened:
        download = opened.download
        opened.download = lambda array: (asked.append(int(array.nbytes)), download(array))[1]
        assert 0 < found("gpu", rare).num_rows < 9
    # what conditions read of most events travels whole
    assert sum(asked) < 300


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (CHOICE, {}),
        ("SEQ(a, b) WHERE b.n * 2 > a.n", {"table": "huge"}),
        ("SEQ(a, b) WHERE twice(b.x) > a.x", {"functions": {"twice": lambda x: x * 2.0}}),
        (RISE, {"output": "compressed"}),
        (f"OR(d, {CHOICE.replace(' WHERE', ') WHERE')}", {}),
    ],
    ids=["choice", "overflow", "function", "compressed", "choice of a branch"],
)
def test_what_labels_do_not_decide_is_left_to_others(text, options):
    table = events()
    if options.pop("table", "") == "huge":
        # where the sum overflows, no run comes to it
        last = pa.array([None] * 299 + [2**62])
        table = pa.concat_tables([table.set_column(2, "n", pa.array([1] * 299 + [None])), table.slice(0, 1).set_column(2, "n", last[-1:])])
    wanted = found("cpu", text, table, **options)
    with device():
        got = found("gpu", text, table, **options)
    same = got.count() == wanted.count() if options.get("output") == "compressed" else got.equals(wanted)
    assert same


def test_without_room_the_cpu_reads_them():
    profiles = cep.Profile(), cep.Profile()
    wanted = found("cpu", RISE, profile=profiles[0])
    with device(lifted=False), patch.object(on_device, "_batches", cut_batches):
        assert found("gpu", RISE, profile=profiles[1]).equals(wanted)
    assert profiles[1].counts == profiles[0].counts
    assert profiles[1].engines == {"gpu": 1}


@pytest.mark.parametrize("output", ["indices", "count"])
def test_limits_name_the_window_of_the_cpu(output):
    told = []
    for engine in ("cpu", "gpu"):
        with device(), pytest.raises(cep.MatchLimitExceeded, match="more than max_matches=10 matches, in the window that starts") as raised:
            found(engine, RISE, max_matches=10, output=output)
        told.append(str(raised.value))
    assert told[0] == told[1]


@pytest.mark.parametrize("either", ["{}", "OR(SEQ(D d, e), {})"])
def test_a_batch_that_leaves_a_choice_takes_back_what_was_counted(either):
    """The last batch alone has an event that may repeat b and be c."""
    x = [*([1.0, 2.0, 1.0] * 20), 1.0, 2.0, 3.0, 4.0]
    table = pa.table({"ts": range(len(x)), "x": x, "type": [*"ABC"] * 20 + ["A", "B", "Z", "Z"]})
    text = f"{either.format('SEQ(A a, b+, c)')} WHERE b.type != 'C' AND c.type != 'B' AND b[i].x > b[i-1].x WITHIN 9"
    options = {"partition_by": None, "output": "count"}
    number = found("cpu", text, table, **options)["count"][0].as_py()
    profile = cep.Profile()
    with device(batch=30):
        assert found("gpu", text, table, max_matches=number, profile=profile, **options)["count"].to_pylist() == [number]
    assert profile.counts["matches"] == number > 19
