"""The number of branches of a pattern, counted before its groups are written out."""

from __future__ import annotations

from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_cep.lang.ast import And, Or, PatternNode, Query, Repeat, Seq, Variable
from gpu_cep.lang.branches import number_of_branches, refused_branches
from gpu_cep.lang.groups import expand_groups
from gpu_cep.lang.parser import parse
from tests.effort import examples


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("SEQ(a, b+)", 1), ("SEQ(a?, b*)", 4), ("OR(a, b?, SEQ(c, d))", 4), ("SEQ(a, NOT(b), OR(c, d))", 2), ("SEQ(a, NEXT(OR(b, c)))", 2),
        ("SEQ(a, SEQ(b){3})", 1), ("SEQ(a, SEQ(b){1,3})", 3), ("SEQ(a, SEQ(b){0,3})", 4), ("SEQ(b){0,3}", 3), ("AND(SEQ(b)?, SEQ(c)?)", 3),
        ("SEQ(a, SEQ(SEQ(b)?)?)", 2), ("OR(SEQ(a)?, SEQ(b)?)", 2), ("SEQ(c, OR(SEQ(a)?, SEQ(b)?))", 3), ("SEQ(OR(a, b)){2}", 4),
        ("SEQ(a, SEQ(b, SEQ(c){0,2}){0,2})", 13), ("SEQ(a?){1,10}", 2_046),
    ],
)  # fmt: skip
def test_number_of_branches(text: str, number: int) -> None:
    query = parse(f"PATTERN {text}")
    assert number_of_branches(query.pattern) == number
    assert (refused_branches(query.pattern) is None) == (number <= 1_024)


@st.composite
def patterns(draw: st.DrawFn) -> PatternNode:
    """Patterns of variables with names of their own, with groups in groups."""
    names = (chr(ord("a") + number) for number in count())

    def node(depth: int) -> PatternNode:
        if not depth or draw(st.integers(0, 2)) == 0:
            variable = Variable(next(names))
            return draw(st.sampled_from((variable, variable, Repeat(variable, 0, 1), Repeat(variable, 1, None))))
        kind = draw(st.sampled_from((Seq, And, Or)))
        composite = kind(tuple(node(depth - 1) for _ in range(draw(st.integers(1, 2)))))
        least, more = draw(st.sampled_from(((1, 0), (0, 1), (2, 0), (1, 1), (0, 2))))
        return Repeat(composite, least, least + more) if draw(st.booleans()) else composite

    return Seq((Variable("z"), node(3)))


@examples(100, 1_000)
@given(patterns())
def test_no_more_branches_than_in_the_pattern_that_is_written_out(pattern: PatternNode) -> None:
    if refused_branches(pattern) is None:
        # a group in a group that is left out with it, and alone, leaves the same branch twice
        assert number_of_branches(pattern) <= number_of_branches(expand_groups(Query(pattern)).pattern)
