"""FIRST and ANY against the oracle, and against the strategies that they are for one gap."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_cep
from tests.conformance.expectation import answered, expected
from tests.conformance.test_conformance import applicable
from tests.drawn.queries import Case
from tests.effort import examples
from tests.results import matches_of

GAPS = ("{}", "{}", "FIRST({})", "ANY({})", "NEXT({})")
CONDITIONS = ("", " WHERE [k]", " WHERE a.x <= b.x", " WHERE a.k = b.k AND b.k = c.k", " WHERE a.x + b.x > c.x",
              " WHERE c.x > 0 AND a.x < c.x")  # fmt: skip
NESTED = (
    "{}",
    "{}",
    "OR(SEQ({}), SEQ({own}))",
    "OR(SEQ({}), SEQ(X d, {own}))",
    "SEQ({})",
    "NEXT(SEQ({}))",
    "OR(SEQ({}), ANY(X d))",
    "SEQ(SEQ(X d)?, {})",
    "ANY(OR(SEQ({}), X d))",
)
CHOICES = ("skip_till_next_match", "skip_till_any_match")


@st.composite
def cases(draw: st.DrawFn) -> Case:
    elements = [f"{draw(st.sampled_from('AAB' if name == 'a' else 'ABB'))} {name}" for name in "abc"]
    elements = [elements[0], *(draw(st.sampled_from(GAPS)).format(each) for each in elements[1:])]
    if not any(each.startswith(("FIRST", "ANY")) for each in elements):
        elements[2] = "ANY(A c)"
    extra = draw(st.sampled_from((None, None, "NOT(X n)", "B o?")))
    if extra is not None:
        elements.insert(draw(st.integers(1, 3)) if extra.endswith("?") else draw(st.integers(1, 2)), extra)
    nested = draw(st.sampled_from(NESTED))
    nested = nested if elements[1] in ("A b", "B b") else nested.replace("ANY(OR", "SEQ(OR")
    # the same variables behind other gaps, in another alternative
    types = re.findall(r"[AB] [bc]\b", ", ".join(elements))
    own = [draw(st.sampled_from(GAPS)).format(each) for each in types]
    elements = [elements[0], nested.format(", ".join(elements[1:]), own=", ".join(own))]
    size = draw(st.sampled_from((0, 3, 6, 8)))
    letters = draw(st.lists(st.sampled_from("AABBBX"), min_size=size, max_size=size))
    steps = draw(st.lists(st.sampled_from((0, 1, 1, 1)), min_size=size, max_size=size))
    numbers = st.lists(st.integers(0, 1), min_size=size, max_size=size)
    events = pa.table({
        "ts": pa.array([sum(steps[: place + 1]) for place in range(size)], pa.int64()), "type": pa.array(letters, pa.string()),
        "k": pa.array(draw(numbers), pa.int64()), "x": pa.array(draw(numbers), pa.int64()),
    })  # fmt: skip
    options = {"strategy": draw(st.sampled_from(CHOICES)), "ties": draw(st.sampled_from(("strict", "position")))}
    condition = draw(st.sampled_from(CONDITIONS))
    return Case(f"PATTERN SEQ({', '.join(elements)}){condition} WITHIN {draw(st.sampled_from((1, 3, 9)))}", events, options)


@examples(120, 1_000)
@given(cases(), st.data())
def test_same_matches_as_the_oracle(case, data):
    algorithm = data.draw(st.sampled_from(["auto", *applicable(case)]))
    assert matches_of(answered(case, algorithm=algorithm, output="indices")) == expected(case)


def found(letters: str, pattern: str, **options: object) -> list[str]:
    """The places of the events of each match, as one text for each."""
    events = pa.table({"ts": range(len(letters)), "type": list(letters)})
    table = gpu_cep.match(events, f"PATTERN {pattern} WITHIN 20", output="indices", **options)
    return ["".join(str(place) for place in row.values() if place is not None) for row in table.to_pylist()]


@pytest.mark.parametrize("letters", ["ABCBC", "ACABBCABXC", "AABBCC"])
def test_every_gap_of_one_kind_is_that_strategy(letters):
    for word, strategy in (("FIRST", CHOICES[0]), ("ANY", CHOICES[1])):
        plain = found(letters, "SEQ(A a, B b, C c)", strategy=strategy)
        assert plain
        for own in CHOICES:
            assert found(letters, f"SEQ(A a, {word}(B b), {word}(C c))", strategy=own) == plain


def test_one_gap_has_another_strategy():
    assert found("ABBCC", "SEQ(A a, B b, ANY(C c))") == ["013", "014"]
    assert found("ABBCC", "SEQ(A a, ANY(B b), C c)") == ["013", "023"]
    assert found("ABBCC", "SEQ(A a, ANY(SEQ(B b, C c)))") == ["013", "023"]
    assert found("ABBCC", "SEQ(A a, FIRST(B b), C c)", strategy="skip_till_any_match") == ["013", "014"]


def test_alternatives_with_gaps_of_their_own():
    assert found("ACBB", "SEQ(A a, OR(FIRST(B b), SEQ(C c, ANY(B d))))") == ["012", "02", "013"]
    assert found("ACBB", "SEQ(A a, ANY(OR(B b, SEQ(C c, B d))))") == ["012", "02", "03"]
    assert found("BAB", "OR(B b, SEQ(A a, ANY(B b)))") == ["0", "21", "2"]


def test_conditions_with_what_precedes_say_what_fits():
    events = pa.table({"ts": [1, 2, 3, 4], "type": list("ABBB"), "x": [1, 0, 1, 2]})
    query = "PATTERN SEQ(A a, FIRST(B b), ANY(B c)) WHERE {}"
    assert gpu_cep.match(events, query.format("a.x <= b.x"), output="indices").to_pylist() == [{"a": 0, "b": 2, "c": 3}]
    # what follows does not: the first B is taken, and none is below it
    assert gpu_cep.match(events, query.format("b.x > c.x"), output="indices").num_rows == 0
    falls = events.set_column(2, "x", pa.array([1, 1, 2, 1]))
    assert gpu_cep.match(falls, query.format("b.x > c.x"), output="indices").num_rows == 0


def test_of_events_of_one_time_each_is_a_first_one():
    events = pa.table({"ts": [1, 2, 2, 3], "type": list("ABBC")})
    query = "PATTERN SEQ(A a, FIRST(B b), ANY(C c))"
    assert gpu_cep.match(events, query).num_rows == 2
    assert gpu_cep.match(events, query, ties="position").num_rows == 1


@pytest.mark.parametrize(
    ("pattern", "options", "error", "message"),
    [
        ("SEQ(FIRST(A a), B b)", {}, gpu_cep.PatternError, r"column 13: FIRST\(…\) follows nothing"),
        ("AND(A a, ANY(B b))", {}, gpu_cep.PatternError, r"column 18: ANY\(…\) follows nothing"),
        ("NEXT(ANY(B b))", {}, gpu_cep.PatternError, r"ANY\(…\) follows nothing"),
        ("SEQ(A a, ANY(B b))", {"strategy": "strict_contiguity"}, gpu_cep.PatternError, "mean nothing under strict_contiguity"),
        ("SEQ(A a, ANY(B b+))", {}, gpu_cep.UnsupportedError, "ANY of what does not begin with a variable"),
        ("SEQ(A a, ANY(SEQ(FIRST(B b), C c)))", {}, gpu_cep.UnsupportedError, "ANY of what does not begin with a variable"),
        ("SEQ(A a+, ANY(B b))", {}, gpu_cep.UnsupportedError, "beside a quantifier or AND"),
        ("SEQ(AND(A a, C c), ANY(B b))", {}, gpu_cep.UnsupportedError, "beside a quantifier or AND"),
        ("OR(SEQ(FIRST(B b), C c), SEQ(ANY(B b), D d))", {}, gpu_cep.PatternError, r"FIRST\(…\) follows nothing"),
    ],
)
def test_what_means_nothing_is_refused(pattern, options, error, message):
    with pytest.raises(error, match=message):
        found("AB", pattern, **options)


def test_a_variable_behind_different_gaps_in_its_alternatives():
    assert found("ACBB", "SEQ(A a, OR(FIRST(B b), SEQ(C c, ANY(B b))))") == ["02", "021", "031"]
    assert found("ACBB", "SEQ(A a, ANY(OR(B b, SEQ(C c, B b))))") == ["02", "021", "03"]
    assert found("ADBB", "OR(SEQ(A a, FIRST(B b)), SEQ(D d, ANY(B b)))") == ["02", "21", "31"]
    assert found("ACBXB", "SEQ(A a, OR(NEXT(B b), SEQ(C c, ANY(B b))))") == ["021", "041"]
    # one sequence with both gaps is the union
    assert found("ABB", "SEQ(A a, OR(FIRST(B b), ANY(B b)))") == ["01", "02"]


def test_what_may_be_left_out_has_its_gap_where_it_is_there():
    assert sorted(found("ABBB", "SEQ(A a, B b?, ANY(B c))")) == ["01", "012", "013", "02", "03"]
    assert found("ACB", "SEQ(A a, B b?, FIRST(C c))") == ["01"]
    assert found("ABB", "SEQ(A a, ANY(C c), B b?)") == []
    for letters in ("ABBBX", "ABXBB", "BABAB"):
        written_out = found(letters, "OR(SEQ(A a, B b, FIRST(B c)), SEQ(A a, FIRST(B c)))", strategy="skip_till_next_match")
        assert found(letters, "SEQ(A a, B b?, FIRST(B c))", strategy="skip_till_next_match") == written_out


A, B, C = (gpu_cep.var(letter.lower(), letter) for letter in "ABC")
BUILT = (
    (gpu_cep.seq(A, gpu_cep.first_(B)), "SEQ(A a, FIRST(B b))"),
    (gpu_cep.seq(A, gpu_cep.any_(B)), "SEQ(A a, ANY(B b))"),
    (gpu_cep.seq(A, gpu_cep.any_(C), B), "SEQ(A a, ANY(C c), B b)"),
)


@pytest.mark.parametrize(("built", "written"), BUILT, ids=[written for _, written in BUILT])
@pytest.mark.parametrize("strategy", CHOICES)
def test_a_pattern_that_is_built_means_what_the_text_does(built, written, strategy):
    events = pa.table({"ts": range(5), "type": list("ACCBB")})
    options = {"strategy": strategy, "output": "indices"}
    found_of_text = gpu_cep.match(events, f"PATTERN {written} WITHIN 9", **options)
    assert found_of_text.num_rows
    assert gpu_cep.match(events, built.within(9), **options).equals(found_of_text)
    with pytest.raises(gpu_cep.PatternError, match="mean nothing under robust_skip_till_next_match"):
        gpu_cep.match(events, built.within(9), strategy="robust_skip_till_next_match")


def test_a_variable_that_stands_twice_is_named_alone():
    with pytest.raises(gpu_cep.PatternError, match="'b' stands in the pattern twice") as raised:
        found("AB", "SEQ(A a, FIRST(B b), FIRST(B b))")
    assert "earlier" not in str(raised.value)


@pytest.mark.parametrize("word", ["NEXT", "FIRST", "ANY"])
def test_brackets_are_asked_for(word):
    with pytest.raises(gpu_cep.PatternSyntaxError, match=rf"{word} has brackets: SEQ\(A a, {word}\(B b\)\)"):
        gpu_cep.parse(f"PATTERN SEQ(A a, {word} B b)")


def test_explain_says_what_is_not_in_between():
    events = pa.table({"ts": [1], "type": ["A"]})
    assert "no earlier b after {a}, before {b, c}" in repr(gpu_cep.explain(events, "PATTERN SEQ(A a, B b, ANY(C c))"))


def test_streams_agree():
    events = pa.table({"ts": range(8), "type": list("ABXBCABC")})
    query = "PATTERN SEQ(A a, B b, ANY(C c)) WITHIN 7"
    live = gpu_cep.stream(query, events.schema, output="events")
    parts = [*(live.push(events.slice(row, 1)) for row in range(events.num_rows)), live.finish()]
    rows = [(row["variable"], row["ts"]) for part in parts for row in part.to_pylist()]
    wanted = gpu_cep.match(events, query, output="events").to_pylist()
    assert sorted(rows) == sorted((row["variable"], row["ts"]) for row in wanted)
    assert wanted
