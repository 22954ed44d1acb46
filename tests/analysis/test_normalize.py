"""The pattern's partial order, and which patterns are refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_cep.analysis.bound import EventVariable
from gpu_cep.analysis.faults import Faults
from gpu_cep.analysis.normalize import branch, primitives
from gpu_cep.lang.ast import And, PatternNode, Repeat, Seq, Variable
from tests.analysis.queries import bound, errors, refusals


@pytest.mark.parametrize(
    ("pattern", "before"),
    [
        ("a", {"a": ""}),
        ("SEQ(a, b+, c)", {"a": "", "b": "a", "c": "ab"}),
        ("SEQ(AND(c, p+, d), b)", {"c": "", "p": "", "d": "", "b": "cpd"}),
        ("AND(a, SEQ(b, c))", {"a": "", "b": "", "c": "b"}),
        ("SEQ(a, AND(SEQ(b, c), d), e)", {"a": "", "b": "a", "c": "ab", "d": "a", "e": "abcd"}),
    ],
)
def test_order(pattern: str, before: dict[str, str]) -> None:
    query = bound(f"PATTERN {pattern}")
    names = [variable.name for variable in query.variables]
    (only,) = query.branches
    assert only.variables == tuple(range(len(names)))
    masks = dict(zip(names, only.before, strict=True))
    assert {name: "".join(other for bit, other in enumerate(names) if mask >> bit & 1) for name, mask in masks.items()} == before


@pytest.mark.parametrize(
    ("quantifier", "expected"),
    [
        ("", EventVariable("a", 1, 1, quantified=False)),
        ("+", EventVariable("a", 1, None, quantified=True)),
        ("{1}", EventVariable("a", 1, 1, quantified=True)),
        ("{2}", EventVariable("a", 2, 2, quantified=True)),
        ("{2,}", EventVariable("a", 2, None, quantified=True)),
        ("{2,5}", EventVariable("a", 2, 5, quantified=True)),
    ],
)
def test_quantifiers(quantifier: str, expected: EventVariable) -> None:
    assert bound(f"PATTERN a{quantifier}").variables == (expected,)


def patterns() -> st.SearchStrategy[PatternNode]:
    """Nested SEQ and AND over placeholders; :func:`named` tells the variables apart."""
    leaf: st.SearchStrategy[PatternNode] = st.sampled_from((Variable("_"), Repeat(Variable("_"), 1, None)))

    def composites(inner: st.SearchStrategy[PatternNode]) -> st.SearchStrategy[PatternNode]:
        elements = st.lists(inner, min_size=1, max_size=4).map(tuple)
        return st.one_of(st.builds(Seq, elements), st.builds(And, elements))

    return st.recursive(leaf, composites, max_leaves=12)


def named(node: PatternNode, path: tuple[int, ...] = ()) -> PatternNode:
    match node:
        case Variable():
            return Variable("v" + "_".join(map(str, path)))
        case Repeat(element, minimum, maximum):
            return Repeat(named(element, path), minimum, maximum)
        case Seq(elements) | And(elements):
            return type(node)(tuple(named(element, (*path, index)) for index, element in enumerate(elements)))
    raise TypeError(type(node).__name__)


def precedes(node: PatternNode, first: tuple[int, ...], second: tuple[int, ...]) -> bool:
    """Whether the variable at path `first` precedes that at `second`: the node at which they part is a SEQ."""
    while first[0] == second[0]:
        assert isinstance(node, Seq | And)
        node, first, second = node.elements[first[0]], first[1:], second[1:]
    return isinstance(node, Seq) and first[0] < second[0]


@given(patterns())
def test_order_is_the_naive_definition_and_a_strict_partial_order(shape: PatternNode) -> None:
    pattern = named(shape)
    names = [primitive.variable.name for primitive in primitives(pattern, Faults())]
    paths = [tuple(int(step) for step in name[1:].split("_") if step) for name in names]
    before = branch(pattern).before
    for v, second in enumerate(paths):
        for w, first in enumerate(paths):
            assert bool(before[v] >> w & 1) == (v != w and precedes(pattern, first, second))
        assert all(before[v] | before[w] == before[v] for w in range(len(paths)) if before[v] >> w & 1)


@pytest.mark.parametrize(
    ("pattern", "constructs"),
    [
        ("OR(a, b)", ["OR"]),
        ("SEQ(a, NOT(b), c)", ["NOT"]),
        ("SEQ(a, b?)", ["b?"]),
        ("SEQ(a, b*)", ["b*"]),
        ("SEQ(a, b{0,3})", ["b{0,3}"]),
        ("OR(SEQ(a?, NOT(b)), c*)", ["OR", "a?", "NOT", "c*"]),
        ("AND(SEQ(a, b), SEQ(c, b))", ["variable 'b' in several elements of AND or OR"]),
        (f"SEQ({', '.join(f'v{i}' for i in range(1025))})", ["a pattern of 1025 variables"]),
        ("SEQ(a, b{2147483648})", ["the quantifier of b{2147483648}"]),
        ("SEQ(a{1000000000000,}, b{1,2147483648})", ["the quantifier of a{1000000000000,}", "the quantifier of b{1,2147483648}"]),
    ],
)
def test_refusals(pattern: str, constructs: list[str]) -> None:
    assert [refusal.split(" is not supported; ")[0] for refusal in refusals(f"PATTERN {pattern}")] == constructs


def test_reluctant_and_composite_quantifiers_are_refused() -> None:
    faults = Faults()
    pattern = Seq((Repeat(Variable("a"), 1, None, greedy=False), Repeat(Seq((Variable("b"), Variable("c"))), 1, None)))
    assert [primitive.variable.name for primitive in primitives(pattern, faults)] == ["a", "b", "c"]
    assert [refusal.message for refusal in faults.refusals] == [
        "the reluctant quantifier of a+ is not supported",
        "the quantifier + on a composite pattern is not supported",
    ]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("SEQ(a, b, a)", ["variable 'a' stands in the pattern twice"]),
        ("AND(SEQ(a, a), b)", ["variable 'a' stands in the pattern twice"]),
        ("SEQ(a, AND(b, a), a)", ["variable 'a' stands in the pattern twice"] * 2),
    ],
)
def test_errors(pattern: str, expected: list[str]) -> None:
    assert errors(f"PATTERN {pattern}") == expected


@pytest.mark.parametrize(("minimum", "maximum", "written"), [(3, 2, "b{3,2}"), (0, 0, "b{0}")])
def test_bounds_allow_a_binding(minimum: int, maximum: int, written: str) -> None:
    faults = Faults()
    primitives(Repeat(Variable("b"), minimum, maximum), faults)
    assert [fault.message for fault in faults.errors] == [f"{written} allows no binding"]
    assert faults.refusals == []


def test_so_many_variables_are_allowed() -> None:
    query = bound(f"PATTERN SEQ({', '.join(f'v{i}' for i in range(1024))})")
    assert query.branches[0].before[1023] == 2**1023 - 1
