"""The engine against the oracle where random conditions read their attributes through functions of the caller's."""

from __future__ import annotations

import re
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import assume, given

import gpu_cep
from gpu_cep.errors import PatternError, UnsupportedError
from gpu_cep.lang.parser import parse
from gpu_cep.oracle import events
from gpu_cep.oracle.expressions import Scalar
from gpu_cep.oracle.meanings import Kind
from gpu_cep.oracle.options import EventOptions
from tests.conformance.expectation import LIMIT
from tests.drawn.queries import Case, cases
from tests.results import matches_of

# v.x, v[i].y, v[i-1].x where they stand by themselves, and not in an aggregate or another function
REFERENCE = re.compile(r"(?<![\w.(])\w+(?:\[i(?:-1)?\])?\.([xy])\b")
SCALARS = {
    "second_x": Scalar(lambda first, second: second, Kind.INTEGER),
    "second_y": Scalar(lambda first, second: second, Kind.FLOAT),
}


def through_functions(text: str) -> str:
    """The query with each such reference given by a call, which reads the first one to the same attribute, too."""
    first: dict[str, str] = {}
    return REFERENCE.sub(lambda found: f"second_{found[1]}({first.setdefault(found[1], found[0])}, {found[0]})", text)


@given(cases())
def test_calls_mean_the_same_everywhere(case: Case) -> None:
    text = through_functions(case.text)
    assume(text != case.text)
    try:
        wanted = events.matches(parse(text), case.events, EventOptions(functions=SCALARS, **case.options), limit=LIMIT)
    except (PatternError, UnsupportedError):
        assume(False)
    functions = {name: scalar.body for name, scalar in SCALARS.items()}
    assert matches_of(gpu_cep.match(case.events, text, functions=functions, **case.options, output="indices")) == wanted


COARSE = pa.table({
    "ts": [1, 2, 3, 4],
    "hundreds": pa.array([Decimal(1_200_000), Decimal(0), Decimal(-300), None], pa.decimal128(6, -2)),
    "fine": pa.array([Decimal("1.5"), Decimal("-0.5"), Decimal(0), Decimal(1)], pa.decimal128(18, 17)),
    "n": [5, -5, -300, 1],
})  # fmt: skip


@pytest.mark.parametrize(
    "condition",
    ["round(a.hundreds) > 1", "floor(a.hundreds) < 0", "ceil(a.hundreds) = -300", "a.hundreds <= a.n", "a.hundreds + a.n > -400",
     "a.hundreds > 1.12345678901234567", "a.hundreds IN (0, 0.5, 1200000)", "0e0 + a.hundreds > 0e0 + a.fine", "a.hundreds / a.fine > 1"],
)  # fmt: skip
def test_decimals_of_a_negative_scale(condition: str) -> None:
    query = f"PATTERN a WHERE {condition}"
    wanted = events.matches(parse(query), COARSE, EventOptions())
    assert matches_of(gpu_cep.match(COARSE, query, output="indices")) == wanted
    assert wanted


@pytest.mark.parametrize(
    "condition",
    ["a.hundreds > a.fine", "a.fine BETWEEN 0 AND a.hundreds", "a.hundreds + a.fine > 1", "coalesce(a.hundreds, a.fine) > 1",
     "CASE WHEN a.n > 1 THEN a.hundreds ELSE a.fine END > 1", "abs(a.hundreds) = a.fine"],
)  # fmt: skip
def test_decimals_that_64_bits_do_not_hold_at_one_scale(condition: str) -> None:
    refused = r"decimal\(6, -2\) beside a decimal with 17 digits behind the point is not supported(.|\n)*0e0 \+ v\.attr is a float"
    with pytest.raises(UnsupportedError, match=refused):
        gpu_cep.match(COARSE, f"PATTERN a WHERE {condition}")
