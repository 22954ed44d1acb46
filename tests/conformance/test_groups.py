"""Repeated groups against the oracle, and against queries that are written out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

import gpu_cep
from gpu_cep.lang.ast import STRATEGIES
from tests.conformance.expectation import answered, expected
from tests.conformance.test_conformance import applicable
from tests.drawn.queries import Case
from tests.effort import examples
from tests.results import matches_of

# A group, and one of its repetitions written out.
GROUPS = (
    ("SEQ(B b, A c)", "SEQ(B b{n}, A c{n})"), ("SEQ(B b+, A c)", "SEQ(B b{n}+, A c{n})"), ("AND(B b, A c)", "AND(B b{n}, A c{n})"),
    ("SEQ(B b, NOT(X x), A c)", "SEQ(B b{n}, NOT(X x{n}), A c{n})"), ("SEQ(B b, NEXT(A c))", "SEQ(B b{n}, NEXT(A c{n}))"),
)  # fmt: skip
CONDITIONS = (("b.x <= c.x", "b{n}.x <= c{n}.x"), ("a.x <= c.x", "a.x <= c{n}.x"), ("b.x = 0 OR c.k = a.k", ""), ("[k]", ""), ("", ""))
# What stands around a group, and what is left where the group is left out.
FRAMES = (
    ("SEQ(A a, {g})", "SEQ(A a)"), ("SEQ(A a, {g}, B d)", "SEQ(A a, B d)"), ("AND(A a, {g})", "AND(A a)"),
    ("SEQ(A a, SEQ({g}, NEXT(B d)))", "SEQ(A a, SEQ(NEXT(B d)))"), ("SEQ({g}, SEQ(NEXT(B d), A a))", "SEQ(B d, A a)"),
)  # fmt: skip


def columns(draw: st.DrawFn, usual: Sequence[object], others: tuple[object, ...], most: int) -> list[object]:
    """Values as usual but for a few rows: most examples then hold several repetitions."""
    rows = st.integers(0, max(len(usual) - 1, 0))
    changed = dict(draw(st.lists(st.tuples(rows, st.sampled_from(others)), min_size=most // 2, max_size=most)))
    return [changed.get(row, value) for row, value in enumerate(usual)]


@st.composite
def queries_of_few_events(draw: st.DrawFn, sizes: tuple[int, ...]) -> Callable[[str, str], Case]:
    """What makes a case of a pattern and its conditions, over events of one of some numbers."""
    size = draw(st.sampled_from(sizes))
    letters = columns(draw, "ABABABABABAB"[:size], tuple("ABX"), 3)
    k, x = (columns(draw, [0] * size, (1, 0, None), 5) for _ in range(2))
    events = pa.table({
        "ts": pa.array(range(size), pa.int64()), "type": pa.array(letters, pa.string()),
        "k": pa.array(k, pa.int64()), "x": pa.array(x, pa.int64()),
    })  # fmt: skip
    options = {"strategy": draw(st.sampled_from(STRATEGIES))}

    def case(pattern: str, where: str) -> Case:
        return Case(f"PATTERN {pattern}{f' WHERE {where}' if where else ''} WITHIN 10", events, options)

    return case


@st.composite
def cases(draw: st.DrawFn) -> tuple[Case, Case]:
    group, copy = draw(st.sampled_from(GROUPS))
    condition, of_copy = draw(st.sampled_from(CONDITIONS))
    number, (frame, without) = draw(st.sampled_from((2, 3, 2, 1))), draw(st.sampled_from(FRAMES))
    least = draw(st.sampled_from((number, number, number - 1, 0)))
    numbers = range(1, number + 1) if number > 1 else [""]
    copies = [copy.format(n=n) for n in numbers]
    written_out = [frame.format(g=f"SEQ({', '.join(copies[:count])})") for count in range(number, max(least, 1) - 1, -1)]
    written_out += [] if least else [without]
    of_copy = of_copy or condition.replace("b.x = 0 OR c.k = a.k", "(b{n}.x = 0 OR c{n}.k = a.k)")
    written = dict.fromkeys(of_copy.format(n=n) for n in numbers)
    case = draw(queries_of_few_events((9, 8, 7, 9, 9, 9, 9, 4, 0)))
    bounds = f"{{{number}}}" if least == number else f"{{{least},{number}}}"
    grouped = case(frame.format(g=f"{group}{bounds}"), condition)
    return grouped, case(f"OR({', '.join(written_out)})", " AND ".join(filter(None, written)))


@examples(150, 1_500)
@given(cases(), st.data())
def test_same_matches_as_written_out_and_as_the_oracle(pair, data):
    grouped, written_out = pair
    algorithm = data.draw(st.sampled_from(["auto", *applicable(written_out)]))
    wanted = expected(written_out)
    assert matches_of(answered(grouped, algorithm=algorithm, output="indices")) == wanted
    assert expected(grouped) == wanted


# A group in a group, where {i} is the inner one, and what of it is left without that.
OUTER = (("SEQ(B b{n}, {i})", "SEQ(B b{n})"), ("SEQ({i}, B b{n})", "SEQ(B b{n})"), ("AND(A b{n}, {i})", "AND(A b{n})"),
         ("SEQ(B b{n}, OR({i}, X x{n}))", None))  # fmt: skip
INNER = ("SEQ(B c{n}, A d{n})", "SEQ(A c{n}+, B d{n})", "AND(A c{n}, B d{n})", "SEQ(A c{n}, NEXT(B d{n}))")
# Conditions with the variables of one repetition of the outer group, {n}, and of the inner one, {m}.
NESTED = ("c{m}.x <= d{m}.x", "b{n}.x <= c{m}.x", "a.x <= d{m}.x", "b{n}.k = d{m}.k OR c{m}.x = 0", "")


@st.composite
def nested_cases(draw: st.DrawFn) -> tuple[Case, Case]:
    (outer, without), inner = draw(st.sampled_from(OUTER)), draw(st.sampled_from(INNER))
    most, inner_most = draw(st.sampled_from((2, 2, 1))), draw(st.sampled_from((2, 1)))
    least, inner_least = draw(st.integers(0, most)), draw(st.integers(0 if without else 1, inner_most))
    repetitions = [str(n) for n in range(1, most + 1)] if most > 1 else [""]

    def names(number: str) -> list[str]:
        """The numbers of the inner repetitions in an outer one."""
        return [f"{number}{'_' if number else ''}{m}" for m in range(1, inner_most + 1)] if inner_most > 1 else [number]

    def copies(number: str) -> list[str]:
        """What a repetition of the outer group may be."""
        groups = [[inner.format(n=name) for name in names(number)[:count]] for count in range(inner_most, inner_least - 1, -1)]
        return [(outer if group else without).format(n=number, i=f"SEQ({', '.join(group)})") for group in groups]

    choices = [choice for count in range(most, max(least, 1) - 1, -1) for choice in product(*map(copies, repetitions[:count]))]
    condition = draw(st.sampled_from(NESTED))
    numbers = [(number, name) for number in repetitions for name in names(number)]
    wanted = dict.fromkeys(f"({condition.format(n=number, m=name)})" for number, name in numbers if condition)
    if draw(st.booleans()):
        # a number of the outer group alone names all repetitions of the inner one, where that has numbers
        condition, wanted = "a.x <= d.x AND c1.x <= 1", dict.fromkeys(
            [*(f"a.x <= d{name}.x" for _, name in numbers), *(f"c{name}.x <= 1" for number, name in numbers if name.startswith("1")
                                                              and (number == "1" or name == "1"))]
        )  # fmt: skip
        if numbers == [("", "")]:
            condition, wanted = "a.x <= d.x", dict.fromkeys(["a.x <= d.x"])
    group = outer.format(n="", i=f"{inner.format(n='')}{{{inner_least},{inner_most}}}") + f"{{{least},{most}}}"
    case = draw(queries_of_few_events((10, 9, 10, 8, 10, 10, 5, 0)))
    written_out = [f"SEQ(A a, {', '.join(choice)})" for choice in choices] + ([] if least else ["SEQ(A a)"])
    return case(f"SEQ(A a, {group})", condition.format(n="", m="")), case(f"OR({', '.join(written_out)})", " AND ".join(wanted))


@examples(120, 1_500)
@given(nested_cases(), st.data())
def test_groups_in_groups_are_the_same_as_written_out(pair, data):
    grouped, written_out = pair
    algorithm = data.draw(st.sampled_from(["auto", *applicable(written_out)]))
    wanted = expected(written_out)
    assert matches_of(answered(grouped, algorithm=algorithm, output="indices")) == wanted
    assert expected(grouped) == wanted


def test_a_group_in_a_stream_in_a_rule_set_and_in_a_report_of_progress():
    letters = "ABXCBCDABCBBC"
    events = pa.table({"ts": range(len(letters)), "type": list(letters)})
    query = "PATTERN SEQ(A a, SEQ(B b, C c){2}) WITHIN 9"
    wanted = gpu_cep.match(events, query)
    assert wanted.num_rows
    assert wanted.column_names == ["match_start", "match_end", "a", "b1", "c1", "b2", "c2"]
    live = gpu_cep.stream(query, events.schema)
    parts = [*(live.push(events.slice(row, 1)) for row in range(events.num_rows)), live.finish()]
    assert [row for part in parts for row in part.to_pylist()] == wanted.to_pylist()
    together = gpu_cep.match_all(events, {"one": query}, output="events")
    assert together.drop_columns("pattern") == gpu_cep.match(events, query, output="events")
    assert max(gpu_cep.progress(events, query)["reached"].to_pylist()) == 5


def test_a_group_that_may_be_left_out_in_a_stream_and_in_a_rule_set():
    letters = "ABCDACDABCBCD"
    events = pa.table({"ts": range(len(letters)), "type": list(letters)})
    query = "PATTERN SEQ(A a, SEQ(B b, C c){0,2}, D d) WITHIN 6 RETURN a.ts AS a, c1.ts AS c1, c2.ts AS c2, d.ts AS d"
    wanted = gpu_cep.match(events, query)
    found = {tuple(row.values())[2:] for row in wanted.to_pylist()}
    assert found == {(0, 2, None, 3), (0, None, None, 3), (4, None, None, 6), (7, 9, 11, 12), (7, 9, None, 12), (7, None, None, 12)}
    live = gpu_cep.stream(query, events.schema)
    parts = [*(live.push(events.slice(row, 1)) for row in range(events.num_rows)), live.finish()]
    assert sorted((row for part in parts for row in part.to_pylist()), key=str) == sorted(wanted.to_pylist(), key=str)
    assert gpu_cep.match_all(events, {"one": query}).drop_columns("pattern") == wanted
