"""Row patterns whose matches a device finds, in pieces of any size; the CPU plays the device with spoilt memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gpu_cep as cep
from benchmarks.row_patterns.questions import FALL_AND_RISE, QUESTIONS, rows_of
from gpu_cep.engine.phase_one.device import disjoint_matches
from gpu_cep.engine.row_patterns import device_labels, device_matches
from gpu_cep.errors import EventError
from tests.drawn.row_patterns import ALONE, BESIDE, Drawn, clauses
from tests.engine.row_patterns.test_answers import check
from tests.gpu.spoilt_device import SpoiltDevice, cupy_if_installed

# The questions whose matches are left to the CPU, and why.
LEFT = {
    "permutation of five": "the pattern has 80 states, not 1 to 64",
    **{question.name: "conditions read the match" for question in QUESTIONS if not question.labels},
}


@contextmanager
def device(seed: int = 3, rows: int = 256, bits: int = 6, steps: int = 1_000, few: int = 1_000) -> Iterator[None]:
    opened = SpoiltDevice(cupy_if_installed(), seed)
    with (
        patch("gpu_cep_kernels.device.selection._find_device", lambda: opened),
        patch.multiple(device_matches, _ROWS=rows, _MOST_STEPS=steps, _FEW_STEPS=few),
        patch.object(disjoint_matches, "BITS", bits),
    ):
        yield


@given(clauses(ALONE * 2 + BESIDE), st.integers(0, 2**32), *4 * [st.integers(1, 7)])
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
def test_matches_are_those_of_the_definition(drawn: Drawn, seed: int, rows: int, bits: int, steps: int, few: int) -> None:
    with device(seed, rows, bits, steps, few):
        check(drawn, engine="gpu")


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.name)
@pytest.mark.parametrize(("rows", "keys"), [(1, 3), (5, 40), (64, 1)])
def test_the_questions_matches_are_those_of_the_cpu(question, rows: int, keys: int) -> None:
    table, profile = rows_of(2_000, keys), cep.Profile()
    text = f"MATCH_RECOGNIZE (PARTITION BY key ORDER BY ts {question.clauses})"
    with device(rows=rows):
        explained = str(cep.explain(table, text, engine="gpu"))
        found = cep.match(table, text, engine="gpu", profile=profile)
    assert found.equals(cep.match(table, text, engine="cpu"))
    assert found.num_rows
    assert "left" not in profile.counts
    why = LEFT.get(question.name)
    assert ("engine     gpu labels the rows and finds the matches" in explained) == (why is None)
    assert why is None or f"engine     gpu labels the rows, cpu finds the matches: {why}" in explained


def test_without_room_the_cpu_finds_the_matches() -> None:
    table, profile = rows_of(5_000, 3), cep.Profile()
    text = f"MATCH_RECOGNIZE (PARTITION BY key ORDER BY ts {QUESTIONS[0].clauses})"
    with device():
        found = cep.match(table, text, engine="gpu", gpu_memory=400_000, profile=profile)
    assert found.equals(cep.match(table, text, engine="cpu"))
    assert profile.counts["left"] == 5_000


@pytest.mark.parametrize(("skip", "left"), [("TO LAST U", False), ("TO FIRST U", False), ("TO FIRST D", False), ("TO FIRST S", True)])
def test_the_search_goes_on_at_rows_of_a_variable(skip: str, left: bool) -> None:
    """Where a match would be found again, the CPU says so, if the search comes to it."""
    table, profile = rows_of(2_000, 3), cep.Profile()
    clauses = f"AFTER MATCH SKIP {skip} PATTERN (S D+ U+) {FALL_AND_RISE}"
    text = f"MATCH_RECOGNIZE (PARTITION BY key ORDER BY ts MEASURES FIRST(ts) AS t, count(*) AS n {clauses})"
    answers: list[object] = []
    for engine in ("cpu", "gpu"):
        with device(rows=5):
            try:
                answers.append(cep.match(table, text, engine=engine, profile=profile).to_pydict())
            except EventError as fault:
                answers.append(str(fault))
    assert answers[0] == answers[1]
    assert isinstance(answers[0], str) == left
    assert profile.counts.get("left") == (2_000 if left else None)


LONG = "MEASURES count(*) AS n PATTERN (A X* B) WITHIN {} DEFINE A AS kind = 'a', B AS kind = 'b'"


@pytest.mark.parametrize(("within", "left"), [("40 EVENTS", False), ("41 EVENTS", True), ("120", True), ("40", False)])
def test_windows_in_which_a_match_is_too_long_leave_the_rows_to_the_cpu(within: str, left: bool) -> None:
    table, profile = rows_of(2_000, 3), cep.Profile()
    text = f"MATCH_RECOGNIZE (PARTITION BY key ORDER BY ts {LONG.format(within)})"
    with device(rows=5, steps=40, few=20), patch.object(device_labels, "_own_labels", wraps=device_labels._own_labels) as labelled:
        found = cep.match(table, text, engine="gpu", profile=profile)
    labelled.assert_called_once()
    assert found.equals(cep.match(table, text, engine="cpu"))
    assert found.num_rows > 20
    assert profile.counts.get("left") == (2_000 if left else None)


@pytest.mark.parametrize("measure", ["count(*) AS n", "LAST(A.ts) AS t"])
@pytest.mark.parametrize("within", ["3 EVENTS", "700 EVENTS", "0", "9", "1500"])
def test_windows_may_hold_many_pieces(within: str, measure: str) -> None:
    table = rows_of(2_000, 3).append_column("part", pa.array(np.arange(2_000) % 300 // 100))
    clauses = LONG.format(within).replace("A X* B", "(A | B)+ X{2,}? B?").replace("count(*) AS n", measure)
    for skip in ("PAST LAST ROW", "TO NEXT ROW"):
        text = f"MATCH_RECOGNIZE (PARTITION BY part ORDER BY ts {clauses.replace('PATTERN', f'AFTER MATCH SKIP {skip} PATTERN')})"
        with device(rows=7):
            found = cep.match(table, text, engine="gpu")
        assert found.equals(cep.match(table, text, engine="cpu"))


def test_pieces_are_those_of_partitions() -> None:
    offsets = np.array([0, 1, 8, 11])
    pieces = device_matches.short_pieces(offsets, 3)
    assert [each.tolist() for each in pieces] == [[0, 1, 4, 7, 8, 11], [0, 1, 1, 1, 8], [1, 8, 8, 8, 11]]


@pytest.mark.parametrize(
    ("skip", "begin", "followed"),
    [
        ("PAST LAST ROW", 0, [(4_000, 64)]),
        ("TO NEXT ROW", 0, [(4_000, 64), (2_936, 1_024)]),
        ("PAST LAST ROW", 2_900, [(4_000, 64), (36, 1_024)]),
    ],
)
def test_matches_in_windows_are_followed_for_few_steps_per_row(skip: str, begin: int, followed: list[tuple[int, int]]) -> None:
    """Beside one long partition there are many of two rows. A match has 100 rows at most; of all rows from `begin` on one begins."""
    text = f"""MATCH_RECOGNIZE (PARTITION BY key ORDER BY n MEASURES count(*) AS c AFTER MATCH SKIP {skip}
        PATTERN (A+) WITHIN 100 EVENTS DEFINE A AS n >= {begin})"""
    n, launches, profile = np.arange(4_000), [], cep.Profile()
    table = pa.table({"n": n, "key": np.maximum(0, n - 2_998) // 2})
    launch = SpoiltDevice.launch

    def counted(self, kernel, size, *arguments):
        if kernel is device_matches.find_limited_matches:
            launches.append((size, arguments[5]))
        launch(self, kernel, size, *arguments)

    with device(few=64, steps=1_024), patch.object(SpoiltDevice, "launch", counted):
        found = cep.match(table, text, engine="gpu", profile=profile)
    assert found.equals(cep.match(table, text, engine="cpu"))
    assert launches == followed
    assert profile.counts.get("left") == (4_000 if begin == 0 and skip != "TO NEXT ROW" else None)


@pytest.mark.parametrize("within", ["", "WITHIN 500 EVENTS"])
def test_states_at_borders_are_those_of_cut_partitions(within: str) -> None:
    """One partition of three pieces stands between many of one row and of two."""
    text = f"""MATCH_RECOGNIZE (PARTITION BY key ORDER BY n MEASURES count(*) AS c PATTERN (A+ B) {within}
        DEFINE A AS n % 90 <> 0, B AS n % 90 = 0)"""
    n, sizes = np.arange(3_000), []
    table = pa.table({"n": n, "key": np.minimum(n, 1_000) + np.maximum(n - 1_700, 0) // 2})
    launch = SpoiltDevice.launch

    def counted(self, kernel, size, *arguments):
        if kernel.__name__.startswith("cross_"):
            sizes.append(size)
        launch(self, kernel, size, *arguments)

    with device(), patch.object(SpoiltDevice, "launch", counted):
        found = cep.match(table, text, engine="gpu")
    assert found.equals(cep.match(table, text, engine="cpu"))
    pieces, states = 3, 2
    assert sizes == [pieces * states] * (1 if within else 2)


@pytest.mark.parametrize("skip", ["PAST LAST ROW", "TO NEXT ROW"])
def test_work_grows_with_the_rows(skip: str) -> None:
    """A match may be as long as the table, and begin at each of its rows."""
    text = f"MATCH_RECOGNIZE (ORDER BY n MEASURES count(*) AS c AFTER MATCH SKIP {skip} PATTERN (A+ B?) DEFINE A AS n >= 0, B AS n >= 0)"
    looks: list[int] = []
    launch = SpoiltDevice.launch

    def counted(self, kernel, size, *arguments):
        launch(self, kernel, size, *arguments)
        if kernel is device_matches.find_row_matches:
            looks.append(int(arguments[-2].looks.sum()))

    for rows in (4_000, 16_000):
        with device(), patch.object(SpoiltDevice, "launch", counted):
            assert cep.match(pa.table({"n": range(rows)}), text, engine="gpu")["c"][0].as_py() == rows
    assert looks[1] == pytest.approx(4 * looks[0], rel=0.05)
