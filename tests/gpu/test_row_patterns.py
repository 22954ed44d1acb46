"""Row patterns whose rows a device labels: the answer is that of the definition, whole and in pieces."""

from __future__ import annotations

from contextlib import ExitStack
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gpu_cep as cep
from gpu_cep.errors import EngineUnavailable, EventError, UnsupportedError
from tests.drawn.row_patterns import ALONE, BESIDE, READING, Drawn, clauses
from tests.engine.row_patterns.test_answers import check
from tests.gpu.pieces import Pieces

LABELS, MATCHES = "gpu_cep.engine.row_patterns.device_labels", "gpu_cep.engine.row_patterns.device_matches"
SMALL = st.builds(
    Pieces, bytes=st.just(1), chunk=st.integers(1, 9), kept_events=st.just(3), batch=st.integers(1, 9), bound_events=st.just(1),
    ranked_values=st.just(2), room=st.booleans(),
)  # fmt: skip


@given(clauses(ALONE * 2 + BESIDE * 2 + READING[::4]), st.none() | SMALL, st.sampled_from([1, 2, 3, 16]), st.integers(1, 2))
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
def test_matches_are_those_of_the_definition(drawn: Drawn, pieces: Pieces | None, rows: int, bits: int) -> None:
    with ExitStack() as patches:
        patches.enter_context(patch(f"{LABELS}._ROWS_OF_A_THREAD", rows))
        patches.enter_context(patch(f"{MATCHES}._ROWS", rows))
        patches.enter_context(patch("gpu_cep.engine.phase_one.device.disjoint_matches.BITS", bits))
        if pieces is not None:
            patches.enter_context(patch(f"{LABELS}.SMALLEST_BATCH", 1))
            for module in (LABELS, MATCHES):
                patches.enter_context(patch(f"{module}.memory_of", lambda device, plan: pieces))
        check(drawn, engine="gpu")


CONDITIONS = {
    "columns": "A AS price < PREV(price) AND kind <> 'b', B AS price > PREV(price, 2)",
    "programs": "A AS PREV(price) IS NULL OR price < PREV(price), B AS NEXT(kind) = kind AND abs(price - PREV(price)) < 1",
    "integers": "A AS n - PREV(n) = 1 AND size * 3 > NEXT(size), B AS size > 2",
    "a function": "A AS half(PREV(price) + price) < price, B AS half(price) > 0",
}


@pytest.mark.parametrize("name", CONDITIONS)
def test_labels_of_more_rows_are_those_of_the_cpu(name: str) -> None:
    random, rows = np.random.default_rng(8), 400
    table = pa.table(
        {
            "n": random.permutation(rows),
            "key": random.integers(0, 7, rows),
            "price": pa.array(random.normal(size=rows), mask=random.random(rows) < 0.1),
            "size": random.integers(0, 5, rows),
            "kind": random.choice([*"abc"], rows),
        }
    )
    text = f"""MATCH_RECOGNIZE (PARTITION BY key ORDER BY n MEASURES FIRST(n) AS f, count(*) AS c, CLASSIFIER() AS v
        AFTER MATCH SKIP TO NEXT ROW PATTERN (A+ B | B A) DEFINE {CONDITIONS[name]})"""
    given = {"functions": {"half": lambda x: x / 2}} if "half" in text else {}
    found = cep.match(table, text, engine="gpu", **given)
    assert found.num_rows
    assert found.equals(cep.match(table, text, engine="cpu", **given))


@pytest.mark.parametrize("condition", ["x + 1 > 0", "x + PREV(x) > 0", "x + PREV(x) > 0 OR n > 9"])
def test_overflow_names_the_row(condition: str) -> None:
    table = pa.table({"n": [0, 1, 2], "x": [1, 2**63 - 1, 2**63 - 1]})
    text = f"MATCH_RECOGNIZE (ORDER BY n MEASURES count(*) AS c PATTERN (A) DEFINE A AS {condition})"
    with pytest.raises(EventError) as own:
        cep.match(table, text, engine="cpu")
    with pytest.raises(EventError) as fault:
        cep.match(table, text, engine="gpu")
    assert str(fault.value) == str(own.value)


TEXT = "MATCH_RECOGNIZE (ORDER BY n MEASURES count(*) AS c PATTERN (A B) DEFINE A AS n > 0, B AS n > PREV(n))"


def test_explain_says_what_the_card_does() -> None:
    table = pa.table({"n": [1, 2]})
    assert "engine     gpu labels the rows and finds the matches" in str(cep.explain(table, TEXT, engine="gpu"))
    assert "engine     cpu" in str(cep.explain(table, TEXT))


def test_too_little_memory_is_an_error() -> None:
    with pytest.raises(EngineUnavailable, match="its memory does not suffice"):
        cep.match(pa.table({"n": range(1000)}), TEXT, engine="gpu", gpu_memory="10k")


def test_what_no_card_does_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="engine='gpu' is not supported for MATCH_RECOGNIZE over a stream"):
        cep.stream(TEXT.replace("(A B)", "(A B) WITHIN 5"), pa.schema([("n", pa.int64())]), engine="gpu")
    with pytest.raises(UnsupportedError, match="algorithm='brute_force' cannot run on GPU"):
        cep.match(pa.table({"n": [1]}), TEXT, engine="gpu", algorithm="brute_force")
