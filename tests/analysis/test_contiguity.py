"""NEXT written as a negation, and what it refuses."""

from __future__ import annotations

import pyarrow as pa
import pytest

import gpu_cep
from gpu_cep.analysis.contiguity import negate_gaps
from gpu_cep.analysis.faults import Faults
from gpu_cep.lang.format import format_query
from gpu_cep.lang.parser import parse

EVENTS = pa.table({"ts": [1], "type": ["A"], "event": [1]})


@pytest.mark.parametrize(
    ("pattern", "written"),
    [
        ("SEQ(a, NEXT(b), c)", 'SEQ(a, NOT("event right before b"), b, c)'),
        ("SEQ(a, NEXT(b), NEXT(c))", 'SEQ(a, NOT("event right before b"), b, NOT("event right before c"), c)'),
        ("SEQ(a, NEXT(AND(b, c)))", 'SEQ(a, NOT("event right before b or c"), AND(b, c))'),
        ('SEQ("event right before b", NEXT(b))', 'SEQ("event right before b", NOT("event right before b (2)"), b)'),
        ("SEQ(a, NEXT(SEQ(b, NEXT(c))))", 'SEQ(a, NOT("event right before b"), SEQ(b, NOT("event right before c"), c))'),
        ("OR(a, SEQ(b, NEXT(c+)))", 'OR(a, SEQ(b, NOT("event right before c"), c+))'),
        ("OR(SEQ(a, NEXT(c)), SEQ(b, NEXT(c)))",
         'OR(SEQ(a, NOT("event right before c"), c), SEQ(b, NOT("event right before c (2)"), c))'),
        ("SEQ(a, OR(NEXT(b), c))", 'SEQ(a, OR(SEQ(NOT("event right before b"), b), c))'),
        ("SEQ(a, AND(NEXT(b), SEQ(NEXT(c))))", 'SEQ(a, AND(SEQ(NOT("event right before b"), b), SEQ(NOT("event right before c"), c)))'),
    ],
)  # fmt: skip
def test_gaps_are_negations(pattern, written):
    faults = Faults()
    query = parse(f"PATTERN {pattern}")
    assert negate_gaps(query.pattern, faults).pattern == parse(f"PATTERN {written}").pattern
    assert not faults.count
    assert format_query(query) == f"PATTERN {pattern}"


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("SEQ(NEXT(a), b)", r"column 13: NEXT\(a\) follows nothing"),
        ("NEXT(a)", r"column 9: NEXT\(a\) follows nothing"),
        ("AND(a, NEXT(b))", r"column 16: NEXT\(b\) follows nothing"),
        ("NEXT(NEXT(b))", r"column 14: NEXT\(b\) follows nothing"),
        ("SEQ(a, NOT(NEXT(b)), c)", r"column 20: NEXT\(b\) follows nothing"),
        ("SEQ(a, NEXT(b?), c)", r"column 16: b\? in NEXT\(b\?\) may bind nothing(.|\n)*write SEQ\(NEXT\(b\)\)\?"),
        ("SEQ(a, NEXT(b{0,4}), c)", r"may bind nothing(.|\n)*write SEQ\(NEXT\(b\{1,4\}\)\)\?"),
        ("SEQ(a, NEXT(NOT(b)), c)", r"column 16: NOT\(b\) in NEXT\(NOT\(b\)\) may bind nothing"),
        ("SEQ(a, NEXT(OR(b, c*)))", "may bind nothing"),
        ("SEQ(a, NEXT(AND(b?, c?)))", "may bind nothing"),
        ("SEQ(a, NEXT(b)) WHERE \"event right before b\".type = 'A'", "unknown variable 'event right before b'"),
    ],
)
def test_what_means_nothing_is_an_error(pattern, message):
    with pytest.raises(gpu_cep.PatternError, match=message) as raised:
        gpu_cep.match(EVENTS, f"PATTERN {pattern}")
    assert "no window" not in str(raised.value) or "NOT(b)" in pattern


@pytest.mark.parametrize("pattern", ["SEQ(A a+, NEXT(B b))", "SEQ(A a{1,2}, NEXT(B b))", "SEQ(AND(a, b{2,}), NEXT(c))", "SEQ(a*, NEXT(c))"])
def test_a_gap_that_may_move_is_refused_under_next(pattern):
    with pytest.raises(gpu_cep.UnsupportedError, match="behind a variable that may bind more"):
        gpu_cep.match(EVENTS, f"PATTERN {pattern}")


@pytest.mark.parametrize("pattern", ["SEQ(A a{2}, NEXT(B b))", "SEQ(a+, b, NEXT(c))", "SEQ(a?, NEXT(c+))"])
def test_a_gap_that_is_fixed_is_not_refused(pattern):
    assert gpu_cep.match(EVENTS, f"PATTERN {pattern}".replace("B b", "b")).num_rows == (pattern == "SEQ(a?, NEXT(c+))")


def test_explain_shows_the_gap():
    shown = repr(gpu_cep.explain(EVENTS, "PATTERN SEQ(A a, NEXT(B b), NEXT(C c))"))
    assert "no event right before b after {a}, before {b, c}\n" in shown
    assert "no event right before c after {a, b}, before {c}\n" in shown
