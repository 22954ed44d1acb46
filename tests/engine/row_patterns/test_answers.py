"""The matcher of row patterns gives the oracle's answers."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings

import gpu_cep as cep
from gpu_cep.errors import EventError
from tests.drawn.row_patterns import ALONE, BESIDE, READING, Drawn, clauses


def answer(drawn: Drawn, algorithm: str, **keywords) -> pa.Table | str:
    """The rows of the result, or the error of the match."""
    try:
        return cep.match(drawn.table, f"MATCH_RECOGNIZE ({drawn.clauses})", algorithm=algorithm, **keywords)
    except EventError as fault:
        return str(fault)


def check(drawn: Drawn, **keywords) -> None:
    expected, found = answer(drawn, "brute_force"), answer(drawn, "auto", **keywords)
    if isinstance(expected, str) or isinstance(found, str):
        assert found == expected
        return
    found.validate(full=True)
    assert found.schema == expected.schema
    assert str(found.to_pydict()) == str(expected.to_pydict())


@given(clauses(ALONE + BESIDE))
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
def test_labels_decide(drawn):
    check(drawn)


@given(clauses(READING))
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
def test_conditions_read_the_match(drawn):
    check(drawn)


@pytest.mark.parametrize("threads", [1, 3])
@given(drawn=clauses(ALONE + BESIDE + READING))
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
def test_threads_share_partitions(drawn, threads):
    check(drawn, threads=threads)
