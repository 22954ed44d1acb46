"""Functions that the caller brings, in conditions and RETURN."""

from __future__ import annotations

import copy
import gc
import math
import pickle
import re
import weakref
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numba import njit

import gpu_cep as cep
from gpu_cep.analysis.options import Options
from gpu_cep.engine.answers import answer
from gpu_cep.engine.lowering import user_functions
from gpu_cep.engine.lowering.user_functions import _TAKEN
from gpu_cep.keywords import make_options
from gpu_cep.lang.grammar_tables import ROW_PATTERNS
from gpu_cep.lang.literals import names_no_function
from gpu_cep.plan.settings import Settings
from gpu_cep.queries.plans import make_plan

OFFSET = 0.5
TABLE = np.array([0.0, 1.0, 4.0, 9.0])


def near(x: float, y: float) -> float:
    return abs(x - y)


distance = njit(near)


def low(x: float) -> bool:
    return x < 4


def bucket(n: int) -> int:
    return n // 3


def hypotenuse(x: float, y: float, scale: float = 1.0) -> float:
    return math.sqrt(x * x + y * y) * scale


def root(x: float) -> float:
    if x < 0:
        raise ValueError("negative")
    return math.sqrt(x)


def shifted(x: float) -> float:
    return distance(x, OFFSET) + TABLE[2]


def known(x: float) -> float | None:
    return None if x < 3 else x


FUNCTIONS: dict[str, Callable[..., Any]] = {
    function.__name__: function for function in (near, low, bucket, hypotenuse, root, shifted, known)
}  # fmt: skip


def events() -> pa.Table:
    return pa.table(
        {
            "ts": range(12),
            "type": list("AABABBABCABC"),
            "x": pa.array([1.5, 2.0, None, 4.5, 5.0, math.nan, 7.0, 1.0, 2.5, 3.0, 4.0, 6.5]),
            "n": pa.array([1, 2, 3, 4, None, 6, 7, 8, 9, 10, 11, 12]),
            "small": pa.array(range(12), pa.float32()),
            "flag": [True, False, None] * 4,
            "price": pa.array([1, 2] * 6, pa.int32()).cast(pa.decimal128(12, 2)),
        }
    )


QUERIES = {
    "one event": "SEQ(A a, B b) WHERE near(a.x, a.n) < 2",
    "one event, an expression": "SEQ(A a, B b) WHERE bucket(a.n * 2 - 1) >= 1 AND near(b.small / 2, 1.5) > 0.5",
    "a truth value": "SEQ(A a, B b+) WHERE low(a.x) AND NOT low(b.x)",
    "a truth value taken": "SEQ(A a, B b) WHERE pick(a.flag, a.n) = 7",
    "a call in a call": "SEQ(A a, B b) WHERE near(hypotenuse(a.x, 2), near(b.x, 1)) < 3",
    "two variables": "SEQ(A a, B b) WHERE skip_till_any_match { near(a.x, b.x) < 3 }",
    "two variables, an expression": "SEQ(A a, B b) WHERE skip_till_any_match { near(a.x + b.n, b.x * a.n) < 8 }",
    "three variables": "SEQ(A a, B b, C c) WHERE skip_till_any_match { hypotenuse(a.x, b.x, c.n) < 60 }",
    "an argument left out": "SEQ(A a, B b, C c) WHERE skip_till_any_match { hypotenuse(a.x, c.x) < 5 OR bucket(b.n) = 2 }",
    "events of one binding": "SEQ(A a, B b+) WHERE skip_till_any_match { near(b[i].n, b[i-1].n) <= 3 AND near(first(b.n), a.n) < 6 }",
    "aggregates": "SEQ(A a, B b+, C c) WHERE skip_till_any_match { near(sum(b.n), count(b)) > 9 AND low(b.x - avg(b[..i-1].x)) }",
    "a negated variable": "SEQ(A a, ~B h, C c) WHERE near(h.x, c.x) < 2 WITHIN 9",
    "NULL and a negated variable": "SEQ(A a, ~B h, C c) WHERE near(h.x, NULL) < 2 WITHIN 9",
    "a constant": "SEQ(A a, B b) WHERE near(a.x, 0.5) < near(b.x, 2)",
    "no value for some": "SEQ(A a, B b) WHERE known(a.x) IS NULL OR known(b.x - a.x) IS NOT NULL",
    "a function of a function": "SEQ(A a, B b) WHERE shifted(a.x) > 5",
    "NULL": "SEQ(A a, B b) WHERE near(a.x, NULL) IS NULL AND low(b.x)",
}


def pick(flag: bool, n: int) -> int:
    return n if flag else -n


def matched(query: str, **options: Any) -> pa.Table:
    return cep.match(events(), f"PATTERN {query}", functions={**FUNCTIONS, "pick": pick}, **options)


@pytest.mark.parametrize("name", QUERIES)
def test_functions_mean_what_python_computes(name: str) -> None:
    found = matched(QUERIES[name], output="indices")
    assert found.num_rows
    assert found.equals(matched(QUERIES[name], output="indices", algorithm="brute_force"))
    assert matched(QUERIES[name], output="indices", prune=False).equals(found)


@pytest.mark.parametrize("name", ["two variables", "three variables"])
def test_lazy_chain_calls_them_too(name: str) -> None:
    assert matched(QUERIES[name], algorithm="lazy_chain").equals(matched(QUERIES[name], algorithm="ses_automaton"))


def test_returned_values() -> None:
    query = """SEQ(A a, B b+) WHERE strict_contiguity { a.n > 0 }
        RETURN near(a.x, a.n) AS one, hypotenuse(a.n, max(b.n), 2) AS several, low(a.n) AS flag, bucket(first(b.n)) AS whole,
               known(a.x) AS some"""
    rows = matched(query).to_pylist()
    assert rows[0] == {
        "match_start": 1, "match_end": 2, "one": 0.0, "several": math.sqrt(13) * 2, "flag": True, "whole": 1, "some": None,
    }  # fmt: skip
    assert matched(query).schema.types[2:] == [pa.float64(), pa.float64(), pa.bool_(), pa.int64(), pa.float64()]


def test_queries_built_in_python() -> None:
    a, b = cep.var("a", "A"), cep.var("b", "B")
    query = cep.seq(a, b).where(cep.fn.near(a.x, b.x) < 3).returning(d=cep.fn("near", a.x, b.x))
    assert cep.match(events(), query, functions={"near": near}).equals(cep.match(events(), str(query), functions={"near": near}))


def test_a_function_may_have_the_name_of_one_of_another_language() -> None:
    for name in ("lag", "list", "ifnull"):
        found = cep.match(events(), f"PATTERN SEQ(A a, B b) WHERE {name}(a.x, b.x) < 3", functions={name: near})
        assert found.equals(matched("SEQ(A a, B b) WHERE near(a.x, b.x) < 3"))


def test_names_do_not_tell_cases_apart() -> None:
    assert cep.match(events(), "PATTERN A a WHERE IsLow(a.x)", functions={"isLow": low}).num_rows == 3


def test_explain_shows_the_call() -> None:
    shown = repr(cep.explain(events(), "PATTERN SEQ(A a, B b) WHERE near(a.x, a.n) < 2 AND near(a.x, b.x) < 3", functions=FUNCTIONS))
    assert "near(a.x, a.n)" in shown
    assert "near(a.x, b.x) < 3" in shown


# Faults ----------------------------------------------------------------------


def test_a_function_with_the_name_of_one_of_situations() -> None:
    query = "DEFINE S AS x > 0, T AS x < 0 PATTERN S before T RETURN start(S) AS s"
    with pytest.raises(cep.PatternError, match="functions: 'start' is the name of a function of situations"):
        cep.match(events(), query, functions={"Start": lambda x: x})


@pytest.mark.parametrize(
    ("functions", "message"),
    [
        ({"near": 3}, "'near' is 3, which cannot be called"),
        ({"sqrt": near}, "'sqrt' is the name of a built-in function"),
        ({"COUNT": near}, "'COUNT' is the name of a built-in function"),
        ({"corr": near}, "'corr' is the name of a built-in function"),
        ({"a b": near}, "'a b' is no name of a function"),
        ({1: near}, "1 is no name of a function"),
        ({"near": math.hypot}, "'near' must be a Python function (def or lambda), not builtin_function_or_method"),
        ({"near": lambda *values: 1.0}, "'near' must take a fixed number of arguments by position, at least one"),
        ({"near": lambda: 1.0}, "'near' must take a fixed number of arguments by position, at least one"),
        ({"near": lambda x, *, y: 1.0}, "'near' must take a fixed number of arguments by position, at least one"),
        ({"near": near, "Near": near}, "'near' is there twice"),
        ([near], "functions must map names to functions"),
    ],
)
def test_what_is_no_function(functions: Any, message: str) -> None:
    for ask in (cep.match, lambda table, query, **options: cep.explain(table, query, **options)):
        with pytest.raises(cep.PatternError) as fault:
            ask(events(), "PATTERN A a", functions=functions)
        assert message in str(fault.value)


WORDS = sorted({word for text in re.findall(r": /(.*)/i", ROW_PATTERNS.grammar) for word in re.findall(r"(?<![\\[a-z])[a-z_]{2,}", text)})
CALLS = (
    ("PATTERN a WHERE {0} (a.x) > 2", 1),
    ("PATTERN a WHERE CASE WHEN {0} (a.x) > 2 THEN {0}(a.x) ELSE {0}(a.x) END > 2 AND a.x BETWEEN {0}(a.x) AND {0}(a.x)", 5),
    ("PATTERN a RETURN {0}(a.x) AS y, {0} (a.x) AS z", 2),
    ("MATCH_RECOGNIZE (ORDER BY ts MEASURES {0}(A.x) AS y, {0} (A.x) AS z PATTERN (A) DEFINE A AS NOT {0} (x) < 2)", 3),
)


@pytest.mark.parametrize("word", sorted({*WORDS} - _TAKEN - {"next"}))
def test_a_word_is_refused_as_the_name_of_a_function_unless_its_calls_are_read(word: str) -> None:
    refused = rf"'{word.upper()}' is a keyword of the language, so that {word.upper()}\(x\) would not call it; give it another name"
    if names_no_function(word):
        with pytest.raises(cep.PatternError, match=refused):
            make_options(functions={word.upper(): near})
        return
    make_options(functions={word.upper(): near})
    for query, calls in CALLS:
        assert repr(cep.parse(query.format(word))).count(f"Call(function='{word}'") == calls


def test_keywords_are_among_the_words_of_the_grammar() -> None:
    refused = {"not", "and", "or", "in", "is", "like", "between", "as", "true", "null", "seq", "pattern", "case", "subset", "within"}
    assert refused <= set(WORDS)
    assert all(map(names_no_function, refused))


@pytest.mark.parametrize(
    ("condition", "error", "message"),
    [
        ("naer(a.x, 1) < 3", cep.PatternError, "did you mean 'near'?"),
        ("near(a.x) < 3", cep.PatternError, "near() takes 2 arguments, not 1"),
        ("hypotenuse(a.x) < 3", cep.PatternError, "hypotenuse() takes 2 or 3 arguments, not 1"),
        ("near(a.x, a.type) < 3", cep.UnsupportedError, "near() of string is not supported"),
        ("near(NULL, a.type) < 3", cep.UnsupportedError, "near() of string is not supported"),
        ("near(a.x, a.price) < 3", cep.UnsupportedError, "near() of decimal(12, 2) is not supported"),
        ("near(a.ts, 3 days) < 3", cep.UnsupportedError, "near() of duration[s] is not supported"),
        ("near(1, 2) < 3", cep.UnsupportedError, "near() of constants alone is not supported"),
        ("near(a.x, 1)", cep.PatternError, "a condition is true or false; this one is float"),
        ("low(a.x) < 'x'", cep.PatternError, "cannot compare boolean with string"),
        ("attribute(a.x) < 3", cep.PatternError, "attribute() cannot be compiled for float: Unknown attribute 'missing' of type float64"),
        ("text(a.n) < 3", cep.PatternError, "text() cannot be compiled for integer: it returns"),
    ],
)
def test_faults_of_calls(condition: str, error: type[Exception], message: str) -> None:
    functions = {**FUNCTIONS, "attribute": lambda x: x.missing, "text": lambda n: "text"}
    with pytest.raises(error) as fault:
        cep.match(events(), f"PATTERN A a WHERE {condition}", functions=functions)
    assert message in str(fault.value)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SEQ(A a, B b) WHERE root(a.x - 5) < 9", "an exception of root(), or integer overflow, in root(a.x - 5) at input row 0"),
        ("SEQ(A a, B b) WHERE root(a.x - b.x) < 9", "in root(a.x - b.x) < 9, in the window that starts at ts="),
        ("SEQ(A a, B b) RETURN root(a.x - b.x) AS r", "an exception of root(), or integer overflow, in RETURN item 'r'"),
    ],
)
def test_exceptions_are_errors_of_events(query: str, message: str) -> None:
    with pytest.raises(cep.EventError) as fault:
        matched(query)
    assert message in str(fault.value)


# Plans -------------------------------------------------------------------------


def planned(functions: dict[str, Callable[..., Any]], condition: str = "near(a.x, b.x) < 3") -> Any:
    options: Options = make_options(functions=functions)
    return make_plan(f"PATTERN SEQ(A a, B b) WHERE {condition}", events().schema, options, Settings())


def local(distance: float) -> Callable[..., Any]:
    return lambda x, y: abs(x - y) + distance


def test_plans_with_functions_travel() -> None:
    plan = planned({"near": near})
    copied = pickle.loads(pickle.dumps(plan))
    assert copied == plan
    assert copied.fingerprint() == plan.fingerprint()


def test_a_fingerprint_tells_functions_by_what_they_do() -> None:
    prints = [planned({"near": function}).fingerprint() for function in (near, local(0.0), local(1.0), lambda x, y: abs(x + y))]
    assert len(set(prints)) == len(prints)
    assert planned({"near": local(1.0)}).fingerprint() == prints[2]
    assert planned({"near": copy.copy(near)}).fingerprint() == prints[0]
    assert " at 0x" not in repr(planned({"near": near}))


def test_a_function_is_told_by_what_it_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    condition = "shifted(a.x - b.x) < 3"
    before = planned(FUNCTIONS, condition).fingerprint()
    monkeypatch.setitem(globals(), "TABLE", np.array([0.0, 2.0, 5.0, 9.0]))
    assert planned(FUNCTIONS, condition).fingerprint() != before


def test_two_functions_of_one_name_are_two() -> None:
    query = "PATTERN SEQ(A a, B b) RETURN near(a.x, b.x) AS d"
    results = [cep.match(events(), query, functions={"near": local(distance)})["d"].to_pylist() for distance in (0.0, 1.0)]
    assert results[1] == pytest.approx([value if value is None else value + 1 for value in results[0]], nan_ok=True)


# Lives -------------------------------------------------------------------------

PAIR = "PATTERN SEQ(A a, B b) WHERE near(a.x, b.x) < 3 WITHIN 10"


@pytest.mark.parametrize(
    ("query", "asked"),
    [
        *((PAIR, {"output": output}) for output in ("events", "count", "compressed")),
        ("PATTERN SEQ(A a, B b+) WHERE skip_till_any_match { near(a.x, b.x) < 3 } WITHIN 10", {}),
        ("PATTERN SEQ(A a, NOT(B n), B b) WHERE near(a.x, n.x) < 3 WITHIN 10", {}),
        ("PATTERN SEQ(A a, B b) WHERE near(a.x, 2) < 3 WITHIN 10 RETURN near(a.x, 1) AS d", {}),
        ("DEFINE low AS near(x, 2) < 3, high AS x > 4 PATTERN low before high WITHIN 10", {}),
    ],
)
def test_a_function_goes_with_its_last_query(query: str, asked: dict[str, Any]) -> None:
    function = local(0.25)
    held = weakref.ref(function)
    cep.match(events(), query, functions={"near": function}, **asked)
    del function
    user_functions._latest_form.cache_clear()
    gc.collect()
    assert held() is None


def test_what_a_plan_calls_lives_as_long_as_the_plan() -> None:
    plan = planned({"near": local(0.5)}, "near(a.x, b.x) < 3 RETURN near(a.x, b.x) AS d")
    before = answer(plan, events())
    user_functions._latest_form.cache_clear()
    gc.collect()
    # code that is freed is soon written over
    planned({"near": local(0.75)}, "near(b.x, a.x) < 3")
    assert answer(plan, events()).equals(before)


@pytest.mark.parametrize("condition", ["a.m > 150", "a.m = 200", "a.m IN (200, 5)", "a.m > 150.5"])
def test_decimals_of_negative_scale(condition):
    hundreds = pa.array([Decimal(100), Decimal(200)], pa.decimal128(5, -2))
    found = cep.match(pa.table({"ts": [1, 2], "m": hundreds}), f"PATTERN a WHERE {condition} WITHIN 5", output="indices")
    assert found["a"].to_pylist() == [1]


TEXTS = pa.table({"ts": [1, 2, 3, 4], "s": ["b", "a", "c", "c"], "t": ["a", "z", None, ""]})
LESS = "bucket(CASE WHEN {0}s < {0}t THEN 3 ELSE 0 END) = 1"


@pytest.mark.parametrize("algorithm", ["auto", "brute_force"])
@pytest.mark.parametrize(
    ("query", "asked", "found"),
    [
        (f"PATTERN a WHERE {LESS.format('a.')}", {"output": "indices"}, [{"a": 1}]),
        (f"DEFINE A AS {LESS.format('')}, B AS ts < 4 PATTERN A during B", {"output": "indices"}, [{"A": [1], "B": [0, 1, 2]}]),
        (f"MATCH_RECOGNIZE (MEASURES A.ts AS at PATTERN (A) DEFINE A AS {LESS.format('')})", {}, [{"at": 2}]),
    ],
)  # fmt: skip
def test_texts_of_two_columns_compare_in_what_a_function_is_given(query, asked, found, algorithm):
    assert cep.match(TEXTS, query, functions={"bucket": bucket}, algorithm=algorithm, **asked).to_pylist() == found
