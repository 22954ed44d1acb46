"""Where no row leaves a choice, matches are walked to; conditions that compare are judged without the interpreter."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_cep as cep
from gpu_cep.analysis.options import Options
from gpu_cep.analysis.row_patterns.bind import bind_row_pattern
from gpu_cep.engine.input.read_tables import schema_of
from gpu_cep.engine.row_patterns import dead_ends, search_parts, searching
from gpu_cep.engine.row_patterns.operands import Operands
from gpu_cep.errors import EventError, MatchLimitExceeded
from gpu_cep.lang.parser import parse
from gpu_cep.plan.row_patterns.planner import plan_row_pattern
from gpu_cep_kernels.row_patterns.operands import Operand
from gpu_cep_kernels.rules.tables import BY_FLOATS, BY_INTS, BY_PROGRAM
from tests.drawn.row_patterns import READING, Drawn, clauses
from tests.engine.row_patterns.test_answers import answer, check
from tests.plan.row_patterns.test_planner import automaton_of

STRAIGHT = (
    "A+", "A*", "A B+", "X A+", "X B{2} A*", "A{3} B+", "A B X", "(A B)+", "(A B X)*", "A{1,3} $", "^ A+", "A+ $", "X A+ $", "^ X B+ $",
    "A+?", "A B+?", "A{2,}", "(X A{2})+",
)  # fmt: skip
FORKED = ("A+ B", "A? B", "A | B", "PERMUTE(A, B)", "A*? B", "A+? B")


@pytest.mark.parametrize("pattern", STRAIGHT)
def test_patterns_without_a_choice(pattern: str) -> None:
    assert automaton_of(pattern).leaves_no_choice


@pytest.mark.parametrize("pattern", FORKED)
def test_patterns_with_a_choice(pattern: str) -> None:
    assert not automaton_of(pattern).leaves_no_choice


@given(clauses(READING, st.sampled_from(STRAIGHT)))
def test_walks_find_what_the_standard_says(drawn: Drawn) -> None:
    with pytest.MonkeyPatch.context() as patch:
        # short walks, and no dead ends that would be worth a search
        patch.setattr(search_parts.StepBudget, "STEPS", 2)
        patch.setattr(dead_ends, "may_be_met_again", lambda automaton: np.zeros(len(automaton.moves), np.bool_))
        patch.setattr(searching, "search_row_matches", None)
        check(drawn, threads=2)


WALKED = {
    "above the first": "PATTERN (S B+) DEFINE B AS x > FIRST(x)",
    "like the first": "PATTERN (S B+) DEFINE B AS c = FIRST(c)",
    "above a share of the first": "PATTERN (S B+) DEFINE B AS x > 0.5 * FIRST(x)",
    "near the first": "PATTERN (S B+) DEFINE B AS x - FIRST(x) < 2.5",
    "few above the first": "PATTERN (S B+) DEFINE B AS x > FIRST(x) AND count(*) <= 4 AND sum(B.z) < 2 * z + 20",
    "a running sum": "PATTERN (A+) DEFINE A AS sum(A.z) <= 20",
    "above the average": "PATTERN (A{3} B+) DEFINE B AS x > avg(A.x)",
    "a window": "PATTERN (S B+) WITHIN 9 DEFINE B AS x > FIRST(x)",
}


@pytest.mark.parametrize("skip", ["PAST LAST ROW", "TO NEXT ROW", "TO LAST {}"])
@pytest.mark.parametrize("kind", WALKED)
def test_such_patterns_are_walked(kind: str, skip: str, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(4)
    prices, letters = np.cumsum(random.normal(size=150)), random.choice([*"ab"], 150)
    columns = {"n": np.arange(150), "x": prices, "z": random.integers(1, 9, 150), "c": letters}
    last = "B" if "B" in WALKED[kind] else "A"
    asked = f"ORDER BY n MEASURES FIRST(n) AS f, LAST({last}.n) AS l, count(*) AS k AFTER MATCH SKIP {skip.format(last)} {WALKED[kind]}"
    drawn = Drawn(asked, pa.table(columns))
    searched = answer(drawn, "brute_force")
    monkeypatch.setattr(searching, "search_row_matches", None)
    assert answer(drawn, "auto") == searched


NULLS = {
    "a quotient by no rows": "PATTERN (A B) DEFINE A AS sum(A.y) / count(B.*) >= 1",
    "a value of a run": "PATTERN (X A+) DEFINE A AS y < FIRST(y)",
    "an integer of a run": "PATTERN (X A+) DEFINE A AS x < FIRST(x)",
    "the first value": "PATTERN (X A+) DEFINE A AS FIRST(y) > y",
    "a mean of none": "PATTERN (A+) DEFINE A AS avg(y) > 0",
    "a sum over a gap": "PATTERN (A+) DEFINE A AS sum(y) < 12",
    "a share of a value": "PATTERN (X A+) DEFINE A AS y < 2 * FIRST(y)",
    "a share of an integer": "PATTERN (X A+) DEFINE A AS y < 2.0 * FIRST(x)",
    "a quotient by zero": "PATTERN (X A+) DEFINE A AS y / (count(*) - 2) < 4 AND x % (FIRST(x) - 5) < 4",
    "one condition of two": "PATTERN (A+) DEFINE A AS sum(x) < 12 AND FIRST(y) > y",
}


@pytest.mark.parametrize("skip", ["PAST LAST ROW", "TO NEXT ROW"])
@pytest.mark.parametrize("kind", NULLS)
def test_what_is_null_fits_nothing(kind: str, skip: str) -> None:
    values = [5, 1, 2, None, 1, None, None, 7, 3, 2]
    table = pa.table({"n": range(len(values)), "x": pa.array(values, pa.int64()), "y": pa.array(values, pa.float64())})
    check(Drawn(f"ORDER BY n MEASURES FIRST(n) AS f, count(*) AS k AFTER MATCH SKIP {skip} {NULLS[kind]}", table))


@pytest.mark.parametrize(("pattern", "algorithm"), [("A B+", "walk: each row"), ("A+ B", "search in order")])
def test_explain_says_where_matches_are_walked_to(pattern: str, algorithm: str) -> None:
    text = f"MATCH_RECOGNIZE (ORDER BY n MEASURES count(*) AS k PATTERN ({pattern}) DEFINE B AS count(*) < 9)"
    assert f"algorithm  {algorithm}" in str(cep.explain(pa.table({"n": [1]}), text))


def test_walks_can_be_bounded() -> None:
    rows = pa.table({"n": np.arange(200)})
    asked = "MATCH_RECOGNIZE (ORDER BY n MEASURES count(*) AS k AFTER MATCH SKIP TO NEXT ROW PATTERN (A+) DEFINE A AS n >= FIRST(n))"
    assert cep.match(rows, asked, max_steps=21_000).num_rows == 200
    with pytest.raises(MatchLimitExceeded, match="more than max_steps=20,000 steps"):
        cep.match(rows, asked, max_steps=20_000)


def test_a_sum_that_does_not_fit_names_the_row() -> None:
    rows = pa.table({"n": [0, 1, 2], "x": [2**62, 2**62, 2**62]})
    for condition in ("sum(x) > 0", "n < FIRST(n) AND sum(x) > 0", "FIRST(x) + x > 0", "count(*) < 2 AND x - 1 < 4 * FIRST(x)"):
        with pytest.raises(EventError, match=r"integer overflow in DEFINE … AS .* at input row 1"):
            cep.match(rows, f"MATCH_RECOGNIZE (ORDER BY n MEASURES count(*) AS k PATTERN (X? A+) DEFINE A AS {condition})")


COMPARED = {
    "x > FIRST(x)": (BY_FLOATS, Operand.COLUMN, Operand.COLUMN),
    "n = FIRST(n)": (BY_INTS, Operand.COLUMN, Operand.COLUMN),
    "c < FIRST(c)": (BY_INTS, Operand.COLUMN, Operand.COLUMN),
    "sum(n) <= 100": (BY_INTS, Operand.TOTAL, Operand.CONSTANT),
    "2.5 > sum(x)": (BY_FLOATS, Operand.CONSTANT, Operand.TOTAL),
    "min(x) < x": (BY_FLOATS, Operand.TOTAL, Operand.COLUMN),
    "count(*) < 3": (BY_INTS, Operand.COUNT, Operand.CONSTANT),
    "count(A.n) < count(n)": (BY_INTS, Operand.COUNT, Operand.COUNT),
    "x > avg(A.x)": (BY_FLOATS, Operand.COLUMN, Operand.MEAN_OF_FLOATS),
    "avg(n) > x": (BY_FLOATS, Operand.MEAN_OF_INTS, Operand.COLUMN),
    "sum(n) / count(*) > 3": (BY_FLOATS, Operand.MEAN_OF_INTS, Operand.CONSTANT),
    "avg(x) >= 1.5": (BY_FLOATS, Operand.MEAN_OF_FLOATS, Operand.CONSTANT),
    "x > 2 * FIRST(x)": (BY_FLOATS, Operand.COLUMN, Operand.CONSTANT, Operand.COLUMN),
    "sum(n) + 1 > 3": (BY_INTS, Operand.TOTAL, Operand.CONSTANT, Operand.CONSTANT),
    "LAST(x) - FIRST(x) <= 1": (BY_FLOATS, Operand.COLUMN, Operand.COLUMN, Operand.CONSTANT),
    "x > 1.5 * avg(n)": (BY_FLOATS, Operand.COLUMN, Operand.CONSTANT, Operand.MEAN_OF_INTS),
    "x < FIRST(n)": (BY_FLOATS, Operand.COLUMN, Operand.COLUMN_OF_INTS),
    "n % 2 = FIRST(n) % 2": (BY_INTS, Operand.COLUMN, Operand.CONSTANT, Operand.COLUMN, Operand.CONSTANT),
}
OTHERS = ("x > FIRST(x) + n + 1", "x > FIRST(x) OR n > 2", "abs(x - FIRST(x)) < 3", "FIRST(x) IS NULL", "-sum(n) < 0")


def operands_of(condition: str) -> tuple[int, list[Operand]]:
    """How a condition is judged, and what its operands are."""
    query = parse(f"MATCH_RECOGNIZE (ORDER BY n MEASURES count(*) AS k PATTERN (A B+) DEFINE B AS {condition})")
    schema = pa.schema([("n", pa.int64()), ("x", pa.float64()), ("c", pa.string())])
    plan = plan_row_pattern(bind_row_pattern(query, schema_of(schema), Options()))
    assert plan.search is not None
    operands = Operands()
    return operands.compared(plan.search.conditions[0].program).means, [each.kind for each in operands.found]


@pytest.mark.parametrize("condition", COMPARED)
def test_comparisons_are_recognised(condition: str) -> None:
    means, *kinds = COMPARED[condition]
    assert operands_of(condition) == (means, kinds)


def test_each_operand_of_an_and_is_judged_by_itself() -> None:
    text = "MATCH_RECOGNIZE (ORDER BY n MEASURES count(*) AS k PATTERN (A B+) DEFINE B AS {}, A AS count(*) < n)"
    query = parse(text.format("(n > FIRST(n) AND count(*) < 3) AND n > 0 AND FIRST(n) IS NULL"))
    plan = plan_row_pattern(bind_row_pattern(query, schema_of(pa.schema([("n", pa.int64())])), Options()))
    assert plan.search is not None
    assert [each.variable for each in plan.search.conditions] == [0, 1, 1, 1]


@pytest.mark.parametrize("condition", OTHERS)
def test_other_conditions_have_programs(condition: str) -> None:
    assert operands_of(condition) == (BY_PROGRAM, [])
