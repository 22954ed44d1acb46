"""Walks through the windows of chains on a device, which the CPU plays with spoilt memory: the matches of the CPU and of the definition."""

from __future__ import annotations

import gc
import re
from contextlib import contextmanager
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_cep as cep
from gpu_cep.engine.phase_one.device import (
    chain_walks,
    disjoint_matches,
    in_pieces,
    on_device,
    searched_plans,
    walked_matches,
    window_searches,
)
from gpu_cep.engine.phase_one.device.chain_walks import MOST_LAUNCHES, STEPS_PER_LAUNCH
from tests.effort import every_pair, examples
from tests.engine.matchers.automaton.test_chains import QUERIES, drawn_events
from tests.engine.phase_one.test_device_batches import batches_of
from tests.gpu.pieces import Pieces
from tests.gpu.spoilt_device import SpoiltDevice, cupy_if_installed
from tests.results import matches_of

CHOICE = "SEQ(A a, b+, C c) WHERE b.k > a.k AND c.x > a.x"
NEGATED_CHOICES = [
    "SEQ(A a, NOT(D d), b+, C c) WHERE b.k > a.k",
    "SEQ(NOT(D d), A a, b+, C c) WHERE b.k > a.k AND d.x <= a.x",
]
NEGATED = [
    "SEQ(A a, NOT(D d), B b+, C c) WHERE b.x > a.x",
    "SEQ(A a, B b+, NOT(D d), C c) WHERE d.x > last(b.x) AND d.k != c.k",
    "SEQ(A a, B b+, NOT(D d), C c) WHERE d.x > avg(b.x)",
    "SEQ(NOT(D d), A a, B b) WHERE d.k * 2 > b.k",
    "SEQ(A a, NOT(C c), B b, NOT(D d)) WHERE d.x > a.x AND c.k >= b.k",
    "SEQ(A a, NOT(b), C c)",
    "SEQ(A a, AND(b, NOT(D d)), C c) WHERE b.x > a.x AND d.x > a.x",
    "AND(SEQ(A a, b), NOT(D d)) WHERE d.x > b.x",
]
STEPPING_BACK = [
    "SEQ(A a, B b, C c) WHERE robust_skip_till_next_match { b.x > a.x AND c.x > b.x + 1 }",
    "SEQ(A a, b, C c) WHERE robust_skip_till_next_match { b.x < a.x AND c.k = b.k }",
    "SEQ(a, b, c) WHERE robust_skip_till_next_match { b.x > a.x AND c.x > b.x AND c.k < a.k }",
    "SEQ(A a, B b, C c) WHERE robust_skip_till_next_match { avg(b.k) > a.k AND sum(c.k) + b.k > 3 }",
]
NEGATED_STEPPING_BACK = [
    "SEQ(A a, NOT(D d), B b, C c) WHERE robust_skip_till_next_match { b.x > a.x AND c.k >= b.k AND d.x > b.x }",
    "SEQ(NOT(D d), A a, B b, NOT(C c)) WHERE robust_skip_till_next_match { d.k < b.k AND c.x > avg(b.x) + 1 }",
    "SEQ(a, AND(b, NOT(c)), d) WHERE robust_skip_till_next_match { b.x > a.x AND c.x > d.x AND d.k != a.k }",
    "SEQ(A a, NOT(D d), B b) WHERE robust_skip_till_next_match { d.x > b.x }",
    "SEQ(A a, NOT(D d)) WHERE robust_skip_till_next_match { d.k > a.k }",
]
ALTERNATIVES = [
    "OR(SEQ(A a, B b+, C c), SEQ(A a, D d)) WHERE b[i].x > b[i-1].x AND d.x > a.x",
    "SEQ(A a, B b?, C c) WHERE c.x > a.x",
    "OR(C c, SEQ(NOT(D d), A a, B b)) WHERE d.k * 2 > b.k",
    "OR(SEQ(A a, NOT(D n), B b), SEQ(A a, NOT(C m), B b)) WHERE b.x > a.x",
    "SEQ(A a, OR(B b, D d), C c) WHERE robust_skip_till_next_match { b.x > a.x AND c.x > a.x }",
    "SEQ(OR(A a, B b), C c) WHERE c.x > a.x AND c.k > b.k",
]
SEARCHED = [
    "SEQ(AND(A a, B b), C c) WHERE c.x > a.x AND b.k >= a.k",
    "SEQ(AND(A a, b+), C c) WHERE b[i].x > b[i-1].x AND c.x > avg(b.x)",
    "SEQ(c, AND(A a{1,2}, B b+), d) WHERE sum(b.k) < d.k AND d.x > last(a.x)",
    "SEQ(A a, B b+, c) WHERE robust_skip_till_next_match { b[i].x > b[i-1].x AND c.x < last(b.x) }",
    "SEQ(A a, b+, C c) WHERE robust_skip_till_next_match { b.k > a.k AND c.x > avg(b.x) }",
    "SEQ(AND(a, B b{2}), c+) WHERE robust_skip_till_next_match { c[i].k >= c[i-1].k AND a.x < first(b.x) }",
    "SEQ(A a, B b+, C c{1,3}) WHERE robust_skip_till_next_match { b.k > 0 }",
    "OR(SEQ(AND(A a, B b), C c), SEQ(A a, D d)) WHERE c.x > a.x AND d.x > a.x",
    "SEQ(A a, B b*, C c) WHERE robust_skip_till_next_match { b[i].x > b[i-1].x AND c.x > a.x }",
]
COUNTED = [
    "SEQ(A a, b+, C c) WHERE skip_till_any_match { b[i].k > b[i-1].k AND c.x > avg(b.x) }",
    "OR(SEQ(A a, D d), SEQ(B b, AND(C c, e))) WHERE skip_till_any_match { d.x > a.x AND e.x > c.x }",
]
# Windows of its first branch are left to the CPU.
CHOOSING = "OR(SEQ(A a, b+, C c), SEQ(A a, D d)) WHERE b.k > a.k AND c.x > a.x AND d.x > a.x"
EVERY = [*QUERIES, *NEGATED, *NEGATED_CHOICES, *STEPPING_BACK, *NEGATED_STEPPING_BACK, *ALTERNATIVES, CHOOSING, *SEARCHED, *COUNTED]
ROOMY = Pieces(bytes=1, chunk=1_000, kept_events=1_000, batch=1_000, bound_events=1_000, ranked_values=1_000)


def found(engine, events, text, **options):
    options = {"algorithm": "ses_automaton", "partition_by": "s", "output": "indices", **options}
    return cep.match(events, f"PATTERN {text}", engine=engine, **options)


@contextmanager
def device(seed=3, pieces=ROOMY, steps=STEPS_PER_LAUNCH, launches=MOST_LAUNCHES):
    """A device of a seed, which works in pieces and rests after so many steps; the CPU takes over after so many launches."""
    opened = SpoiltDevice(cupy_if_installed(), seed)
    with (
        patch("gpu_cep_kernels.device.selection._find_device", lambda: opened),
        patch.object(in_pieces, "memory_of", lambda device, plan: pieces),
        patch.object(on_device, "_batches", lambda source, memory, most: batches_of(source, memory.batch)),
        patch.multiple(chain_walks, STEPS_PER_LAUNCH=steps, MOST_LAUNCHES=launches),
        patch.object(window_searches, "STEP_LIMITS", (steps, steps * launches)),
    ):
        yield


@pytest.mark.filterwarnings("ignore::gpu_cep.AbsentValueWarning")
@pytest.mark.parametrize("output", ["indices", "count"])
@examples(100, 600)
@given(
    text=st.sampled_from(EVERY),
    seed=st.integers(0, 2**32 - 1),
    size=st.integers(0, 60),
    window=st.sampled_from(["0", "7", "30", "9 EVENTS"]),
    ties=st.sampled_from(["strict", "position"]),
    steps=st.integers(1, 7) | st.just(STEPS_PER_LAUNCH),
    launches=st.integers(1, MOST_LAUNCHES) | st.just(1_000),
    sizes=st.tuples(*[st.sampled_from([1, 5, 1_000])] * 3),
)
def test_a_device_walks_to_the_matches_of_the_cpu(output, text, seed, size, window, ties, steps, launches, sizes):
    events, text, options = drawn_events(np.random.default_rng(seed), size), f"{text} WITHIN {window}", {"ties": ties, "output": output}
    batch, bound, walked = sizes
    pieces = Pieces(bytes=1, chunk=1_000, kept_events=1_000, batch=batch, bound_events=bound, ranked_values=1_000, walked=walked)
    profiles = cep.Profile(), cep.Profile()
    wanted = found("cpu", events, text, profile=profiles[0], **options)
    with device(seed, pieces, steps, launches):
        assert found("gpu", events, text, profile=profiles[1], **options).equals(wanted)
    assert profiles[1].counts.get("matches", 0) == profiles[0].counts.get("matches", 0)


@pytest.mark.parametrize("steps", [1, 2, 7, STEPS_PER_LAUNCH])
@pytest.mark.parametrize("text", [*QUERIES, *STEPPING_BACK, *(text for text in ALTERNATIVES if "NOT" not in text), CHOOSING])
def test_all_matches_without_a_choice_are_found_on_the_device(text, steps):
    events, profiles = drawn_events(np.random.default_rng(7), 400), (cep.Profile(), cep.Profile())
    wanted = found("cpu", events, f"{text} WITHIN 30", profile=profiles[0])
    with device(steps=steps, launches=1_000):
        assert found("gpu", events, f"{text} WITHIN 30", profile=profiles[1]).equals(wanted)
    assert profiles[0].counts["matches"] > 3
    counts = profiles[1].counts
    chosen = text in (CHOICE, CHOOSING)
    assert (counts.pop("left", 0) > 0) == chosen
    if not chosen:
        assert counts == profiles[0].counts


@pytest.mark.parametrize("text", [*NEGATED, *NEGATED_CHOICES, *NEGATED_STEPPING_BACK, *(text for text in ALTERNATIVES if "NOT" in text)])
def test_negations_are_judged_on_the_device(text):
    """Windows that are left to the CPU come with the events that negations rule out."""
    events, profile = drawn_events(np.random.default_rng(7), 400), cep.Profile()
    wanted, counted = (found("cpu", events, f"{text} WITHIN 30", output=output) for output in ("indices", "count"))
    with device():
        assert found("gpu", events, f"{text} WITHIN 30", profile=profile).equals(wanted)
        assert found("gpu", events, f"{text} WITHIN 30", output="count").equals(counted)
    counts = profile.counts
    assert 3 < wanted.num_rows <= counts["matches"] < counts["candidates"] + counts.get("left", 0)
    # its branches bind the same variables
    assert (wanted.num_rows < counts["matches"]) == (text == ALTERNATIVES[3])
    assert ("left" in counts) == (text in NEGATED_CHOICES)


def test_scopes_that_begin_in_another_batch_are_left_to_the_cpu():
    events = drawn_events(np.random.default_rng(7), 400)
    for text in (*NEGATED, NEGATED_STEPPING_BACK[1]):
        wanted = found("cpu", events, f"{text} WITHIN 30", partition_by=None)
        with device(pieces=Pieces(1, 1_000, 1_000, 30, 1_000, 1_000)):
            assert found("gpu", events, f"{text} WITHIN 30", partition_by=None).equals(wanted)


@every_pair(
    cut=[("s", 1_000, 1_000), ("s", 250, 1_000), (None, 30, 1_000), ("s", 1_000, 7), ("s", 5, 2), ("[s]", 1_000, 1_000)],
    text=[
        *QUERIES,
        "SEQ(A a, B b+, C c)",
        NEGATED[0],
        NEGATED_CHOICES[0],
        STEPPING_BACK[0],
        NEGATED_STEPPING_BACK[0],
        ALTERNATIVES[0],
        CHOOSING,
        SEARCHED[0],
        SEARCHED[3],
    ],
    after_match=["skip_past_last", "skip_to_next"],
    output=["indices", "count"],
)
def test_matches_that_must_not_overlap_are_walked_to(cut, text, after_match, output):
    """Whatever the batches, the windows that are walked at a time, and the windows that are left to the CPU; also with derived keys."""
    keys, batch, walked = cut
    if keys == "[s]":
        keys, key = None, "AND [s]" if "WHERE" in text else "WHERE [s]"
        text = f"{text.removesuffix(' }')} {key}{' }' * text.endswith(' }')}"
    # few where each batch has few: a batch takes as long as hundreds of events
    events = drawn_events(np.random.default_rng(7), 200 if batch < 10 else 400)
    pieces = Pieces(bytes=1, chunk=1_000, kept_events=1_000, batch=batch, bound_events=50, ranked_values=1_000, walked=walked)
    options, profile = {"after_match": after_match, "output": output, "partition_by": keys}, cep.Profile()
    wanted = found("cpu", events, f"{text} WITHIN 30", **options)
    with device(pieces=pieces), patch.object(disjoint_matches, "BITS", 2):
        assert found("gpu", events, f"{text} WITHIN 30", profile=profile, **options).equals(wanted)
    assert "occurrences" in profile.seconds
    assert profile.counts["matches"] > 1
    assert ("left" in profile.counts) == text.startswith((CHOICE, NEGATED_CHOICES[0], CHOOSING))


@contextmanager
def walks_of_batches():
    """How often batches are walked, as the length of a list."""
    walked, walk = list[object](), walked_matches._walk_batch
    with patch.object(walked_matches, "_walk_batch", lambda *given: walked.append(given) or walk(*given)):
        yield walked


@every_pair(after_match=["skip_past_last", "skip_to_next"], stream=["p", "q"])
def test_matches_that_are_counted_come_back_where_another_batch_leaves_windows(after_match, stream):
    """They are counted once. One stream has no event that is both a b and a C; windows of the other are left to the CPU."""
    events = drawn_events(np.random.default_rng(7), 400)
    decided = pc.and_(pc.equal(events["s"], stream), pc.equal(events["type"].cast(pa.string()), "C"))
    events = events.set_column(events.column_names.index("k"), "k", pc.if_else(decided, -9, events["k"]))
    options, profiles = {"after_match": after_match}, (cep.Profile(), cep.Profile())
    with device(pieces=Pieces(1, 1_000, 1_000, 250, 1_000, 1_000)):
        found("gpu", events, f"{CHOICE} WITHIN 30", profile=profiles[0], **options)
        most, options["output"] = profiles[0].counts["matches"], "count"
        with walks_of_batches() as walked:
            counted = found("gpu", events, f"{CHOICE} WITHIN 30", profile=profiles[1], max_matches=most, **options)
    # a batch that was counted is walked again, and none behind the one that leaves windows
    assert len(walked) == {"p": 3, "q": 2}[stream]
    assert counted.equals(found("cpu", events, f"{CHOICE} WITHIN 30", **options))
    assert profiles[1].counts == profiles[0].counts
    assert counted.num_rows == 2
    assert 0 < profiles[0].counts["left"] < profiles[0].counts["candidates"] // 2


@pytest.mark.parametrize("after_match", ["all", "skip_to_next"])
def test_matches_are_counted_wherever_batches_cut_streams(after_match):
    events = drawn_events(np.random.default_rng(7), 400)
    with device(pieces=Pieces(1, 1_000, 1_000, 40, 1_000, 1_000)), walks_of_batches() as walked:
        counted = found("gpu", events, f"{QUERIES[0]} WITHIN 30", after_match=after_match, output="count")
    assert counted.equals(found("cpu", events, f"{QUERIES[0]} WITHIN 30", after_match=after_match, output="count"))
    assert len(walked) > 5
    assert not any(given[0].counts is False for given in walked)


def test_the_matches_are_those_of_the_definition():
    @examples(60, 400)
    @given(
        text=st.sampled_from([*EVERY, "SEQ(A a, b+, C c)"]),
        seed=st.integers(0, 2**32 - 1),
        size=st.integers(0, 25),
        steps=st.integers(1, 7),
        after_match=st.sampled_from(["all", "skip_past_last", "skip_past_last", "skip_to_next"]),
    )
    def check(text, seed, size, steps, after_match):
        events, text = drawn_events(np.random.default_rng(seed), size), f"{text} WITHIN 20"
        wanted = matches_of(found("cpu", events, text, algorithm="brute_force", after_match=after_match))
        with device(seed, steps=steps), patch.object(disjoint_matches, "BITS", 1):
            assert matches_of(found("gpu", events, text, after_match=after_match)) == wanted

    with pytest.warns(cep.AbsentValueWarning):
        check()


RISING = "SEQ(A a, B b+, C c) WHERE b[i].x > b[i-1].x AND c.x < last(b.x) WITHIN 60"
ANY_ORDER = "SEQ(AND(A a, B b+), C c) WHERE b[i].x > b[i-1].x AND c.x < last(b.x) WITHIN 60"


@pytest.mark.parametrize(("launches", "pieces"), [(2, ROOMY), (MOST_LAUNCHES, Pieces(1, 1_000, 1_000, 1_000, 1_000, 1_000, 0))])
@pytest.mark.parametrize(("text", "output"), [(RISING, "indices"), (RISING, "count"), (ANY_ORDER, "indices"), (ANY_ORDER, "count")])
def test_long_runs_and_too_little_memory_leave_windows_to_the_cpu(launches, pieces, text, output):
    """They are counted, which explain tells."""
    events, profile = drawn_events(np.random.default_rng(7), 400), cep.Profile()
    wanted = found("cpu", events, text, output=output)
    with device(steps=3, launches=launches, pieces=pieces):
        assert found("gpu", events, text, output=output, profile=profile).equals(wanted)
    counts = profile.counts
    assert counts["left"] == counts["candidates"] if pieces.walked == 0 else 0 < counts["left"] < counts["candidates"]


@pytest.mark.parametrize("fitting", [True, False])
def test_a_run_takes_no_more_steps_in_a_launch_than_it_may(fitting):
    """Whether it binds all events that it looks at, or none of them."""
    x = [0.0, *[1.0 if fitting else -1.0] * 50, 2.0]
    events = pa.table({"ts": range(52), "type": ["A", *"B" * 50, "C"], "x": x, "k": [0] * 52, "s": ["p"] * 52})
    for launches, left in ((5, 1), (6, 0)):
        profile = cep.Profile()
        with device(steps=10, launches=launches):
            found("gpu", events, "SEQ(A a, B b+, C c) WHERE b.x > a.x WITHIN 60", profile=profile)
        assert profile.counts.get("left", 0) == left


def test_events_that_negations_look_at_are_steps_of_a_robust_run():
    """Each b ends in a match that the last d rules out, after a look at each event of d's kind."""
    types = ["A", *"D" * 30, *"B" * 4]
    events = pa.table({"ts": range(35), "type": types, "x": [0.0] * 30 + [9.0] + [1.0] * 4, "k": [0] * 35, "s": ["p"] * 35})
    for launches, left in ((2, 1), (5, 0)):
        profile = cep.Profile()
        text = "SEQ(A a, NOT(D d), B b) WHERE robust_skip_till_next_match { b.x > a.x AND d.x > b.x } WITHIN 60"
        with device(steps=30, launches=launches):
            assert found("gpu", events, text, profile=profile).num_rows == 0
        assert profile.counts.get("left", 0) == left


def test_an_overflow_beside_a_match_names_its_window_and_condition():
    events = pa.table({"ts": range(6), "type": list("ADBADB"), "x": [0.0] * 6, "k": [2**62] * 6, "s": ["p"] * 6})
    for engine in ("cpu", "gpu"):
        with device(), pytest.raises(cep.CepError, match=r"overflow.*d\.k \+ b\.k > a\.k.*starts at ts=0"):
            found(engine, events, "SEQ(A a, NOT(D d), B b) WHERE d.k + b.k > a.k WITHIN 4")


@pytest.mark.parametrize(("steps", "elements"), [(1, "A a, B b+"), (STEPS_PER_LAUNCH, "A a, B b+"), (8, "AND(A a, B b+)")])
def test_an_overflow_names_the_first_window_and_its_condition(steps, elements):
    types, k = list("AABBCABC"), [0, 0, 2**62, 2**62, 0, 0, 1, 0]
    events = pa.table({"ts": range(8), "type": types, "x": [0.0] * 8, "k": k, "s": ["p"] * 8})
    told = []
    for engine in ("cpu", "gpu"):
        with device(steps=steps), pytest.raises(cep.CepError, match=r"overflow.*sum\(b\.k\) > a\.k.*starts at ts=0") as raised:
            found(engine, events, f"SEQ({elements}, C c) WHERE sum(b.k) > a.k WITHIN 4")
        told.append(str(raised.value))
    assert told[0] == told[1]


@pytest.mark.parametrize("limit", ["max_matches", "max_steps"])
@pytest.mark.parametrize("text", [RISING, ANY_ORDER])
def test_limits_name_a_window(text, limit):
    events = drawn_events(np.random.default_rng(7), 400)
    with device(), pytest.raises(cep.MatchLimitExceeded, match=rf"more than {limit}=3 .* in the window that starts at ts="):
        found("gpu", events, text, **{limit: 3})


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("SEQ(C c, AND(A a, B b+)) WHERE avg(b.x) > a.x AND c.x < a.x", {}),
        ("SEQ(A a, NOT(D d), B b{2}, C c) WHERE d.x > a.x AND c.x > a.x", {"strategy": "robust_skip_till_next_match"}),
        ("SEQ(A a, B b, C c) WHERE b.x < a.x", {"strategy": "skip_till_any_match"}),
        ("SEQ(A a, B b, C c) WHERE b.x < a.x", {"limit_per_start": 1}),
        ("SEQ(A a, B b, C c) WHERE b.x < a.x", {"algorithm": "nfab"}),
        ("SEQ(A a, B b, C c) WHERE less(b.k, a.k) > 0", {"functions": {"less": lambda one, other: other - one}}),
        ("SEQ(A a, B b, C c)", {}),
        ("SEQ(A a, AND(B b{2}, NOT(D d)), C c) WHERE b.x < a.x", {}),
    ],
)
def test_other_questions_are_not_walked_on_the_device(text, options):
    """Conditions that wait for the end, NOT beside quantified variables, other strategies, the best matches of a start, other
    algorithms, functions of the CPU; and what labels decide.
    """
    events = drawn_events(np.random.default_rng(7), 200)
    with device(), patch.object(searched_plans, "match_on_device", side_effect=AssertionError("walked")):
        assert found("gpu", events, f"{text} WITHIN 30", **options).equals(found("cpu", events, f"{text} WITHIN 30", **options))


@pytest.mark.parametrize(
    ("text", "where"),
    [
        (RISING, "gpu (cpu where an event leaves a choice)"),
        (NEGATED[0], "gpu (cpu where an event leaves a choice)"),
        (NEGATED_STEPPING_BACK[0], "gpu (cpu where a run takes many steps)"),
        (ALTERNATIVES[0], "gpu (cpu where an event leaves a choice)"),
        (ANY_ORDER, "gpu (cpu where a search takes many steps)"),
        ("OR(D d, SEQ(AND(A a, B b), C c)) WHERE c.x > a.x", "gpu (cpu where a search takes many steps)"),
        ("SEQ(AND(A a, B b), NOT(D d), C c) WHERE c.x > a.x", "cpu"),
    ],
)
def test_explain_says_where_windows_are_searched(text, where):
    with device():
        told = str(cep.explain(drawn_events(np.random.default_rng(7), 200), f"PATTERN {text}", engine="gpu", run=True))
    assert f", phase 2, {where}" in told
    assert f"gpu for phase 1 (the CPU with spoilt memory), {where} for phase 2" in told


def test_the_tables_of_all_branches_are_counted():
    either = ", ".join(f"OR(B b{n}, C c{n})" for n in range(7))
    text = f"SEQ(A a, {either}) WHERE {' AND '.join(f'b{n}.x > a.x' for n in range(7))} WITHIN 30"
    events, opened = drawn_events(np.random.default_rng(7), 1), SpoiltDevice(cupy_if_installed(), 3)
    with patch("gpu_cep_kernels.device.selection._find_device", lambda: opened):
        with pytest.raises(cep.EngineUnavailable) as raised:
            found("gpu", events, text, gpu_memory=1)
        least = int(re.search(r"the query takes ([\d,]+) bytes at least", str(raised.value))[1].replace(",", ""))
        # the traceback may still hold arrays
        gc.collect()
        ledger = opened.xp.ledger
        before = ledger.live
        ledger.restart()
        found("gpu", events, text, gpu_memory=least, threads=1)
    assert 100_000 < ledger.peak - before <= least


def test_a_compressed_result_is_not_walked_on_the_device():
    events = drawn_events(np.random.default_rng(7), 200)
    with device(), patch.object(walked_matches, "walk_tables", side_effect=AssertionError("walked")):
        compressed = found("gpu", events, RISING, output="compressed")
    assert compressed.count() == found("cpu", events, RISING).num_rows > 3
