"""The engine against the oracle where random conditions read their attributes through functions of the caller's."""

from __future__ import annotations

import re

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
