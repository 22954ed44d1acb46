"""Repeated groups against the oracle, and against queries that are written out."""

from __future__ import annotations

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
CONDITIONS = (("", ""), ("b.x <= c.x", "b{n}.x <= c{n}.x"), ("a.x <= c.x", "a.x <= c{n}.x"), ("[k]", ""), ("b.x = 0 OR c.k = a.k", ""))
# What stands around a group, and what is left where the group is left out.
FRAMES = (
    ("SEQ(A a, {g})", "SEQ(A a)"), ("SEQ(A a, {g}, B d)", "SEQ(A a, B d)"), ("AND(A a, {g})", "AND(A a)"),
    ("SEQ(A a, SEQ({g}, NEXT(B d)))", "SEQ(A a, SEQ(NEXT(B d)))"), ("SEQ({g}, SEQ(NEXT(B d), A a))", "SEQ(B d, A a)"),
)  # fmt: skip


@st.composite
def cases(draw: st.DrawFn) -> tuple[Case, Case]:
    group, copy = draw(st.sampled_from(GROUPS))
    condition, of_copy = draw(st.sampled_from(CONDITIONS))
    number, (frame, without) = draw(st.integers(1, 3)), draw(st.sampled_from(FRAMES))
    least = draw(st.sampled_from((number, number, number - 1, 0)))
    numbers = range(1, number + 1) if number > 1 else [""]
    copies = [copy.format(n=n) for n in numbers]
    written_out = [frame.format(g=f"SEQ({', '.join(copies[:count])})") for count in range(number, max(least, 1) - 1, -1)]
    written_out += [] if least else [without]
    of_copy = of_copy or condition.replace("b.x = 0 OR c.k = a.k", "(b{n}.x = 0 OR c{n}.k = a.k)")
    written = dict.fromkeys(of_copy.format(n=n) for n in numbers)
    size = draw(st.sampled_from((0, 3, 5, 7, 9, 9, 9)))
    letters, values = st.sampled_from("ABABABX"), st.sampled_from((0, 0, 1, None))
    drawn = [draw(st.lists(each, min_size=size, max_size=size)) for each in (letters, values, values)]
    events = pa.table({
        "ts": pa.array(range(size), pa.int64()), "type": pa.array(drawn[0], pa.string()),
        "k": pa.array(drawn[1], pa.int64()), "x": pa.array(drawn[2], pa.int64()),
    })  # fmt: skip
    options = {"strategy": draw(st.sampled_from(STRATEGIES))}

    def case(pattern: str, where: str) -> Case:
        return Case(f"PATTERN {pattern}{f' WHERE {where}' if where else ''} WITHIN 9", events, options)

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
