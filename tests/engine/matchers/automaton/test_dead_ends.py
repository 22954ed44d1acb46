"""Dead ends of the robust strategy: never a match less for what is remembered of them, and work that does not multiply."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

import gpu_cep as cep
from gpu_cep.engine.accounting.profile import Profile
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.lowering.pattern_tables import matcher_tables
from gpu_cep.engine.matchers import dead_ends
from gpu_cep.engine.matchers.automaton import ses_automaton
from gpu_cep.engine.matchers.dead_ends import state_keys
from gpu_cep_kernels.automaton.dead_ends import ALL_EVENTS, AT_THE_END, FIRST_EVENT, LAST_EVENT, MATCH_END, MATCH_START, NUMBER
from tests.conformance.expectation import answered, expected
from tests.drawn.patterns import ALL_OPERATORS
from tests.drawn.queries import cases
from tests.effort import examples
from tests.results import matches_of

ROBUST = "robust_skip_till_next_match"
WITHOUT_END = 10**12


# what the long streams below tell in the fast suite, over windows of few events and of every operator
@pytest.mark.full
@pytest.mark.parametrize("places", [1, 2, 4, 1 << 16])
def test_what_is_remembered_changes_nothing(monkeypatch, places):
    monkeypatch.setattr(dead_ends, "MOST_DEAD_ENDS", places)
    monkeypatch.setattr(dead_ends, "PATIENCE", 0)

    @examples(25, 100)
    @given(cases(operators=ALL_OPERATORS, iterations=True, strategies=(ROBUST,), max_size=12))
    def check(case):
        assert matches_of(answered(case, output="indices")) == expected(case)

    check()


def stream(size, seed=5):
    """Events with values x at random, a random walk w, keys k, and times with ties t."""
    random = np.random.default_rng(seed)
    kinds = random.choice(list("ABCD"), size, p=[0.1, 0.4, 0.1, 0.4])
    columns = {"x": random.random(size), "w": np.cumsum(random.normal(size=size)), "k": random.integers(0, 4, size)}
    return pa.table({"ts": np.arange(size), "t": np.cumsum(random.integers(0, 2, size)), "type": kinds, **columns})


QUERIES = [
    "SEQ(A a, B b, C c) WHERE a.x < b.x AND c.x > b.x + 0.4",
    "SEQ(A a, B b+, C c) WHERE b.x > a.x AND c.x > a.x + 0.5",
    "SEQ(A a, B b+, C c) WHERE b[i].w > b[i-1].w AND c.k = last(b.k) AND c.x > 0.7",
    "SEQ(A a, B b{1,3}, C c) WHERE b[i].x >= first(b.x) AND c.x > a.x + 0.4",
    "SEQ(A a, B b+, C c) WHERE c.x > b.x AND c.w < a.w - 2",
    "SEQ(A a, B b+, C c) WHERE count(b) > 3 AND c.x > 0.9",
    "SEQ(A a, B b+) WHERE last(b.x) > a.x + 0.5 AND b[i].k <> b[i-1].k",
    "SEQ(A a, B b+, C c) WHERE avg(b.x) < 0.2 AND c.x > 0.7",
    "SEQ(AND(A a, B b+), C c) WHERE c.x > a.x + 0.4 AND a.k = c.k",
    "SEQ(A a, B b+, ~D d, C c) WHERE d.x > a.x AND c.x > 0.3",
    "SEQ(A a, B b, C c, ~D d) WHERE d.x > c.x AND b.x > a.x",
    "SEQ(~D d, A a, B b+) WHERE d.x < a.x - 0.7 AND b[i].x > b[i-1].x",
    "SEQ(A a, OR(B b+, D d+), C c) WHERE c.x > a.x + 0.5 AND b[i].x > b[i-1].x",
]


@pytest.mark.parametrize("timestamp", ["ts", "t"])
@pytest.mark.parametrize("query", QUERIES)
def test_long_streams(monkeypatch, query, timestamp):
    """The windows are short enough to search them without memory, too."""
    for window in ("16" if timestamp == "ts" else "8", "16 EVENTS"):
        found = []
        for places, patience in ((1, WITHOUT_END), (1, 0), (4, 0), (1 << 10, 0), (1 << 10, 3)):
            monkeypatch.setattr(dead_ends, "MOST_DEAD_ENDS", places)
            monkeypatch.setattr(dead_ends, "PATIENCE", patience)
            text = f"PATTERN {query} WITHIN {window}"
            found.append(cep.match(stream(2_000), text, strategy=ROBUST, output="indices", timestamp=timestamp))
        assert all(each.equals(found[0]) for each in found)
        assert found[0].num_rows > 0


def steps(query, window, size=4_000):
    """The steps of the automaton."""
    profile = Profile()
    cep.match(stream(size), f"PATTERN {query} WITHIN {window}", strategy=ROBUST, output="count", threads=1, profile=profile)
    return profile.counts["steps"]


@pytest.mark.parametrize(
    "query",
    [
        "SEQ(A a, B b+, C c) WHERE b.x > a.x AND c.x > a.x + 0.99",
        "SEQ(A a, B b+, C c) WHERE b[i].w > b[i-1].w AND c.w > last(b.w) + 1000",
        "SEQ(A a, B b, C c, D d) WHERE a.x < b.x AND b.x < c.x AND d.x > c.x + 1",
        "SEQ(A a, B b+, ~D d, C c) WHERE b.x > a.x AND d.x > 0.01",
    ],
)
def test_work_grows_with_the_window_and_not_with_the_number_of_subsequences(query):
    short, long = steps(query, 100), steps(query, 400)
    assert 4_000 < long < 8 * short


def test_starts_share_dead_ends():
    """Where nothing but the event bound last is read, steps do not grow with the window."""
    query = "SEQ(A a, B b+, C c) WHERE b[i].k = b[i-1].k AND c.w > last(b.w) + 1000"
    assert steps(query, 1_600) < 3 * steps(query, 100)


READS = {FIRST_EVENT: "first", LAST_EVENT: "last", NUMBER: "number", ALL_EVENTS: "all", MATCH_START: "start", MATCH_END: "end"}


def states_of(query):
    """What is read of each variable, by which others; None if states are not told apart."""
    plan = cep.explain(stream(0), f"PATTERN {query} WITHIN 9", strategy=ROBUST).plan
    table = state_keys(matcher_tables(plan, EventColumns(stream(0), plan.query, threads=1))[0])
    return table and {
        f"{READS[read]} {'abcd'[v]}": "".join("abcd$"[min(u, 4)] for u in range(AT_THE_END + 1) if readers >> u & 1)
        for read, v, readers in zip(table.read.tolist(), table.variable.tolist(), table.readers.tolist(), strict=True)
    }


@pytest.mark.parametrize(
    ("query", "read"),
    [
        ("SEQ(A a, B b, C c)", {}),
        ("SEQ(A a, B b, C c) WHERE b.x > a.x AND c.x > b.x", {"last a": "b", "last b": "c"}),
        ("SEQ(A a, B b+, C c) WHERE b[i].w > b[i-1].w AND c.k = last(b.k)", {"last b": "bc"}),
        ("SEQ(A a, B b+, C c) WHERE b[i].x >= first(b.x)", {"first b": "b"}),
        ("SEQ(A a, B b+, C c) WHERE b.x > a.x", {"last a": "b"}),
        ("SEQ(A a, B b+, C c) WHERE count(b) > 3", {"number b": "c"}),
        ("SEQ(A a, B b+, C c) WHERE sum(b.x) > 3", {"all b": "c"}),
        ("SEQ(A a, B b+) WHERE last(b.x) > a.x", {"last a": "$", "last b": "$"}),
        ("SEQ(A a, B b, ~D d, C c) WHERE d.x > a.x", {"last a": "$", "last b": "$", "first c": "$"}),
        ("SEQ(A a, B b, ~D d)", {"last b": "$", "start a": "$"}),
        ("SEQ(~D d, A a, B b)", {"first a": "$", "end a": "$"}),
        ("SEQ(A a, AND(B b, SEQ(C c, ~D d)))", None),
    ],
)
def test_what_tells_states_apart(query, read):
    assert states_of(query) == read


@pytest.mark.parametrize("algorithm", ["ses_automaton", "backtracking"])
def test_a_window_without_end_is_an_error_that_says_what_to_do(monkeypatch, algorithm):
    monkeypatch.setattr(ses_automaton, "STEPS_PER_CALL", 1 << 12)
    monkeypatch.setattr(ses_automaton, "MOST_ROBUST_STEPS", 1 << 15)
    table = pa.table({"ts": range(40), "x": np.random.default_rng(0).random(40)})
    endless = "PATTERN AND(a+, b+, c) WHERE a.x < b.x AND b.x < c.x AND c.x < a.x"
    with pytest.raises(cep.MatchLimitExceeded, match=r"more than 32,768 steps under robust.*event types.*max_steps=.*starts at ts=\d+ "):
        cep.match(table, endless, strategy=ROBUST, algorithm=algorithm)
    with pytest.raises(cep.MatchLimitExceeded, match="more than max_steps=100,000 steps"):
        cep.match(table, endless, strategy=ROBUST, algorithm=algorithm, max_steps=100_000)
    # as many steps in many windows are no reason
    profile = Profile()
    assert cep.match(table.slice(0, 12), endless, strategy=ROBUST, algorithm=algorithm, profile=profile).num_rows == 0
    assert profile.counts["steps"] > 1 << 15
