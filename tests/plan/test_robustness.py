"""Thesis section 6.2 and 6.3: where both strategies that skip till the next match give the same matches."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import gpu_cep as cep
from tests.conformance.expectation import LIMIT, answered, expected
from tests.drawn.queries import Case, whole_language
from tests.results import matches_of

NEXT, ROBUST = "skip_till_next_match", "robust_skip_till_next_match"
EVENTS = pa.table({"ts": [1, 2], "type": ["A", "B"], "x": [1, 2], "k": [1, 1]})

# What may stand behind the root a, and conditions on a, b, c and d of every kind.
BEHIND = ("SEQ(B b{q}, c{r})", "AND(B b{q}, c{r})", "SEQ(B b{q}, AND(c{r}, D d))", "AND(b{q}, SEQ(c{r}, D d))", "b{q}")
QUANTIFIERS = ("", "+", "+", "{2}", "{1,2}", "{2,3}")
CONDITIONS = (
    "a.x <= b.x",
    "a.x < c.x",
    "prev(b.x) <= b.x",
    "prev(c.x) < c.x + a.x",
    "b[i].x >= b[1].x",
    "b.x <= c.x",
    "a.x < d.x",
    "b[i].x > avg(b[..i-1].x) - 1",
    "last(b.x) > 1",
    "a.k = b.k",
    "c[1].x > 0",
)


@st.composite
def rooted(draw):
    """A query whose conditions relate bindings to the first event or to themselves, mostly, over a table that tells strategies apart."""
    pattern = draw(st.sampled_from(BEHIND)).replace("{q}", draw(st.sampled_from(QUANTIFIERS)))
    pattern = pattern.replace("{r}", draw(st.sampled_from(QUANTIFIERS)))
    bound = {name for name in "abcd" if f" {name}" in f" {pattern}".replace("(", " ")} | {"a"}
    usable = [text for text in CONDITIONS if {name for name in "abcd" if f"{name}." in text or f"{name}[" in text} <= bound]
    chosen = draw(st.lists(st.sampled_from(usable), unique=True, max_size=2)) if usable else []
    where = f" WHERE {' AND '.join(chosen)}" if chosen else ""
    window = draw(st.sampled_from(("", " WITHIN 4", " WITHIN 5 EVENTS")))
    size = draw(st.integers(3, 9))
    columns = (st.sampled_from("ABBCD"), st.integers(0, 3), st.integers(0, 1))
    types, values, steps = (draw(st.lists(column, min_size=size, max_size=size)) for column in columns)
    times = [sum(steps[: i + 1]) for i in range(size)]
    events = pa.table({"ts": times, "type": types, "x": values, "k": [1] * size})
    text = f"PATTERN {draw(st.sampled_from(('SEQ(A a, {})', 'SEQ(A a, {})', '{}'))).format(pattern)}{where}{window}"
    return Case(text, events, {"strategy": ROBUST, "ties": draw(st.sampled_from(("strict", "position")))})


def followed(case):
    """The strategy by which the engine seeks the matches of a robust query."""
    try:
        return cep.explain(case.events, case.text, **case.options).plan.strategy
    except (cep.PatternError, cep.UnsupportedError):
        assume(False)
        raise


@given(whole_language(strategies=(ROBUST,), after_match=("all",)))
def test_theorem_6_1(case):
    """Γ_stnm ⊆ Γ_rstnm, of the engine's own matches, and with our rules of maximality and negation."""
    robust = matches_of(answered(case, output="indices", max_matches=LIMIT))
    plain = matches_of(answered(Case(case.text, case.events, {**case.options, "strategy": NEXT}), output="indices"))
    assert [match for match in plain if match not in robust] == []


@given(st.one_of(rooted(), rooted(), whole_language(strategies=(ROBUST,))))
def test_the_reverse_of_theorem_6_3(case):
    """Where no event can be bound too early by the rule, skip till next match misses nothing: by the definitions, both give the same."""
    assume(followed(case) == NEXT)
    plain = Case(case.text, case.events, {**case.options, "strategy": NEXT})
    assert expected(case) == expected(plain) == matches_of(answered(case, output="indices"))


@pytest.mark.parametrize(
    ("query", "ties"),
    [
        ("AND(A a, B b, C c)", "strict"),
        ("SEQ(AND(A a, B b), C c+)", "strict"),
        ("SEQ(AND(A a+, B b), C c)", "position"),
        ("SEQ(A a, B b, C c) WHERE a.x < b.x AND a.x < c.x", "strict"),
        ("SEQ(A a, B b+) WHERE prev(b.x) < b.x AND a.x < b.x", "strict"),
        ("SEQ(A a{2}, B b{3})", "strict"),
        ("SEQ(A a, B b, C c) WHERE [k]", "strict"),
        ("SEQ(A a, OR(B b, C c)) WHERE a.x < b.x", "strict"),
    ],
)
def test_queries_that_need_no_backtracking(query, ties):
    explained = cep.explain(EVENTS, f"PATTERN {query}", strategy=ROBUST, ties=ties)
    assert explained.plan.strategy == NEXT
    assert f"followed   {NEXT}: it finds the same matches of this query (thesis Thm. 6.3)\n" in str(explained)


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("SEQ(A a, B b, C c) WHERE b.x < c.x", "b may be bound to an event that no c exceeds (example 6.7)"),
        ("AND(A a, B b) WHERE a.x < b.x", "either may be the first"),
        ("SEQ(A a+, B b) WHERE a.x < b.x", "a goes on"),
        ("SEQ(A a, B b{2,}) WHERE prev(b.x) < b.x", "one b is not enough"),
        ("SEQ(A a, B b+) WHERE last(b.x) > 3", "the last b is known in the end"),
        ("SEQ(A a, NOT(C c), B b)", "negations are judged afterwards"),
        ("SEQ(A a, B b+, C c)", "an event of b may tie with c"),
        ("SEQ(A a, OR(B b, SEQ(C c, B d))) WHERE c.x < d.x", "one branch needs it"),
    ],
)
def test_queries_that_need_it(query, why):
    explained = cep.explain(EVENTS, f"PATTERN {query}", strategy=ROBUST)
    assert explained.plan.strategy == ROBUST, why
    assert "followed" not in str(explained)


def test_keys_that_do_not_divide_the_stream_are_conditions():
    plan = cep.explain(EVENTS, "PATTERN SEQ(A a, B b, C c) WHERE [k]", strategy=ROBUST, prune=["filter"]).plan
    assert plan.strategy == ROBUST
