"""Which algorithm answers which query."""

from __future__ import annotations

import pyarrow as pa
import pytest

import gpu_cep
from gpu_cep import errors

EVENTS = pa.table({"ts": [1, 2], "type": ["A", "B"], "x": [1, 2]})


WALKED = ("ses_automaton", "nfab")
SOUGHT = ("lazy_chain", *WALKED, "lazy_tree")


@pytest.mark.parametrize(
    ("pattern", "strategy", "contenders"),
    [
        ("PATTERN SEQ(A a, B b)", "skip_till_any_match", (*SOUGHT, "join_tree")),
        ("PATTERN SEQ(A a{1}, B b)", "skip_till_any_match", (*SOUGHT, "join_tree")),
        ("PATTERN SEQ(A a, B b+)", "skip_till_any_match", SOUGHT),
        ("PATTERN SEQ(A a, B b{1,2})", "skip_till_any_match", SOUGHT),
        ("PATTERN SEQ(A a, B b)", "skip_till_next_match", WALKED),
        ("PATTERN SEQ(A a, B b)", "robust_skip_till_next_match", ("ses_automaton",)),
        ("PATTERN SEQ(A a, OR(B b, C c))", "skip_till_any_match", (*SOUGHT, "join_tree")),
        ("PATTERN SEQ(A a, B b?)", "skip_till_any_match", (*SOUGHT, "join_tree")),
        ("PATTERN SEQ(A a, NOT(C c), B b)", "skip_till_any_match", (*SOUGHT, "join_tree")),
        ("PATTERN AND(SEQ(A a, B b), SEQ(C c, B b))", "skip_till_any_match", (*SOUGHT, "join_tree")),
    ],
)
def test_auto(pattern, strategy, contenders):
    assert gpu_cep.explain(EVENTS, pattern, strategy=strategy).plan.contenders == contenders


def test_what_batches_choose_from_is_explained():
    explained = str(gpu_cep.explain(EVENTS, "PATTERN SEQ(A a, B b)", strategy="skip_till_any_match"))
    assert "algorithm  the one that is expected to cost least in each batch of events" in explained
    assert "\n  lazy_chain    binds variables from the rarest" in explained


@pytest.mark.parametrize("algorithm", ["lazy_chain", "lazy_tree", "join_tree"])
def test_an_algorithm_that_cannot_run_the_query_names_those_that_can(algorithm):
    with pytest.raises(
        errors.UnsupportedError,
        match=r"needs skip_till_any_match.*supported for this query: auto, ses_automaton, backtracking, nfab, brute_force",
    ):
        gpu_cep.match(EVENTS, "PATTERN A a", strategy="skip_till_next_match", algorithm=algorithm)


def test_joins_need_single_variables():
    with pytest.raises(errors.UnsupportedError, match=r"supported for this query: auto, .*nfab, lazy_chain, lazy_tree, brute_force"):
        gpu_cep.match(EVENTS, "PATTERN a+", strategy="skip_till_any_match", algorithm="join_tree")


def test_joins_are_explained():
    query = "PATTERN SEQ(A a, AND(B b, C c)) WHERE a.x = b.x AND a.x + 1 = c.x AND b.x < c.x"
    explained = str(gpu_cep.explain(EVENTS, query, strategy="skip_till_any_match", algorithm="join_tree"))
    assert "algorithm  join_tree (joins the events" in explained
    assert "joins      the cheapest of all trees; partners within order and window by a hash for a.x = b.x\n" in explained


def test_equal_values_of_negated_events_join_nothing():
    query = "PATTERN SEQ(A a, NOT(C c), B b) WHERE a.x = b.x AND a.x = c.x"
    explained = str(gpu_cep.explain(EVENTS, query, strategy="skip_till_any_match", algorithm="join_tree", prune=False))
    assert "partners within order and window by a hash for a.x = b.x\n" in explained


def test_joins_of_many_variables_are_explained():
    pattern = f"PATTERN SEQ({', '.join(f'A a{v}' for v in range(20))})"
    explained = str(gpu_cep.explain(EVENTS, pattern, strategy="skip_till_any_match", algorithm="join_tree"))
    assert "joins      one variable after the other from the rarest on" in explained
    assert explained.count("by a hash") == 0
