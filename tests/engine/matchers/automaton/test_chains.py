"""The walk over chains: the matches of the walk for all patterns, of the search and of the definition, whatever is asked for."""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_cep as cep
from gpu_cep.engine.matchers.automaton import ses_automaton, walks
from gpu_cep.engine.matchers.match_tables import new_match_table
from gpu_cep_kernels.automaton.chain_runs import walk_chains, walk_compared_chains
from gpu_cep_kernels.compile.jit import plain
from gpu_cep_kernels.rules.tables import Status
from tests.effort import examples
from tests.kernels.runs import from_start
from tests.results import matches_of

AFTER_MATCH = ("all", "skip_past_last", "skip_to_next")


@pytest.fixture
def walked(monkeypatch):
    """Why each call of the walk over chains stopped."""
    statuses = []

    def noting(walk, *arguments):
        statuses.append(walk(*arguments))
        return statuses[-1]

    for walk in (walk_chains, walk_compared_chains):
        monkeypatch.setattr(walks, walk.__name__, partial(noting, walk))
    return statuses


def found(events, text, **options):
    options = {"algorithm": "ses_automaton", "partition_by": "s", "threads": 1, "output": "indices", **options}
    result = cep.match(events, text, **options)
    return result if options["output"] == "count" else matches_of(result)


def without_chains(monkeypatch, walked, *strategies):
    """Only these strategies are walked from now on, and in the general way."""
    monkeypatch.setattr(walks, "_CHAINED", ())
    monkeypatch.setattr(walks, "ROBUST", "")
    monkeypatch.setattr(walks, "_WALKED", strategies)
    walked.clear()


def drawn_events(random, size):
    """Events with ties, NULLs and NaN, of two streams."""
    x = random.integers(-5, 5, size).astype(np.float64)
    x[random.random(size) < 0.05] = np.nan
    return pa.table(
        {
            "ts": np.cumsum(random.integers(0, 3, size)),
            "type": pa.array(random.choice(list("ABCD"), size)).dictionary_encode(),
            "x": pa.array(x, mask=random.random(size) < 0.1),
            "y": pa.array(random.integers(-5, 5, size) / 2, mask=random.random(size) < 0.3),
            "k": pa.array(random.integers(-5, 5, size), mask=random.random(size) < 0.1),
            "s": random.choice(["p", "q"], size),
        }
    )


QUERIES = [
    "SEQ(A a, B b+, C c) WHERE b[i].x > b[i-1].x AND c.x < last(b.x)",
    "SEQ(A a, B b+, C c) WHERE avg(b.x) > a.x",
    "SEQ(A a, B b+, C c) WHERE a.x <= avg(b.x) AND c.x > avg(b.x) AND count(b.x) > 1",
    "SEQ(A a, B b+, C c) WHERE b[i].x >= avg(b[..i-1].x) AND avg(b.y) < c.x AND count(b.x) < 4",
    "SEQ(A a, B b+, C c) WHERE b[i].x > b[i-1].x AND b.k >= a.k AND c.x > a.x AND c.k < a.k",
    "SEQ(A a, B b+, C c, D d+) WHERE sum(b.k) < c.k AND d.x >= a.x",
    "SEQ(A a, B b+, C c+, D d) WHERE min(b.x) < max(c.x) AND count(c) > 1 AND d.k >= avg(b.k)",
    "SEQ(A a, B b, C c) WHERE b.x < a.x AND a.k <= c.k",
    "SEQ(A a, B b, C c) WHERE b.k = a.k AND c.x != a.x",
    "SEQ(A a, B b{2,3}, C c) WHERE b.x >= first(b.x) AND c.k > a.k",
    "SEQ(A a, B b{2}) WHERE b.x > a.x",
    "SEQ(A a, B b{2,3}) WHERE b.k > a.k",
    "SEQ(A a+, B b) WHERE a[i].k >= a[i-1].k AND b.k > first(a.k)",
    "SEQ(A a+, B b) WHERE a[1].k > 0 AND b.k > first(a.k)",
    "SEQ(A a+, B b) WHERE last(a.x) < b.x",
    "SEQ(A a, B b+, C c+) WHERE last(b.k) >= c.k",
    "SEQ(A a, B b+) WHERE b.x > a.x",
    "SEQ(A a, b, C c) WHERE b.x < a.x AND c.k * 2 > b.k",
    "SEQ(A a, b+, C c) WHERE b.k > a.k AND c.x > a.x",
]


ROBUST = [
    "SEQ(A a, B b, C c) WHERE b.x > a.x AND c.x > b.x + 1",
    "SEQ(A a, b, C c) WHERE b.x < a.x AND c.k = b.k",
    "SEQ(A a, B b, B c, C d) WHERE b.k >= a.k AND c.k > b.k AND d.x > c.x",
    "SEQ(A a, B b, C c) WHERE avg(b.k) > a.k AND sum(c.k) + b.k > 3",
    "SEQ(a, b, c) WHERE b.x > a.x AND c.x > b.x AND c.k < a.k",
]


@pytest.mark.parametrize("window", [3, 60])
@pytest.mark.parametrize("text", QUERIES)
def test_all_ways_find_the_same_matches(monkeypatch, walked, text, window):
    events = drawn_events(np.random.default_rng(7), 1_500)
    query = f"PATTERN {text} WITHIN {window}"
    forms = [{"after_match": kept, "output": output} for kept in AFTER_MATCH for output in ("indices", "count")]
    chains = [found(events, query, **form) for form in forms]
    assert walked
    without_chains(monkeypatch, walked, "skip_till_next_match")
    assert [found(events, query, **form) for form in forms] == chains
    without_chains(monkeypatch, walked)
    assert [found(events, query, **form) for form in forms] == chains
    assert not walked


def test_no_index_of_a_walk_is_negative(monkeypatch):
    """Also before a run has begun, where no variable binds an event."""
    events, texts, walked = drawn_events(np.random.default_rng(7), 60), QUERIES[1::6], []

    def strictly(walk, *arguments):
        with np.errstate(all="ignore"):
            walked.append(plain(walk)(*map(from_start, arguments)))
        return walked[-1]

    wanted = [found(events, f"PATTERN {text} WITHIN 9") for text in texts]
    for walk in (walk_chains, walk_compared_chains):
        monkeypatch.setattr(walks, walk.__name__, partial(strictly, walk))
    assert [found(events, f"PATTERN {text} WITHIN 9") for text in texts] == wanted
    assert len(walked) >= len(texts)


@pytest.mark.parametrize("window", [8, 60, 600])
@pytest.mark.parametrize("text", ROBUST)
def test_a_robust_walk_finds_the_matches_of_the_search(monkeypatch, walked, text, window):
    """It stops at a window of many steps; the search goes on from there."""
    events = drawn_events(np.random.default_rng(8), 1_500)
    query, robust = f"PATTERN {text} WITHIN {window}", {"strategy": "robust_skip_till_next_match"}
    forms = [{"after_match": kept, "output": output, **robust} for kept in AFTER_MATCH for output in ("indices", "count")]
    chains = [found(events, query, **form) for form in forms]
    assert walked
    without_chains(monkeypatch, walked)
    assert [found(events, query, **form) for form in forms] == chains
    assert not walked


@pytest.mark.parametrize("own", [0.9, 0.3, 0.02])
@pytest.mark.parametrize("condition", ["c.x > a.y", "c.x >= a.y", "c.k < a.m", "c.k <= a.m", "c.k = a.m", "c.x != a.z"])
def test_walks_over_many_events_find_the_matches_of_the_search(monkeypatch, walked, condition, own):
    """The values of neighbours are compared side by side: of other types, NULL and NaN, and up to the end of a stream, too."""
    random = np.random.default_rng(9)
    size = 6_000
    x = np.where(random.random(size) < 0.98, 0, random.integers(1, 5, size)).astype(np.float64)
    x[random.random(size) < 0.02] = np.nan
    events = pa.table(
        {
            "ts": np.cumsum(random.integers(0, 2, size)),
            "type": random.choice(["A", "C", "D"], size, p=[0.1, 0.9 * own, 0.9 * (1 - own)]),
            "x": pa.array(x, mask=random.random(size) < 0.05),
            "y": random.integers(1, 5, size) * 1.0,
            "z": np.zeros(size),
            "k": pa.array(random.integers(0, 200, size), mask=random.random(size) < 0.05),
            "m": random.integers(0, 3, size),
            "s": random.choice(["p", "q"], size),
        }
    )
    query = f"PATTERN SEQ(A a, C c) WHERE {condition} WITHIN 700"
    chains = found(events, query)
    assert walked
    assert chains
    without_chains(monkeypatch, walked)
    assert found(events, query) == chains
    assert not walked


def test_a_robust_walk_stops_where_a_window_takes_many_steps(walked):
    """No C fits, so that each pair of a and b is tried, and dead ends are worth keeping."""
    types = ["A", *"B" * 100, *"C" * 100]
    events = pa.table({"ts": range(201), "type": types, "x": [1.0] * 201, "k": range(201), "s": ["p"] * 201})
    query = "PATTERN SEQ(A a, B b, C c) WHERE b.x >= a.x AND c.x > b.x WITHIN 200"
    assert not found(events, query, strategy="robust_skip_till_next_match")
    assert walked == [Status.CHOICE]


@pytest.mark.filterwarnings("ignore::gpu_cep.AbsentValueWarning")
@pytest.mark.parametrize(("texts", "strategy"), [(QUERIES, "skip_till_next_match"), (ROBUST, "robust_skip_till_next_match")])
def test_the_walk_finds_the_matches_of_the_definition(walked, texts, strategy):
    @examples(60, 200)
    @given(
        text=st.sampled_from(texts),
        seed=st.integers(0, 2**32 - 1),
        size=st.integers(0, 25),
        window=st.integers(0, 30),
        form=st.fixed_dictionaries({"after_match": st.sampled_from(AFTER_MATCH), "ties": st.sampled_from(["strict", "position"])}),
    )
    def check(text, seed, size, window, form):
        events = drawn_events(np.random.default_rng(seed), size)
        query = f"PATTERN {text} WITHIN {window}"
        form |= {"strategy": strategy}
        assert found(events, query, **form) == found(events, query, algorithm="brute_force", **form)

    check()
    assert walked


def test_means_count_the_values_of_their_own_column(walked):
    """One y of two is NULL, and no x is: the means are 1 and 4."""
    events = pa.table({"ts": range(4), "type": list("ABBC"), "x": [0.0, 1, 1, 3], "y": [None, 4.0, None, None], "s": ["p"] * 4})
    assert len(found(events, "PATTERN SEQ(A a, B b+, C c) WHERE avg(b.x) > a.x AND avg(b.y) > c.x WITHIN 9")) == 1
    assert walked


def test_the_walk_stops_at_a_choice(walked):
    """The B may be a further b or the c; the first window leaves no choice."""
    events = pa.table({"ts": range(6), "type": list("ABDABB"), "x": [0.0, 1, 5, 0, 1, 2], "k": [0] * 6, "s": ["p"] * 6})
    query = "PATTERN SEQ(A a, B b+, c) WHERE c.x > 1 WITHIN 2"
    assert found(events, query) == found(events, query, algorithm="brute_force")
    assert walked == [Status.CHOICE]


def test_long_matches_get_room(walked):
    """A match binds more events than there is room for at first: both the path and the output grow."""
    size = 3_000
    types = ["A", *"B" * size, "C"]
    events = pa.table({"ts": range(size + 2), "type": types, "x": [0.0] * (size + 2), "k": [1] * (size + 2), "s": ["p"] * (size + 2)})
    (match,) = found(events, f"PATTERN SEQ(A a, B b+, C c) WHERE sum(b.k) = {size} * a.k WITHIN {2 * size}")
    assert [len(rows) for rows in match.values()] == [1, size, 1]
    assert {Status.PATH_FULL, Status.OUTPUT_FULL, Status.FINISHED} == set(walked)


def test_a_bound_that_is_null_may_be_followed_by_one_that_is_not(walked):
    """With the second A as the last one no B fits; with the third one a B does."""
    events = pa.table({"ts": range(5), "type": list("AABAB"), "x": [1.0, None, 0, 2, 5], "s": ["p"] * 5})
    matches = found(events, "PATTERN SEQ(A a+, B b) WHERE last(a.x) < b.x WITHIN 10")
    assert [match["a"] for match in matches] == [(0, 1, 3), (1, 3), (3,)]
    assert walked


def test_nothing_is_written_behind_output_that_is_full(monkeypatch, walked):
    """Windows begin while the output has room for no event, for one or for some."""
    behind = []

    def table(matches, events, variables):
        made = new_match_table(matches, events + 1, variables)
        made.events[-1] = -7
        behind.append(made.events)
        return made._replace(events=made.events[:-1])

    monkeypatch.setattr(ses_automaton, "new_match_table", table)
    groups, query = 400, "PATTERN SEQ(A a+, C c) WHERE last(a.k) >= c.k WITHIN 900"
    for length in range(2, 20):
        types = [*"A" * length, "C"] * groups
        size = len(types)
        events = pa.table({"ts": range(size), "type": types, "k": [1] * size, "s": ["p"] * size})
        assert len(found(events, query, after_match="skip_past_last")) == groups
    assert Status.OUTPUT_FULL in walked
    assert all(events[-1] == -7 for events in behind)


def test_an_overflow_in_a_chain_names_its_condition(walked):
    events = pa.table({"ts": range(4), "type": list("ABBC"), "x": [0.0] * 4, "k": [0, 2**62, 2**62, 0], "s": ["p"] * 4})
    with pytest.raises(cep.CepError, match="sum"):
        found(events, "PATTERN SEQ(A a, B b+, C c) WHERE sum(b.k) > a.k WITHIN 9")
    assert walked == [Status.OVERFLOWED]


@pytest.mark.parametrize(
    "text",
    [
        "SEQ(AND(A a, B b), C c)",
        "SEQ(A a, B b*, C c)",
        "SEQ(A a, NOT(B b), C c)",
        "SEQ(A a, B b+) WHERE sum(b.k) > 3",
        "SEQ(A a+, B b) WHERE b.x > a.x",
        "SEQ(A a, B b)",
    ],
)
def test_other_patterns_are_walked_in_the_general_way(walked, text):
    """Sets, options, negations, conditions that the end of a match decides or that read several events at once; labels that decide."""
    assert found(drawn_events(np.random.default_rng(3), 300), f"PATTERN {text} WITHIN 20")
    assert not walked


def test_a_run_without_events_reads_nothing_of_a_variable(monkeypatch):
    walk = plain(walks.walk_chains)
    monkeypatch.setattr(walks, "walk_chains", lambda *arguments: walk(*map(from_start, arguments)))
    events = pa.table({"ts": range(5), "type": list("AABAB"), "x": [-1, 1, 2, 3, 4], "y": [0, 1, 2, 3, 4]})
    query = "PATTERN SEQ(A a+, B b) WHERE a[1].x + a[1].y > 0 AND a.y * 2 > a[1].x WITHIN 9"
    assert found(events, query, partition_by=None) == [{"a": (1,), "b": (2,)}, {"a": (3,), "b": (4,)}]
