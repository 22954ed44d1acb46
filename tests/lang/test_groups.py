"""Repeated groups: how they are read and written, and what they stand for."""

from __future__ import annotations

import pyarrow as pa
import pytest

import gpu_cep as cep
from gpu_cep.lang import groups
from gpu_cep.lang.ast import Repeat, Seq, Variable
from gpu_cep.lang.format import format_query
from gpu_cep.lang.groups import expand_groups
from gpu_cep.lang.parser import parse
from gpu_cep.queries.plans import as_query

B, C = Variable("b", "B"), Variable("c")


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("SEQ(B b, c){3}", Repeat(Seq((B, C)), 3, 3)),
        ("SEQ(a, SEQ(B b, c) {2}, d)", Seq((Variable("a"), Repeat(Seq((B, C)), 2, 2), Variable("d")))),
        ("SEQ(B b, c){2,}", Repeat(Seq((B, C)), 2, None)),
        ("SEQ(B b, c){0,3}", Repeat(Seq((B, C)), 0, 3)),
        ("SEQ(B b, c)?", Repeat(Seq((B, C)), 0, 1)),
    ],
)
def test_reading_and_writing(text, tree):
    query = parse(f"PATTERN {text}")
    assert query.pattern == tree
    assert parse(format_query(query)) == query


@pytest.mark.parametrize(
    ("group", "written_out"),
    [
        ("SEQ(a, SEQ(b, c){2})", "SEQ(a, SEQ(SEQ(b1, c1), SEQ(b2, c2)))"),
        ("AND(b, c+){2}", "SEQ(AND(b1, c1+), AND(b2, c2+))"),
        ("SEQ(a, OR(b, NOT(c)){1})", "SEQ(a, SEQ(OR(b, NOT(c))))"),
        ("SEQ(a, NEXT(SEQ(b, NEXT(c)){2}))", "SEQ(a, NEXT(SEQ(SEQ(b1, NEXT(c1)), SEQ(b2, NEXT(c2)))))"),
        ("SEQ(a, SEQ(b+ UNTIL (b.x = a), c){2})", "SEQ(a, SEQ(SEQ(b1+ UNTIL (b1.x = a), c1), SEQ(b2+ UNTIL (b2.x = a), c2)))"),
        ("SEQ(a, SEQ(b+ UNTIL (b), c){2})", "SEQ(a, SEQ(SEQ(b1+ UNTIL (b), c1), SEQ(b2+ UNTIL (b), c2)))"),
        ("SEQ(a, SEQ(b){1,3})", "SEQ(a, OR(SEQ(SEQ(b1), SEQ(b2), SEQ(b3)), SEQ(SEQ(b1), SEQ(b2)), SEQ(SEQ(b1))))"),
        ("SEQ(a, SEQ(b)?, c) RETURN b.x", "OR(SEQ(a, SEQ(SEQ(b)), c), SEQ(a, c)) RETURN b.x"),
        ("SEQ(SEQ(b)?, AND(c){0,1})", "OR(SEQ(SEQ(SEQ(b)), SEQ(AND(c))), SEQ(SEQ(SEQ(b))), SEQ(SEQ(AND(c))))"),
        ("AND(a, OR(x, SEQ(b)?))", "OR(AND(a, OR(x, SEQ(SEQ(b)))), AND(a))"),
        ("SEQ(a, SEQ(SEQ(b)?), NEXT(c))", "OR(SEQ(a, SEQ(SEQ(SEQ(b))), NEXT(c)), SEQ(a, NEXT(c)))"),
        ("SEQ(a, SEQ(SEQ(b)?, NEXT(c)))", "OR(SEQ(a, SEQ(SEQ(SEQ(b)), NEXT(c))), SEQ(a, SEQ(NEXT(c))))"),
        ("SEQ(SEQ(b)?, SEQ(OR(ANY(c), d), NEXT(e)))", "OR(SEQ(SEQ(SEQ(b)), SEQ(OR(ANY(c), d), NEXT(e))), SEQ(SEQ(OR(c, d), NEXT(e))))"),
        ("SEQ(b, c){0,2} WHERE b.x < c.x", "OR(SEQ(SEQ(b1, c1), SEQ(b2, c2)), SEQ(SEQ(b1, c1))) WHERE b1.x < c1.x AND b2.x < c2.x"),
        ("SEQ(a, SEQ(b, c){2}) WHERE a.x < b.x AND [k]", "SEQ(a, SEQ(SEQ(b1, c1), SEQ(b2, c2))) WHERE a.x < b1.x AND a.x < b2.x AND [k]"),
        ("SEQ(b, c){2} WHERE b.x < c.x OR b.x = 1",
         "SEQ(SEQ(b1, c1), SEQ(b2, c2)) WHERE (b1.x < c1.x OR b1.x = 1) AND (b2.x < c2.x OR b2.x = 1)"),
        ("SEQ(SEQ(b){2}, SEQ(c){2}) WHERE b.x < c.x",
         "SEQ(SEQ(SEQ(b1), SEQ(b2)), SEQ(SEQ(c1), SEQ(c2))) WHERE b1.x < c1.x AND b1.x < c2.x AND b2.x < c1.x AND b2.x < c2.x"),
        ("SEQ(b+, c){2} WHERE sum(b.x) > 1 AND prev(b.x) < b.x RETURN b2.x",
         "SEQ(SEQ(b1+, c1), SEQ(b2+, c2)) WHERE sum(b1.x) > 1 AND sum(b2.x) > 1 AND prev(b1.x) < b1.x AND prev(b2.x) < b2.x RETURN b2.x"),
        ("SEQ(b, SEQ(c, d){2}){2} WHERE b.x < c.x AND c.x < d.x AND c2.x = 1 AND d1_2.x = 2",
         "SEQ(SEQ(b1, SEQ(SEQ(c1_1, d1_1), SEQ(c1_2, d1_2))), SEQ(b2, SEQ(SEQ(c2_1, d2_1), SEQ(c2_2, d2_2)))) WHERE "
         "b1.x < c1_1.x AND b1.x < c1_2.x AND b2.x < c2_1.x AND b2.x < c2_2.x AND c1_1.x < d1_1.x AND c1_2.x < d1_2.x "
         "AND c2_1.x < d2_1.x AND c2_2.x < d2_2.x AND c2_1.x = 1 AND c2_2.x = 1 AND d1_2.x = 2"),
        ("SEQ(SEQ(SEQ(c){2}){2}){2} WHERE skip_till_any_match(c) { c2_1.x = 1 } RETURN c2_1_2.x",
         "SEQ(SEQ(SEQ(SEQ(SEQ(SEQ(c1_1_1), SEQ(c1_1_2))), SEQ(SEQ(SEQ(c1_2_1), SEQ(c1_2_2))))), "
         "SEQ(SEQ(SEQ(SEQ(SEQ(c2_1_1), SEQ(c2_1_2))), SEQ(SEQ(SEQ(c2_2_1), SEQ(c2_2_2)))))) "
         "WHERE skip_till_any_match(c1_1_1, c1_1_2, c1_2_1, c1_2_2, c2_1_1, c2_1_2, c2_2_1, c2_2_2) "
         "{ c2_1_1.x = 1 AND c2_1_2.x = 1 } RETURN c2_1_2.x"),
        ("SEQ(b, SEQ(SEQ(c){2}){1}){2}",
         "SEQ(SEQ(b1, SEQ(SEQ(SEQ(SEQ(c1_1), SEQ(c1_2))))), SEQ(b2, SEQ(SEQ(SEQ(SEQ(c2_1), SEQ(c2_2))))))"),
        ("SEQ(a, SEQ(b, SEQ(c){2})?)", "OR(SEQ(a, SEQ(SEQ(b, SEQ(SEQ(c1), SEQ(c2))))), SEQ(a))"),
        ("SEQ(b, SEQ(c)?){2}",
         "OR(SEQ(SEQ(b1, SEQ(SEQ(c1))), SEQ(b2, SEQ(SEQ(c2)))), SEQ(SEQ(b1, SEQ(SEQ(c1))), SEQ(b2)), "
         "SEQ(SEQ(b1), SEQ(b2, SEQ(SEQ(c2)))), SEQ(SEQ(b1), SEQ(b2)))"),
        ("SEQ(a, SEQ(b, SEQ(c){2}){1,2})",
         "SEQ(a, OR(SEQ(SEQ(b1, SEQ(SEQ(c1_1), SEQ(c1_2))), SEQ(b2, SEQ(SEQ(c2_1), SEQ(c2_2)))), "
         "SEQ(SEQ(b1, SEQ(SEQ(c1_1), SEQ(c1_2))))))"),
        ("OR(SEQ(a, SEQ(b){2}), SEQ(d, SEQ(b){2}))", "OR(SEQ(a, SEQ(SEQ(b1), SEQ(b2))), SEQ(d, SEQ(SEQ(b1), SEQ(b2))))"),
        ("SEQ(a, SEQ(b, c){2}) WHERE skip_till_any_match(a, b, c) { a.x = 1 }",
         "SEQ(a, SEQ(SEQ(b1, c1), SEQ(b2, c2))) WHERE skip_till_any_match(a, b1, c1, b2, c2) { a.x = 1 }"),
    ],
)  # fmt: skip
def test_a_group_stands_for_its_copies(group, written_out):
    expanded, wanted = expand_groups(parse(f"PATTERN {group}")), parse(f"PATTERN {written_out}")
    assert set(expanded.strategy_variables) == set(wanted.strategy_variables)
    assert expand_groups(expanded) is expanded
    assert (expanded.pattern, expanded.where, expanded.returns) == (wanted.pattern, wanted.where, wanted.returns)


def test_a_query_without_groups_stays_as_it_is():
    query = parse("PATTERN SEQ(a, b{3}) WHERE a.x = 1")
    assert expand_groups(query) is query


def test_the_builder_repeats_groups():
    a, b, c = cep.var("a"), cep.var("b"), cep.var("c")
    built = cep.seq(a, cep.seq(b, c).times(2)).where(b.x < c.x)
    assert str(built) == "PATTERN SEQ(a, SEQ(b, c){2})\nWHERE b.x < c.x"
    assert as_query(built) == as_query(str(built))
    with pytest.raises(cep.PatternError, match=r"only seq\(…\), all_of\(…\) and any_of\(…\) are repeated"):
        cep.next_(a).times(2)
    assert str(cep.seq(cep.seq(a, b).optional(), c)) == "PATTERN SEQ(SEQ(a, b)?, c)"
    with pytest.raises(cep.PatternError, match="at least one repetition"):
        cep.seq(a, b).times(0)
    with pytest.raises(cep.PatternError, match="from 2 to 1 allows nothing"):
        cep.seq(a, b).times(2, 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SEQ(a, SEQ(b, c){2,})", r"a group without a largest number of repetitions is not supported(.|\n)*SEQ\(b, c\)\{2,5\}"),
        ("SEQ(a, SEQ(b, c){2,65})", "a group of up to 65 repetitions is not supported"),
        (f"AND({', '.join(f'SEQ(b{n}_)?' for n in range(11))})", "a pattern of 2,047 branches is not supported"),
        ("SEQ(a, SEQ(b, SEQ(c, d){2,}){2})", "a group without a largest number of repetitions is not supported"),
        (
            "SEQ(b, SEQ(c){4}){257}",
            "a group of 1,028 repetitions, with those of the groups around it, is not supported(.|\n)*up to 1,024 are",
        ),
        (
            "SEQ(b, SEQ(c){1,3}){22}",
            "a group of up to 66 repetitions, with those of the groups around it, is not supported(.|\n)*up to 64 are",
        ),
        ("SEQ(b, SEQ(c){3}){1,22}", "a group of up to 66 repetitions"),
        ("SEQ(b, SEQ(c)?){11}", "a pattern of 2,048 branches is not supported"),
        ("SEQ(b, SEQ(c){2}){2} RETURN c.x", "'c' stands in a repeated group(.|\n)*name a repetition: c1_1, c1_2, c2_1$"),
        ("SEQ(b, SEQ(SEQ(c){2}){1}){2} RETURN c.x", "name a repetition: c1_1, c1_2, c2_1$"),
        ("SEQ(a, SEQ(b, SEQ(c)?){2}) RETURN c.x", "'c' stands in a repeated group(.|\n)*name a repetition: c1, c2$"),
        ("SEQ(a, SEQ(b){5}) RETURN b.x", "name a repetition: b1, b2, b3$"),
        ("SEQ(b, SEQ(c){2}){2} RETURN c2.x", "'c2' stands in a repeated group(.|\n)*name a repetition: c2_1, c2_2"),
        ("SEQ(SEQ(b, SEQ(c){2}){2}, c1_2)", "'c1_2' is a variable of the query, and a copy of 'c' in a repeated group"),
        ("SEQ(SEQ(b, SEQ(c){2}){2}, c1)", "'c1' is a variable of the query, and a copy of 'c' in a repeated group"),
        ("SEQ(SEQ(b, SEQ(c){2}){2}, SEQ(c1_){2})", "'c1_1' is a copy of 'c', and of 'c1_', in repeated groups"),
        ("SEQ(SEQ(b, SEQ(c){2}){2}, c)", "'c' stands in a repeated group, and outside of it"),
        ("SEQ(c, SEQ(b, c){2})", "'c' stands in a repeated group, and outside of it"),
        ("SEQ(a, SEQ(b, c){1025})", "a group of 1,025 repetitions is not supported"),
        ("SEQ(a, SEQ(b, c){2}, b1)", "'b1' is a variable of the query, and a copy of 'b' in a repeated group"),
        ("SEQ(a, OR(SEQ(b, c){2}, b))", "'b' stands in a repeated group, and outside of it"),
        ("SEQ(SEQ(a, b){2}, SEQ(b, c){2})", "'b' stands in several repeated groups"),
        ("OR(SEQ(b){2}, SEQ(b){3})", "'b' stands in several repeated groups(.|\n)*rename all but one of them"),
        ("SEQ(a, SEQ(b, c){2}) RETURN b.x", r"'b' stands in a repeated group, and so for several(.|\n)*name a repetition: b1, b2"),
        ("SEQ(a, SEQ(b, c){2}) RETURN count(c) AS n", "'c' stands in a repeated group"),
    ],
)
def test_refused_with_the_place(text, message):
    with pytest.raises((cep.PatternError, cep.UnsupportedError), match=message) as error:
        as_query(f"PATTERN {text}")
    assert "^" in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SEQ(a, SEQ(b, SEQ(b){2}){300})", "'b' stands in a repeated group, and outside of it"),
        ("SEQ(a, SEQ(SEQ(b){2}, SEQ(b){2}))", "'b' stands in several repeated groups"),
        ("SEQ(a, SEQ(c, SEQ(b){2}, SEQ(b){2}){3})", "'b' stands in several repeated groups"),
        ("SEQ(a, SEQ(c, OR(SEQ(b){2}, SEQ(b){3})){3})", "'b' stands in several repeated groups"),
        ("SEQ(a, SEQ(b, b){300})", "variable 'b' stands in the pattern twice"),
        ("SEQ(SEQ(b, b){2}, SEQ(b, b){2})", "variable 'b' stands in the pattern twice"),
        ("SEQ(SEQ(b, SEQ(c){30}){2}, SEQ(c1_){30})", "'c1_1' is a copy of 'c', and of 'c1_', in repeated groups"),
        ("SEQ(a, SEQ(SEQ(b, b1_){1}, SEQ(c, d){2}){2}, c1_2)", "'c1_2' is a variable of the query, and a copy of 'c' in a repeated group"),
    ],
)
def test_one_fault_about_a_name_as_it_is_written(text, message):
    with pytest.raises(cep.PatternError) as error:
        expand_groups(parse(f"PATTERN {text}"))
    assert [fault.message for fault in error.value.diagnostics] == [message]


@pytest.mark.parametrize(
    "text",
    [
        "OR(SEQ(a, SEQ(b){2}), SEQ(d, SEQ(b){2}))",
        "SEQ(a, OR(SEQ(c, SEQ(b){2}), SEQ(d, SEQ(b){2})){2})",
        "SEQ(a, SEQ(OR(SEQ(b, c), SEQ(d, b))){2})",
    ],
)
def test_what_stands_alike_in_alternatives_is_taken(text):
    expand_groups(parse(f"PATTERN {text}"))


def test_a_copy_makes_no_name_but_its_own(monkeypatch):
    made = []
    copy = groups._Group.copy
    monkeypatch.setattr(groups._Group, "copy", lambda self, name, number: made.append(name) or copy(self, name, number))
    expand_groups(parse("PATTERN SEQ(a, SEQ(b, c){300})"))
    assert len(made) <= 4 * 600


@pytest.mark.parametrize("condition", ["b.x", "b.s = TRUE"])
def test_one_fault_for_all_copies_of_what_is_written_once(condition):
    schema = pa.schema({"ts": pa.int64(), "type": pa.string(), "x": pa.int64(), "s": pa.string()})
    with pytest.raises(cep.PatternError) as error:
        cep.match(schema.empty_table(), f"PATTERN SEQ(A a, SEQ(B b, C c){{3}}) WHERE {condition} WITHIN 5")
    assert len(error.value.diagnostics) == 1
