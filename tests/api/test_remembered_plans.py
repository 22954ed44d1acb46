"""Plans of text are made once: asked again they are the same, and another wherever anything differs that they depend on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import gpu_cep as cep
from gpu_cep import errors
from gpu_cep.analysis.options import Options
from gpu_cep.plan.settings import Settings
from gpu_cep.queries.plans import make_plan

TEXT = "PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 10"
EVENTS = pa.table({"ts": [1, 2], "type": ["A", "B"], "x": [1, 2]})
SCHEMA, OPTIONS, SETTINGS = EVENTS.schema, Options(), Settings()


def test_the_same_plan_serves_again():
    made = make_plan(TEXT, SCHEMA, OPTIONS, SETTINGS)
    assert make_plan(TEXT, pa.schema(list(SCHEMA)), replace(OPTIONS), replace(SETTINGS)) is made


@pytest.mark.parametrize(
    "asked",
    [
        (TEXT.replace("<", ">"), SCHEMA, OPTIONS, SETTINGS),
        (TEXT, SCHEMA.set(2, pa.field("x", pa.float64())), OPTIONS, SETTINGS),
        (TEXT, pa.schema([SCHEMA.field(place) for place in (2, 0, 1)]), OPTIONS, SETTINGS),
        (TEXT, SCHEMA, replace(OPTIONS, strategy="strict_contiguity"), SETTINGS),
        (TEXT, SCHEMA, replace(OPTIONS, ties="position"), SETTINGS),
        (TEXT, SCHEMA, OPTIONS, replace(SETTINGS, output="count")),
        (TEXT, SCHEMA, OPTIONS, replace(SETTINGS, max_matches=1)),
    ],
)
def test_another_plan_is_made_of_another_question(asked):
    made = make_plan(*asked)
    assert made is make_plan(*asked)
    assert made != make_plan(TEXT, SCHEMA, OPTIONS, SETTINGS)


def test_faults_are_found_again():
    for _ in range(2):
        with pytest.raises(errors.PatternError, match="unknown attribute"):
            cep.match(EVENTS, "PATTERN SEQ(A a, B b) WHERE a.y < b.x")


def test_a_bound_that_is_none_is_refused_where_its_equal_is_known():
    """``True == 1``, and both have one hash."""
    assert len(cep.match(EVENTS, TEXT, max_matches=1)) == 1
    with pytest.raises(errors.PatternError, match="not True"):
        cep.match(EVENTS, TEXT, max_matches=True)


def test_built_queries_keep_the_types_of_their_constants():
    """``4 == 4.0``, and both have one hash."""
    a, b = cep.var("a", "A"), cep.var("b", "B")
    products = [cep.match(EVENTS, cep.seq(a, b).returning(y=b.x * number)).schema.field("y").type for number in (4, 4.0, 4)]
    assert products == [pa.int64(), pa.float64(), pa.int64()]


def test_functions_are_not_remembered():
    """A query may call another function of the same name the next time."""
    text = "PATTERN A a RETURN f(a.x) AS y"
    for factor in (2, 3):
        found = cep.match(EVENTS, text, functions={"f": lambda x, factor=factor: x * np.int64(factor)})
        assert found["y"].to_pylist() == [factor]
