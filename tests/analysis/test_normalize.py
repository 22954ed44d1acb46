"""The pattern's branches, each a partial order, and which patterns are refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_cep.analysis.bound import BoundPattern, Branch, EventVariable
from gpu_cep.analysis.faults import Faults
from gpu_cep.analysis.normalize import branches, primitives
from gpu_cep.errors import PatternError
from gpu_cep.lang.ast import And, PatternNode, Repeat, Seq, Span, Variable
from tests.analysis.queries import bound, errors, refusals


def in_words(query: BoundPattern, branch: Branch) -> str:
    """A branch in words: each variable with those before it, each negation as ``after!variable!before``."""

    def names(mask: int) -> str:
        return "".join(variable.name for number, variable in enumerate(query.variables) if mask >> number & 1)

    ordered = zip(branch.variables, branch.before, strict=True)
    positives = [f"{names(mask)}<{names(1 << v)}" if mask else names(1 << v) for v, mask in ordered]
    negations = [f"{names(negation.after)}!{names(1 << negation.variable)}!{names(negation.before)}" for negation in branch.negations]
    return " ".join(positives + negations)


def written(pattern: str) -> list[str]:
    query = bound(f"PATTERN {pattern} WITHIN 5 s")
    return [in_words(query, branch) for branch in query.branches]


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
        ("?", EventVariable("a", 1, 1, quantified=False, optional=True)),
        ("{0,1}", EventVariable("a", 1, 1, quantified=False, optional=True)),
        ("*", EventVariable("a", 1, None, quantified=True, optional=True)),
        ("{0,3}", EventVariable("a", 1, 3, quantified=True, optional=True)),
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
    variables = tuple(EventVariable(name, 1, 1, quantified=False) for name in names)
    (only,) = branches(pattern, variables, Faults())
    before = only.before
    for v, second in enumerate(paths):
        for w, first in enumerate(paths):
            assert bool(before[v] >> w & 1) == (v != w and precedes(pattern, first, second))
        assert all(before[v] | before[w] == before[v] for w in range(len(paths)) if before[v] >> w & 1)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("OR(a, b)", ["a", "b"]),
        ("OR(a, SEQ(a, b))", ["a", "a a<b"]),
        ("OR(a, a)", ["a"]),
        ("SEQ(a, OR(b, c), d)", ["a a<b ab<d", "a a<c ac<d"]),
        ("AND(OR(a, b), OR(c, d))", ["a c", "a d", "b c", "b d"]),
        ("OR(SEQ(a, b), SEQ(b, a))", ["a a<b", "b<a b"]),
        ("SEQ(a, b?)", ["a a<b", "a"]),
        ("SEQ(a?, b*)", ["a a<b", "a", "b"]),
        ("SEQ(a, b{0,3}, c)", ["a a<b ab<c", "a a<c"]),
        ("OR(a, b?)", ["a", "b"]),
    ],
)
def test_or_and_optional_variables_make_branches(pattern: str, expected: list[str]) -> None:
    assert written(pattern) == expected


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("AND(SEQ(a, b), SEQ(c, b))", ["a ac<b c"]),
        ("AND(SEQ(a, b), SEQ(b, c))", ["a a<b ab<c"]),
        ("AND(SEQ(a, b), SEQ(b, c), SEQ(c, d))", ["a a<b ab<c abc<d"]),
        ("SEQ(AND(SEQ(a, b), SEQ(b, c)), d)", ["a a<b ab<c abc<d"]),
        ("AND(SEQ(a, b), SEQ(a, b))", ["a a<b"]),
        # a variable is there or not, wherever it stands
        ("AND(SEQ(a, b?), SEQ(b?, c))", ["a a<b ab<c", "a c"]),
        ("AND(SEQ(a, b*), OR(b*, c))", ["a a<b", "a a<b c", "a c", "a"]),
    ],
)
def test_a_variable_in_several_elements_of_and(pattern: str, expected: list[str]) -> None:
    assert sorted(written(pattern)) == sorted(expected)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("SEQ(a, NOT(b), c)", ["a a<c a!b!c"]),
        ("SEQ(NOT(b), a)", ["a !b!a"]),
        ("SEQ(a, ~b)", ["a a!b!"]),
        ("AND(a, NOT(b))", ["a !b!"]),
        ("SEQ(a, AND(NOT(b), c), d)", ["a a<c ac<d a!b!d"]),
        ("SEQ(a, NOT(b), NOT(c), d)", ["a a<d a!b!d a!c!d"]),
        ("SEQ(a?, NOT(b), c)", ["a a<c a!b!c", "c !b!c"]),
        ("OR(a, NOT(b))", ["a"]),
    ],
)
def test_negations_stand_between_the_positive_variables(pattern: str, expected: list[str]) -> None:
    assert written(pattern) == expected


def test_negated_variables_come_last() -> None:
    query = bound("PATTERN SEQ(a, NOT(b), c)")
    assert [(variable.name, variable.negated) for variable in query.variables] == [("a", False), ("c", False), ("b", True)]
    assert query.positives == query.variables[:2]


def optional(count: int) -> str:
    return f"SEQ({', '.join(f'v{i}?' for i in range(count))})"


def test_so_many_branches_are_allowed() -> None:
    assert len(bound(f"PATTERN {optional(10)}").branches) == 2**10 - 1, "the one that binds nothing is none"
    (refusal,) = refusals(f"PATTERN SEQ(OR(a, b, c), {optional(9)}, OR(d, e, f))")
    assert refusal == "a pattern of 4,608 branches is not supported; OR, ?, * and repeated groups may make up to 1,024"


@pytest.mark.parametrize("pattern", [optional(300), f"AND({', '.join(['a?'] * 20_000)})"])
def test_a_number_of_branches_beyond_writing_is_refused(pattern: str) -> None:
    (refusal,) = refusals(f"PATTERN {pattern}")
    assert refusal.startswith("a pattern of more than 1,000,000,000,000 branches is not supported")


@pytest.mark.parametrize(
    ("pattern", "constructs"),
    [
        (f"SEQ({', '.join(f'v{i}' for i in range(1025))})", ["a pattern of 1,025 variables"]),
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


TWICE = "variable 'a' stands in the pattern twice; give each its own name"
UNLIKE = "stands in the pattern with different types, quantifiers, ends or negations; write it alike everywhere, or give each its own name"
EACH_NOT = "NOT takes a single variable without a quantifier; each has a NOT of its own"
NOTHING = "the pattern binds no event; NOT needs a variable beside it that is not negated"


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("SEQ(a, b, a)", [TWICE]),
        ("AND(SEQ(a, a), b)", [TWICE]),
        ("SEQ(a, AND(b, a), a)", [TWICE] * 2),
        ("SEQ(OR(a, b), a)", [TWICE]),
        ("AND(SEQ(a, b), SEQ(b, a))", ["the pattern orders a, b in a circle"]),
        ("AND(SEQ(a, b), SEQ(b, c), SEQ(c, a), d)", ["the pattern orders a, b, c in a circle"]),
        ("AND(a, A a)", [f"variable 'a' {UNLIKE}"]),
        ("OR(a+, a)", [f"variable 'a' {UNLIKE}"]),
        ("AND(SEQ(a, b), SEQ(NOT(a), c))", [f"variable 'a' {UNLIKE}"]),
        ("NOT(a)", [NOTHING]),
        ("OR(NOT(a), SEQ(NOT(b), NOT(c)))", [NOTHING]),
        ("SEQ(a, NOT(SEQ(b, c)))", ["NOT takes a single variable without a quantifier"]),
        ("SEQ(a, NOT(B b+))", ["NOT takes a single variable without a quantifier; NOT(B b) forbids every such event"]),
        ("SEQ(a, NOT(OR(B b, OR(c+, D d))))", [f"{EACH_NOT}: NOT(B b), NOT(c), NOT(D d)"]),
        ("SEQ(a, NOT(OR(b, SEQ(c, d))))", ["NOT takes a single variable without a quantifier"]),
    ],
)
def test_errors(pattern: str, expected: list[str]) -> None:
    assert errors(f"PATTERN {pattern} WITHIN 5 s") == expected


@pytest.mark.parametrize(
    ("pattern", "names"), [("SEQ(NOT(b), a)", "b"), ("SEQ(a, NOT(b))", "b"), ("AND(a, NOT(b))", "b"), ("SEQ(a?, NOT(b), NOT(d), c)", "bd")]
)
def test_a_negation_that_is_open_on_a_side_needs_a_window(pattern: str, names: str) -> None:
    unbounded = "is not bounded on both sides by other variables, and the query has no window; add WITHIN"
    quoted = 'an event type of this name is quoted: "Not"'
    assert errors(f"PATTERN {pattern}") == [f"NOT({name}) {unbounded}; {quoted} {name}" for name in names]
    assert bound(f"PATTERN {pattern} WITHIN 3 EVENTS").branches


def test_a_negation_without_a_window_is_shown_at_its_place() -> None:
    with pytest.raises(PatternError) as caught:
        bound("PATTERN SEQ(a, NOT(T b))")
    assert [(fault.span, fault.hint) for fault in caught.value.diagnostics] == [(Span(1, 20, 1, 23), "add WITHIN")]


def test_a_negation_between_two_variables_needs_no_window() -> None:
    assert bound("PATTERN SEQ(a, NOT(b), c)").window is None


@pytest.mark.parametrize(("minimum", "maximum", "written"), [(3, 2, "b{3,2}"), (0, 0, "b{0}")])
def test_bounds_allow_a_binding(minimum: int, maximum: int, written: str) -> None:
    faults = Faults()
    primitives(Repeat(Variable("b"), minimum, maximum), faults)
    assert [fault.message for fault in faults.errors] == [f"{written} allows no binding"]
    assert faults.refusals == []


def test_so_many_variables_are_allowed() -> None:
    query = bound(f"PATTERN SEQ({', '.join(f'v{i}' for i in range(1024))})")
    assert query.branches[0].before[1023] == 2**1023 - 1
