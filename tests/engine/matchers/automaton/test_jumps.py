"""Jumps over events that conditions rule out: never a match less, and no more steps where windows are longer."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_cep as cep
from gpu_cep.engine.lowering import jump_tables
from gpu_cep.engine.lowering.jump_tables import jump_table
from gpu_cep.engine.matchers.automaton import ses_automaton
from gpu_cep.errors import MatchLimitExceeded
from gpu_cep.lang.ast import STRATEGIES
from gpu_cep_kernels.rules.scalars import COMPARISONS
from tests.conformance.expectation import answered, expected
from tests.drawn.queries import AFTER_MATCH, trend_cases, whole_language
from tests.effort import examples
from tests.results import matches_of

NAMES = {number: name for name, number in COMPARISONS.items()}
NEVER = 10**12
SIZE = 2_000


@pytest.fixture
def soon(monkeypatch):
    """Searches may jump after the first step."""
    monkeypatch.setattr(jump_tables, "WASTED_PER_EVENT", 0)
    monkeypatch.setattr(ses_automaton, "FIRST_STEPS", 1)
    monkeypatch.setattr(ses_automaton, "FIRST_WALKED", 1)


@pytest.fixture
def at_once(monkeypatch, soon):
    """Searches jump from the first event on."""
    monkeypatch.setattr(jump_tables, "PATIENCE", 0)


def jumping(case):
    return matches_of(answered(case, output="indices", algorithm="ses_automaton")) == expected(case)


@pytest.mark.usefixtures("at_once")
def test_jumps_change_nothing():
    @examples(60, 150)
    @given(st.one_of(whole_language(max_size=20, strategies=STRATEGIES), trend_cases(after_match=AFTER_MATCH)))
    def check(case):
        assert jumping(case)

    check()


def nasty(random):
    """Random events with ties, NULLs, NaN, infinities, zeros of both signs and the ends of int64."""
    x = np.round(np.cumsum(random.normal(0, 1, SIZE)), 1)
    x[random.random(SIZE) < 0.05] = random.choice([np.nan, np.inf, -np.inf, 0.0, -0.0])
    k = random.integers(-20, 20, SIZE)
    k[random.random(SIZE) < 0.05] = random.choice([-(2**63), 2**63 - 1, 2**53 + 1, 0])
    return pa.table(
        {
            "ts": np.cumsum(random.integers(0, 3, SIZE)),
            "type": random.choice(list("ABCD"), SIZE, p=[0.1, 0.5, 0.1, 0.3]),
            "x": pa.array(x, mask=random.random(SIZE) < 0.05),
            "y": random.random(SIZE) * 10,
            "k": pa.array(k, mask=random.random(SIZE) < 0.05),
            "j": pa.array(random.integers(-20, 20, SIZE), mask=random.random(SIZE) < 0.05),
            "s": random.choice(["p", "q", "r"], SIZE),
        }
    )


QUERIES = [
    "SEQ(A a, B b, C c) WHERE b.x > a.x + 9 AND c.x <= b.x",
    "SEQ(A a, B b, C c) WHERE a.k = b.k AND b.x < c.x",
    "SEQ(A a, B b, C c) WHERE a.x = c.x AND b.y >= c.y",
    "SEQ(A a, B b+, C c) WHERE b[i].x > b[i-1].x AND c.k = a.k",
    "SEQ(A a, B b+, C c) WHERE b[i].x >= first(b.x) AND c.y > avg(b.y)",
    "SEQ(AND(A a, B b), C c) WHERE b.y > a.y + 5 AND c.k > b.k AND c.s = a.s",
    "SEQ(A a, B b+, C c) WHERE [k] AND b[i].y > b[i-1].y",
    "SEQ(A a, B b+, C c) WHERE c.x > last(b.x) + 1 AND c.y < a.y",
    "SEQ(A a, B b{1,2}, C c, D d) WHERE c.x > b.x AND d.x > c.x + 3 AND d.k <= first(b.k)",
    "SEQ(A a, ~D d, B b, C c) WHERE b.k = a.k + 1 AND d.x > a.x",
    "SEQ(A a, b, OR(C c, D d)) WHERE b.x < a.x - 5 AND c.x > b.x AND d.x = a.x",
    "SEQ(A a, B b, C c) WHERE b.x - a.x > 9 AND c.x - b.x <= 0.1",
    "SEQ(A a, B b, C c) WHERE b.j - a.j = 4 AND 3 < c.j + a.j",
    "SEQ(A a, B b+, C c) WHERE b[i].ts - b[i-1].ts <= 9 AND a.y - c.y > avg(b.y) / 9",
    "SEQ(A a, B b+, C c) WHERE b[i].j - b[i-1].j >= b.j AND 2 - c.j < a.j",
    "SEQ(A a, B b, C c) WHERE b.k = CASE WHEN b.y > 5 THEN a.k ELSE 0 END AND c.x > CASE WHEN a.y > b.y THEN a.x ELSE b.x END",
]


@pytest.mark.parametrize("strategy", ["skip_till_next_match", "robust_skip_till_next_match", "skip_till_any_match"])
@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.usefixtures("soon")
def test_jumps_over_many_blocks(monkeypatch, query, strategy):
    window = 700 if strategy == "skip_till_next_match" else 12
    for seed in range(2):
        events = nasty(np.random.default_rng(seed))
        found = []
        for patience in (0, 3, NEVER):
            monkeypatch.setattr(jump_tables, "PATIENCE", patience)
            text = f"PATTERN {query} WITHIN {window}"
            found.append(cep.match(events, text, strategy=strategy, algorithm="ses_automaton", output="indices"))
        assert found[0].equals(found[2])
        assert found[1].equals(found[2])
        assert found[0].num_rows > 0 or strategy != "skip_till_next_match"


@pytest.mark.usefixtures("soon")
def test_the_robust_strategy_stays_robust_when_searches_jump():
    """From the second start on searches jump; the first b of each start is a dead end."""
    kinds, k, x = [], [], []
    for start in range(4):
        kinds += ["A", *["B"] * 8_002, "C"]
        k += [start, *[-1] * 4_000, start, *[-1] * 4_000, start, start]
        x += [0, *[0] * 4_000, 9, *[0] * 4_000, 1, 5]
    events = pa.table({"ts": np.arange(len(kinds)), "type": kinds, "k": k, "x": x})
    query = "PATTERN SEQ(A a, B b, C c) WHERE robust_skip_till_next_match { b.k = a.k AND c.x > b.x } WITHIN 8003"
    found = cep.match(events, query, algorithm="ses_automaton", output="indices")
    assert found["b"].to_pylist() == [8_002, 16_006, 24_010, 32_014]


@pytest.mark.parametrize(
    "query",
    [
        "SEQ(A a, B b, C c) WHERE b.x > a.x + 0.99",
        "SEQ(A a, B b, C c) WHERE b.x - a.x > 0.99",
        "SEQ(A a, B b, C c) WHERE a.k - b.k >= 9990",
        "SEQ(A a, B b+, C c) WHERE b[i].ts - b[i-1].ts < 2 AND c.ts - last(b.ts) < 2",
        "SEQ(A a, B b, C c) WHERE a.k = b.k AND b.x < c.x",
        "SEQ(A a, B b, C c) WHERE robust_skip_till_next_match { b.x < a.x - 0.99 AND c.k = a.k }",
    ],
)
def test_steps_do_not_grow_with_the_window(monkeypatch, query):
    """Without an index they do, although a look at a whole block of events is one step."""
    random = np.random.default_rng(5)
    size = 20_000
    columns = {"x": random.random(size), "k": random.integers(0, 10_000, size)}
    events = pa.table({"ts": np.arange(size), "type": random.choice(list("ABCD"), size, p=[0.1, 0.5, 0.1, 0.3]), **columns})
    found = cep.match(events, f"PATTERN {query} WITHIN 15000", output="indices", max_steps=5 * size)
    monkeypatch.setattr(jump_tables, "WASTED_PER_EVENT", NEVER)
    assert cep.match(events, f"PATTERN {query} WITHIN 15000", output="indices").equals(found)
    with pytest.raises(MatchLimitExceeded, match="steps"):
        cep.match(events, f"PATTERN {query} WITHIN 15000", output="indices", max_steps=15 * size)


@pytest.mark.parametrize("strategy", ["skip_till_next_match", "robust_skip_till_next_match"])
@pytest.mark.parametrize(
    "query",
    [
        "SEQ(A a, B b+, C c) WHERE c.x > a.x + 0.99",
        "SEQ(A a, B b+, D d+, C c) WHERE c.x > a.x + 0.99 AND b.x > a.x",
        "SEQ(A a, AND(B b+, C c)) WHERE c.k = a.k AND c.x > 0.9",
    ],
)
def test_runs_that_cannot_become_matches_are_given_up(monkeypatch, query, strategy):
    """Nearly all starts have no end: they take a few dozen steps, and not as many as there are events to bind."""
    random = np.random.default_rng(5)
    size = 20_000
    columns = {"x": random.random(size), "k": random.integers(0, 1_000, size)}
    events = pa.table({"ts": np.arange(size), "type": random.choice(list("ABCD"), size, p=[0.1, 0.5, 0.1, 0.3]), **columns})
    text = f"PATTERN {query} WITHIN 3000"
    options = {"strategy": strategy, "algorithm": "ses_automaton", "output": "indices"}
    found = cep.match(events, text, **options, max_steps=20 * size)
    monkeypatch.setattr(jump_tables, "WASTED_PER_EVENT", NEVER)
    assert cep.match(events, text, **options).equals(found)
    assert 0 < found.num_rows < 200
    with pytest.raises(MatchLimitExceeded, match="steps"):
        cep.match(events, text, **options, max_steps=100 * size)


@pytest.mark.parametrize("starts", [1, 3])
def test_a_start_of_exponentially_many_runs_is_given_up_on_its_way(starts):
    kinds = ["A"] * starts + ["B"] * 40 + ["C"]
    events = pa.table({"ts": np.arange(len(kinds)), "type": kinds, "x": np.zeros(len(kinds))})
    query = "PATTERN SEQ(A a, B b+, C c) WHERE c.x > a.x + 1"
    options = {"strategy": "skip_till_any_match", "algorithm": "ses_automaton", "max_steps": 200_000}
    assert cep.match(events, query, **options).num_rows == 0


def test_starts_that_give_matches_waste_nothing(monkeypatch):
    """Runs that end in matches are long and many: no index is made for them."""

    def made(*_):
        raise AssertionError("there is nothing to give up")

    kinds = ["A"] + ["B"] * 14 + ["C"]
    events = pa.table({"ts": np.arange(len(kinds)), "type": kinds, "x": np.arange(len(kinds))})
    query = "PATTERN SEQ(A a, B b+, C c) WHERE c.x > a.x + 1"
    monkeypatch.setattr(jump_tables, "jump_indexes", made)
    found = cep.match(events, query, strategy="skip_till_any_match", algorithm="ses_automaton")
    assert found.num_rows == 2**14 - 1


def test_a_search_of_a_long_window_can_be_stopped():
    """One search passes over all of them: the budget is checked on the way."""
    size = 3_000_000
    events = pa.table({"ts": np.arange(size), "type": pa.array(["A"] + ["B"] * (size - 1)).dictionary_encode(), "x": np.zeros(size)})
    with pytest.raises(MatchLimitExceeded, match="more than max_steps=1,000 steps, in the window that starts at ts=0"):
        cep.match(events, "PATTERN SEQ(A a, B b) WHERE b.x * b.x > a.x", max_steps=1_000)


def tables(condition, pattern="SEQ(A a, B b+, C c)"):
    schema = pa.schema({"ts": pa.int64(), "type": pa.string(), "x": pa.float64(), "k": pa.int64(), "s": pa.string(), "t": pa.string()})
    plan = cep.explain(schema.empty_table(), f"PATTERN {pattern} WHERE {condition}").plan
    table = jump_table(plan.branches[0], np.empty(0, np.int64))
    owners = np.repeat(range(len(table.first) - 1), np.diff(table.first)).tolist()
    return [("abc"[v], NAMES[comparison]) for v, comparison in zip(owners, table.comparison.tolist(), strict=True)]


@pytest.mark.parametrize(
    ("condition", "wanted"),
    [
        ("a.x < c.x", [("a", "lt"), ("c", "gt")]),
        ("a.k = c.k", [("a", "eq"), ("c", "eq")]),
        ("a.s = c.t", [("a", "eq"), ("c", "eq")]),
        ("a.x + 1 < c.x", [("a", "lt"), ("c", "gt")]),
        ("a.x + c.x < c.x", [("a", "lt")]),
        ("a.x <> c.x", []),
        ("a.x < c.x OR a.k = c.k", []),
        ("a.k = c.x", [("a", "eq"), ("c", "eq")]),
        ("a.k + 1 < c.k", [("a", "lt"), ("c", "gt")]),
        ("c.x - a.x > 2", [("a", "lt"), ("c", "gt")]),
        ("a.k - c.k >= 2", [("a", "ge"), ("c", "le")]),
        ("3 < a.k + c.k", [("a", "gt"), ("c", "gt")]),
        ("c.k - a.k = 2", [("a", "eq"), ("c", "eq")]),
        ("c.x - a.x = 2", []),
        ("c.x / a.x > 2", []),
        ("c.k - a.k * 2 > 2", []),
        ("c.k - 2 > a.k", [("a", "lt"), ("c", "gt")]),
        ("c.k - a.k > b.k", [("a", "lt"), ("b", "lt"), ("c", "gt")]),
        ("b[i].ts - b[i-1].ts <= 9", [("b", "le")]),
        ("CASE WHEN a.x > 1 THEN c.x - a.x ELSE c.x END > 2", []),
        ("b[i].x >= b[i-1].x", [("b", "ge")]),
        ("b[i].x > first(b.x)", []),
        ("b[i].x > avg(b[..i-1].x)", [("b", "gt")]),
        ("c.x > avg(b.x)", [("c", "gt")]),
        ("c.x > last(b.x) AND c.k = a.k", [("a", "eq"), ("c", "eq"), ("c", "gt")]),
    ],
)
def test_which_conditions_jump(condition, wanted):
    assert tables(condition) == wanted


@pytest.mark.parametrize("starts", [1, 100])
@pytest.mark.parametrize(
    ("condition", "last"),
    [
        ("b.k - a.k > 0", 10 - 2**63),
        ("a.k - b.k < 0", 10 - 2**63),
        ("a.k + b.k < 0", 2**62),
        ("a.k - b.k < 0", -(2**62)),
        (f"b.k + {2**62} < a.k", 2**62),
    ],
)
def test_differences_that_overflow_are_still_errors(condition, last, starts):
    """Bounds would pass over the event with which the last start's difference overflows; behind many starts an index would."""
    size = 3_000
    k = np.concatenate([np.full(starts - 1, 5), [2**62], np.zeros(size, np.int64), [last]])
    kinds = ["A"] * starts + ["B"] * (size + 1)
    events = pa.table({"ts": np.arange(len(kinds)), "type": kinds, "k": k})
    with pytest.raises(cep.EventError, match="overflow"):
        cep.match(events, f"PATTERN SEQ(A a, B b) WHERE {condition}")
