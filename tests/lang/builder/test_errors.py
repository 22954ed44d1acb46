"""What the builder refuses, where it is written, and in which words."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

import gpu_cep as cep
from gpu_cep.errors import PatternError
from gpu_cep.lang.builder.queries import DEEPEST

c: Any = cep.var("c", "C")
p: Any = cep.var("p", "P").plus()
x: Any = c.x


def deep() -> Any:
    condition = x == 1
    for _ in range(DEEPEST):
        condition = ~condition
    return condition


@pytest.mark.parametrize(
    "mistake",
    [
        lambda: (x == 1) and (c.y == 2),
        lambda: (x == 1) or (c.y == 2),
        lambda: not (x == 1),  # noqa: SIM201
        lambda: 1 < x < 5,
        lambda: x == p.x == 1,
        lambda: x in [1, 2],
        lambda: 1 in x,
        lambda: bool(x),
        lambda: [each for each in [x == 1] if each],
    ],
)
def test_conditions_have_no_truth_value(mistake: Callable[[], object]) -> None:
    with pytest.raises(TypeError, match=r"write & for and, \| for or, ~ for not, .*parentheses"):
        mistake()


@pytest.mark.parametrize("mistake", [lambda: c and p, lambda: c or p, lambda: not c, lambda: cep.seq(c, p) and c])
def test_patterns_have_no_truth_value(mistake: Callable[[], object]) -> None:
    with pytest.raises(TypeError, match=r"write all_of\(…\) for and, any_of\(…\) for or, not_\(…\) for not"):
        mistake()


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        # parentheses left out
        (lambda: x == c.y & (c.z == 1), "put each comparison in parentheses"),
        (lambda: c.flag | c.y > 3, "put each comparison in parentheses"),
        (lambda: x == 1 & c.y == 2, "1 is no condition"),
        (lambda: (x == 1) & 1, "1 is no condition"),
        (lambda: 1 & (x == 1), "1 is no condition"),
        (lambda: True | (x == 1), "True is no condition"),
        # Python has decided the comparison
        (lambda: c.where(c == p), r"False is no condition: .* as in c\.ID == p\.ID"),
        (lambda: c.where(c.plus == 3), r"False is no condition: .* v\['x'\] where a method of v is called x"),
        (lambda: c.where(p[1] == 3), "False is no condition"),
        (lambda: c.where("c.x = 1"), "'c.x = 1' is no condition"),
        (lambda: c.where(), "where takes at least one condition"),
        # operands
        (lambda: x > c, r"PATTERN C c is no operand: operands are attributes \(v\.x"),
        (lambda: x > c.plus, "is no operand"),
        (lambda: x > p[: cep.i - 1].x, "is no operand"),
        (lambda: x == [1], r"\[1\] is no operand"),
        (lambda: x == np.array([1, 2]), "is no operand"),
        (lambda: x == np.timedelta64(1, "D"), "is no operand"),
        (lambda: x == np.float32(1), "is no operand"),
        (lambda: x.between(1, object()), "is no operand"),
        # functions
        (lambda: cep.prev(c), r"prev takes one attribute of a variable: prev\(v\.x\)"),
        (lambda: cep.prev(x + 1), "prev takes one attribute"),
        (lambda: cep.prev(p[1].x), "prev takes one attribute"),
        (lambda: cep.sum([1, 2]), r"sum takes one attribute of a variable: sum\(v\.x\)"),
        (lambda: cep.max(c), "max takes one attribute"),
        (lambda: cep.avg(p[1].x), "avg takes one attribute"),
        (lambda: cep.last(p[: cep.i - 1]), "last takes one attribute"),
        (lambda: cep.count(1), r"count takes a variable or one of its attributes: count\(v\), count\(v\.x\)"),
        (lambda: cep.count(p[1]), "count takes a variable"),
        (lambda: cep.fn(1), "the name of a function is text"),
        (lambda: cep.same(x), "the name of an attribute is text"),
        # indices
        (lambda: p[1.5], r"1\.5 is no index: the event of a binding is v\[i\]"),
        (lambda: p[None], "None is no index"),
        (lambda: p[True], "True is no index"),
        (lambda: cep.i - "1", "'1' is no number of events"),
        (lambda: list(p), r"the variable p is no collection; .* p\[1\]"),
        (lambda: "x" in p, "not iterable"),
        # patterns
        (lambda: cep.var(1), "the name of a variable is text, not 1"),
        (lambda: cep.var("a", 1), "the name of an event type is text, not 1"),
        (lambda: cep.seq(), "seq takes at least one pattern"),
        (lambda: cep.seq([c, p]), r"seq takes patterns such as var\('a', 'A'\), not \["),
        (lambda: cep.all_of(c, "p"), "all_of takes patterns"),
        (lambda: cep.any_of(c, p.within(1)), "any_of takes patterns; conditions and windows belong to the whole query"),
        (lambda: cep.not_(1), "1 is no condition"),
        (lambda: c.times("2"), "a quantifier takes whole numbers, not '2'"),
        (lambda: c.times(1.0), r"a quantifier takes whole numbers, not 1\.0"),
        # clauses
        (lambda: c.using(1), "a strategy is one of strict_contiguity, .*, not 1"),
        (lambda: c.using("skip_till_any_match", 1), "the name of a variable is text"),
        (lambda: c.within(None), "None is no length of time"),
        (lambda: c.within(True), "True is no length of time"),
        (lambda: c.within("1 day", "hours"), "'1 day' says its unit itself; 'hours' is one too many"),
        (lambda: c.within(timedelta(1), "hours"), "says its unit itself"),
        (lambda: c.within(1, 2), "a unit of time is text, not 2"),
        (lambda: c.returning(), "returning takes at least one item"),
        (lambda: c.returning("x"), r"'x' is nothing to return: .* a constant is literal\(…\)"),
        (lambda: c.returning(total=1), "1 is nothing to return"),
        (lambda: c.partition_by(), "partition_by takes at least one"),
        (lambda: c.partition_by(x), "the name of an attribute is text"),
        (lambda: c.from_(1), "the name of a source is text"),
        (lambda: x.alias(1), "the name of a column is text"),
        (lambda: {x: 1}, "unhashable"),
    ],
)
def test_what_is_of_the_wrong_type(mistake: Callable[[], object], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        mistake()


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        (lambda: x == None, r"never true: write \.is_null\(\) or \.is_not_null\(\)"),  # noqa: E711
        (lambda: x != None, r"write \.is_null\(\)"),  # noqa: E711
        (lambda: x > None, r"write \.is_null\(\)"),
        (lambda: x.isin(), "isin needs at least one item"),
        (lambda: x.isin([]), "isin needs at least one item"),
        # literals that no text can say
        (lambda: x > float("nan"), "nan cannot be written as a literal"),
        (lambda: x > float("-inf"), "-inf cannot be written as a literal"),
        (lambda: x > Decimal("NaN"), "NaN cannot be written as a literal"),
        (lambda: x > Decimal("1E+100000000"), "more than 1,000 characters is too long"),
        (lambda: x > Decimal("1E-100000000"), "more than 1,000 characters is too long"),
        (lambda: x > 10**1000, "more than 1,000 characters is too long"),
        (lambda: x == "\ud800", r"U\+D800 is half of a surrogate pair"),
        (lambda: x == pd.NaT, "NaT is no time"),
        (lambda: x == pd.Timestamp(1), "a timestamp literal has microseconds, and no nanoseconds"),
        (lambda: x == pd.Timedelta(1), r"write durations of nanoseconds as duration\(…, 'ns'\)"),
        (lambda: cep.duration(5), "5 needs a unit of time, as in '15 days'"),
        (lambda: cep.duration("5 events"), "'5 events' needs a unit of time"),
        (lambda: cep.duration("days"), "'days' is no length of time: a number and a unit are"),
        (lambda: cep.duration("1.2.3 days"), "the amount of a duration is a whole number or a decimal"),
        (lambda: cep.duration(float("inf"), "days"), "inf is no length of time"),
        (lambda: cep.duration(1, "fortnight"), "'fortnight' is no unit of time"),
        (lambda: cep.duration(1, "huors"), "'huors' is no unit of time\n  hint: did you mean 'hours'?"),
        (lambda: cep.duration(1, "Months"), "a month has no fixed length: say it in days"),
        # names
        (lambda: cep.var(""), "the name of a variable cannot be empty"),
        (lambda: cep.var("a", ""), "the name of an event type cannot be empty"),
        (lambda: cep.var("\udfff"), "half of a surrogate pair"),
        (lambda: c[""], "the name of an attribute cannot be empty"),
        (lambda: p[1][""], "the name of an attribute cannot be empty"),
        (lambda: p[: cep.i - 1][""], "the name of an attribute cannot be empty"),
        (lambda: cep.fn("", x), "the name of a function cannot be empty"),
        (lambda: cep.fn("AVG", x), r"avg is no scalar function: write avg\(v\.x\)"),
        (lambda: cep.fn.prev(x), "prev is no scalar function"),
        (lambda: c.returning(**{"": x}), "the name of a column cannot be empty"),
        # indices
        (lambda: p[0], r"0 is no index: .* v\[1\] \(counted from 1\), v\[-1\] \(the last\)"),
        (lambda: p[-2], "-2 is no index"),
        (lambda: p[: cep.i], r"v\[: i - 1\] those before the current one: no other range can be read"),
        (lambda: p[1 : cep.i - 1], "no other range"),
        (lambda: p[1:2], "no other range"),
        (lambda: cep.i - 2, r"only the event bound just before can be read: v\[i - 1\]"),
        (lambda: cep.i - 1 - 1, "only the event bound just before"),
        # patterns
        (lambda: p.star(), "the variable p has a quantifier already"),
        (lambda: c.times(0), "a quantifier must allow at least one event"),
        (lambda: c.times(0, 0), "a quantifier must allow at least one event"),
        (lambda: c.times(3, 2), "a quantifier from 3 to 2 allows nothing"),
        (lambda: c.times(-1, 2), "a quantifier from -1 to 2 allows nothing"),
        (lambda: c.at_least(-1), "a quantifier from -1"),
        (lambda: ~cep.seq(c, p), r"only a variable can be negated, not SEQ\(C c, P p\+\)"),
        (lambda: ~~c, r"only a variable can be negated, not NOT\(C c\)"),
        # clauses
        (lambda: c.where(p.x == 1), "the pattern has no variable 'p'"),
        (lambda: cep.var("price").where(cep.var("prize").x > 1), "'prize'\n  hint: did you mean 'price'?"),
        (lambda: c.where(cep.prev(p.x) == cep.sum(cep.var("q").x)), "no variable 'p'\nthe pattern has no variable 'q'"),
        (lambda: c.using("skip_till_any_match", p), "the pattern has no variable 'p'"),
        (lambda: c.returning(p), "the pattern has no variable 'p'"),
        (lambda: c.where(deep()), "nest more than 195 levels deep"),
        (lambda: c.using("skip_till_next"), "there is no strategy 'skip_till_next'; .*\n  hint: did you mean 'skip_till_next_match'?"),
        (lambda: c.within(-1), "the window -1 is negative"),
        (lambda: c.within(timedelta(hours=-1)), "the window -1 hours is negative"),
        (lambda: c.within(0, "events"), "a window of 0 events is not a whole number of events from 1 up"),
        (lambda: c.within("1.5 events"), "a window of 1.5 events is not a whole number"),
        (lambda: c.within(1).within(2), "the query has a window already: each clause but where stands once"),
        (lambda: c.within(0).within(0), "a window already"),
        (lambda: c.using("strict_contiguity").using("strict_contiguity"), "a strategy already"),
        (lambda: c.returning(x).returning(x), "items to return already"),
        (lambda: c.partition_by("x").partition_by("y"), "PARTITION BY already"),
        (lambda: c.from_("a").from_("b"), "FROM already"),
    ],
)
def test_what_means_nothing(mistake: Callable[[], object], message: str) -> None:
    with pytest.raises(PatternError, match=message):
        mistake()


@pytest.mark.parametrize("place", [c, p[1], p[: cep.i - 1]])
def test_underscored_attributes_need_brackets(place: Any) -> None:
    with pytest.raises(AttributeError, match=r"is written v\['_hidden'\]"):
        _ = place._hidden
    assert "_hidden" in repr(place["_hidden"])


def test_nothing_built_can_be_changed() -> None:
    for built in (c, x, p[1], cep.i, c.within(1)):
        with pytest.raises(AttributeError):
            built.ast = None
