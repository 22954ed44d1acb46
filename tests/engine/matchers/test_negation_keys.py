"""Negated events by key: never a match more or less, and few events to look at in a long window."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

import gpu_cep as cep
from gpu_cep.engine.matchers import negation_keys, negation_scopes
from gpu_cep.lang.ast import STRATEGIES
from tests.conformance.expectation import answered, expected
from tests.drawn.queries import whole_language
from tests.effort import examples
from tests.results import matches_of

ANY = "skip_till_any_match"
SIZE = 3_000


@pytest.fixture
def at_once(monkeypatch):
    """Few events stand in buckets, too."""
    monkeypatch.setattr(negation_keys, "_FEW", 0)


@pytest.fixture
def made(monkeypatch):
    """The buckets that are made, in turn."""
    made = []

    def keep(*given):
        made.append(negation_keys.negation_keys(*given))
        return made[-1]

    monkeypatch.setattr(negation_scopes, "negation_keys", keep)
    return made


@pytest.mark.usefixtures("at_once")
def test_keys_change_nothing():
    @examples(25, 150)
    @given(whole_language(max_size=12, strategies=STRATEGIES))
    def check(case):
        assert matches_of(answered(case, output="indices")) == expected(case)

    check()


def stream(size=SIZE):
    """Events with ties, keys of all signs, some of them NULL, and text."""
    random = np.random.default_rng(3)
    k = random.integers(-40, 40, size)
    k[random.random(size) < 0.05] = random.choice([-(2**63), 2**63 - 1, 0])
    return pa.table(
        {
            "ts": np.cumsum(random.integers(0, 3, size)),
            "type": random.choice(list("ABCD"), size, p=[0.1, 0.4, 0.1, 0.4]),
            "k": pa.array(k, mask=random.random(size) < 0.1),
            "j": pa.array(random.integers(-40, 40, size).astype(np.int16)),
            "s": random.choice(["p", "q", "r", "t"], size),
            "x": random.random(size),
        }
    )


@pytest.mark.parametrize(
    "query",
    [
        "SEQ(A a, NOT(D d)) WHERE d.k = a.k",
        "SEQ(A a, NOT(D d)) WHERE [k]",
        "SEQ(A a, C c, NOT(D d)) WHERE c.k = d.j AND d.x > a.x",
        "SEQ(NOT(D d), A a, C c) WHERE d.s = a.s AND c.x > a.x",
        "SEQ(A a, NOT(D d), C c) WHERE a.k = d.k AND c.k = d.k",
        "SEQ(A a, NOT(D d), B b+, C c, NOT(B n)) WHERE d.k = a.k AND n.j = c.k AND b[i].x > b[i-1].x",
        "AND(A a, C c, NOT(d)) WHERE d.k = c.k",
    ],
)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_long_streams(monkeypatch, query, strategy):
    text = f"PATTERN {query} WITHIN {20 if strategy == ANY else 150}"
    found = []
    for few in (0, 10**9):
        monkeypatch.setattr(negation_keys, "_FEW", few)
        found.append(cep.match(stream(), text, strategy=strategy, output="indices"))
    assert found[0].equals(found[1])
    assert found[0].num_rows > 0 or "contiguity" in strategy


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("algorithm", ["ses_automaton", "nfab", "lazy_chain", "lazy_tree", "join_tree"])
def test_every_algorithm_looks_into_the_bucket_of_its_match(monkeypatch, algorithm):
    query = "PATTERN SEQ(A a, C c, NOT(D d)) WHERE d.k = a.k AND c.x > a.x WITHIN 60"
    found = cep.match(stream(), query, strategy=ANY, algorithm=algorithm, output="indices")
    monkeypatch.setattr(negation_keys, "_FEW", 10**9)
    assert found.equals(cep.match(stream(), query, strategy=ANY, algorithm=algorithm, output="indices"))
    assert found.num_rows > 0


@pytest.mark.parametrize(("window", "keyed"), [("", True), ("WITHIN 1000", True), ("WITHIN 1000 EVENTS", True), ("WITHIN 20", False)])
@pytest.mark.parametrize("kind", [np.int64, np.float64])
def test_windows_with_few_negated_events_take_no_buckets(made, window, keyed, kind):
    events = stream()
    events = events.set_column(0, "ts", pa.array(events["ts"].to_numpy().astype(kind)))
    cep.match(events, f"PATTERN SEQ(A a, NOT(D d), C c) WHERE d.k = a.k {window}", output="indices")
    (keys,) = made
    assert (keys.variable[0] >= 0) == keyed


@pytest.mark.parametrize("query", ["d.k = a.k", "a.s = d.s", "[k]", "d.x > a.x AND a.k = d.k"])
def test_a_match_looks_at_events_of_few_keys(made, query):
    """However long the window is: a bucket has the events of one hash."""
    size = 20_000
    random = np.random.default_rng(5)
    k = random.permutation(size)
    columns = {"k": k, "s": np.char.add("order ", k.astype(str)), "x": np.arange(size)}
    events = pa.table({"ts": np.arange(size), "type": random.choice(list("AD"), size), **columns})
    found = cep.match(events, f"PATTERN SEQ(A a, NOT(D d)) WHERE {query} WITHIN {size}", output="indices")
    assert found.num_rows == events["type"].to_pylist().count("A")
    (keys,) = made
    assert keys.variable.tolist() == [0]
    assert np.diff(keys.border).max() < 20
    assert sorted(keys.places.tolist()) == [e for e, kind in enumerate(events["type"].to_pylist()) if kind == "D"]


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("condition", ["d.x = a.x", "d.k = a.k + 1", "d.k <> a.k", "d.k = a.k OR d.j = a.j", "d.k = first(b.k)"])
def test_other_conditions_find_no_bucket(made, condition):
    cep.match(stream(), f"PATTERN SEQ(A a, B b+, C c, NOT(D d)) WHERE {condition} WITHIN 20", output="indices")
    (keys,) = made
    assert keys.variable.tolist() == [-1]
    assert len(keys.border) == 2
