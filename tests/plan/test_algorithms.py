"""Which algorithm answers which query."""

from __future__ import annotations

import pyarrow as pa
import pytest

import gpu_cep
from gpu_cep import errors

EVENTS = pa.table({"ts": [1, 2], "type": ["A", "B"], "x": [1, 2]})


@pytest.mark.parametrize(
    ("pattern", "strategy", "algorithm"),
    [
        ("PATTERN SEQ(A a, B b)", "skip_till_any_match", "by_frequency"),
        ("PATTERN SEQ(A a{1}, B b)", "skip_till_any_match", "by_frequency"),
        ("PATTERN SEQ(A a, B b+)", "skip_till_any_match", "ses_automaton"),
        ("PATTERN SEQ(A a, B b{1,2})", "skip_till_any_match", "ses_automaton"),
        ("PATTERN SEQ(A a, B b)", "skip_till_next_match", "ses_automaton"),
        ("PATTERN SEQ(A a, OR(B b, C c))", "skip_till_any_match", "ses_automaton"),
        ("PATTERN SEQ(A a, B b?)", "skip_till_any_match", "ses_automaton"),
        ("PATTERN SEQ(A a, NOT(C c), B b)", "skip_till_any_match", "ses_automaton"),
        ("PATTERN AND(SEQ(A a, B b), SEQ(C c, B b))", "skip_till_any_match", "by_frequency"),
    ],
)
def test_auto(pattern, strategy, algorithm):
    assert gpu_cep.explain(pattern, EVENTS, strategy=strategy).plan.algorithm == algorithm


def test_the_choice_by_frequency_is_explained():
    assert "by_frequency (lazy_chain in batches" in str(gpu_cep.explain("PATTERN SEQ(A a, B b)", EVENTS, strategy="skip_till_any_match"))


@pytest.mark.parametrize(("pattern", "strategy"), [("PATTERN a+", "skip_till_any_match"), ("PATTERN A a", "skip_till_next_match")])
def test_an_algorithm_that_cannot_run_the_query_names_those_that_can(pattern, strategy):
    with pytest.raises(
        errors.UnsupportedError,
        match=r"needs skip_till_any_match.*supported for this query: auto, ses_automaton, backtracking, nfab, brute_force",
    ):
        gpu_cep.match(EVENTS, pattern, strategy=strategy, algorithm="lazy_chain")


def test_joins_are_explained():
    query = "PATTERN SEQ(A a, AND(B b, C c)) WHERE a.x = b.x AND a.x + 1 = c.x AND b.x < c.x"
    explained = str(gpu_cep.explain(query, EVENTS, strategy="skip_till_any_match", algorithm="join_tree"))
    assert "algorithm  join_tree (joins the events" in explained
    assert "joins      the cheapest of all trees; partners within order and window by a hash for a.x = b.x\n" in explained


def test_joins_of_many_variables_are_explained():
    pattern = f"PATTERN SEQ({', '.join(f'A a{v}' for v in range(20))})"
    explained = str(gpu_cep.explain(pattern, EVENTS, strategy="skip_till_any_match", algorithm="join_tree"))
    assert "joins      one variable after the other from the rarest on" in explained
    assert explained.count("by a hash") == 0
