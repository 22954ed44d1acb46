"""What numba-cuda generates for a card runs on this CPU, and its faults show there."""

from __future__ import annotations

import os
import signal
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.gpu.card_code import apart, cases, launch, memory
from benchmarks.gpu.card_code.device import CardCodeDevice
from benchmarks.gpu.conformance import compare
from benchmarks.gpu.device_code import missing_wheels
from gpu_cep_kernels.compile.jit import kernel, rule
from tests.drawn.queries import Case
from tests.requirements import require, require_modules

FEW = (0, 1, 40)


@pytest.fixture(autouse=True)
def wheels():
    require(missing_wheels())


@pytest.mark.parametrize("name", ["cross_reach", "gather_matches", "window_ends"])
def test_kernels_do_on_a_cards_code_what_they_do_on_the_cpu(name):
    group = next(group for group in cases.alike() if group[0].kernel.__name__ == name)
    texts = launch.generated(group[0].kernel, cases.made(group[0], 3).arguments)
    assert cases.compare(group, texts, FEW) == 2 * 2 * len(FEW) * len(group)


@kernel(writes=("doubled",))
def beyond(low: int, high: int, values: np.ndarray, doubled: np.ndarray) -> None:
    """Read one element too far."""
    for e in range(low, high):
        doubled[e] = 2 * values[e + 1]


@kernel(writes=("doubled",))
def before(low: int, high: int, values: np.ndarray, doubled: np.ndarray) -> None:
    """Write elements before the first; here numba lets indexes count from an array's end once."""
    for e in range(low, high):
        doubled[e - 2 * values.size] = 2 * values[e]


@kernel(writes=())
def undeclared(low: int, high: int, values: np.ndarray, doubled: np.ndarray) -> None:
    """Write what is not declared."""
    for e in range(low, high):
        doubled[e] = 2 * values[e]


@kernel(writes=("doubled",))
def carried(low: int, high: int, values: np.ndarray, doubled: np.ndarray) -> None:
    """Read what another index writes."""
    for e in range(low, high):
        doubled[e] = values[e] + (doubled[e - 1] if e else 0)


@rule
def _less(left: int, right: int) -> int:
    """Compare by a difference: rules take integers of 64 bits on the CPU, and on a card as they are."""
    return -1 if left - right < 0 else 1


@kernel(writes=("doubled",))
def narrow(low: int, high: int, values: np.ndarray, doubled: np.ndarray) -> None:
    """Subtract numbers without a sign."""
    for e in range(low, high):
        doubled[e] = _less(np.uint32(values[e]), np.uint32(99))


@kernel(writes=("doubled",))
def shifted(low: int, high: int, values: np.ndarray, doubled: np.ndarray) -> None:
    """Shift by 64 bits or more, of which processors make different things."""
    for e in range(low, high):
        doubled[e] = values[e] << (values[e] + 63)


@kernel(writes=("doubled",))
def converted(low: int, high: int, values: np.ndarray, doubled: np.ndarray) -> None:
    """Convert what no int64 is near, of which processors make different things."""
    for e in range(low, high):
        doubled[e] = np.int64(values[e] * 1e30)


def run(declared, at_end):
    """What a kernel makes of 30 numbers on a card's code, and on the CPU."""
    values, found, expected = np.arange(1, 31), np.zeros(30, np.int64), np.zeros(30, np.int64)
    form = launch.card_form(declared, launch.generated(declared, (values, found)), 0)
    form.launch(30, (values, found), np.random.default_rng(0), at_end)
    declared(0, 30, values, expected)
    return found.tolist(), expected.tolist()


@pytest.mark.parametrize(("wrong", "at_end"), [(beyond, True), (before, False)])
def test_what_leaves_its_arrays_ends_its_process(wrong, at_end):
    outcome = apart.begin(run, wrong, at_end).outcome()
    assert isinstance(outcome, apart.Ended)
    assert "SIGSEGV" in str(outcome)


def ended_by(number):
    os.kill(os.getpid(), number)


def unlike_any_other(text):
    """Raise an exception of a class that other processes do not know."""
    raise type("Local", (ValueError,), {})(text)


@pytest.mark.parametrize(("function", "argument", "outcome"), [
    (ended_by, signal.SIGBUS, apart.Ended("ended by SIGBUS: it reads or writes outside of its arrays")),
    (ended_by, signal.SIGKILL, apart.Ended("ended by SIGKILL")),
    (os._exit, 3, apart.Ended("ended by exit 3")),
    (unlike_any_other, "of its own", apart.Raised("Local: of its own")),
    (abs, -3, 3),
])  # fmt: skip
def test_the_outcome_of_a_process_says_what_it_ended_by(function, argument, outcome):
    assert repr(apart.begin(function, argument).outcome()) == repr(outcome)


def test_what_is_not_declared_is_not_written():
    with pytest.raises(launch.Misplaced, match="undeclared writes to an array int64"):
        run(undeclared, True)


def test_arrays_that_a_card_could_not_read_are_told():
    held = np.zeros(17, np.uint8)
    assert memory.misaligned([held[:16].view(np.int64), held[1:9].view(np.int64), held[1:]]) == ["int64[1]"]


@pytest.mark.parametrize("wrong", [carried, narrow])
def test_what_differs_from_the_cpu_shows(wrong):
    found, expected = run(wrong, True)
    assert found != expected


@pytest.mark.parametrize(("declared", "on_card"), [(shifted, 0), (converted, 2**63 - 1)])
def test_instructions_do_what_a_card_does(declared, on_card):
    found, _ = run(declared, True)
    assert set(found) == {on_card}


@pytest.mark.full
def test_queries_match_on_a_cards_code_as_on_the_cpu():
    require_modules("cupy")
    import cupy

    device = CardCodeDevice(cupy, 0)
    events = pa.table({"ts": range(30), "type": ["A", "B", "C"] * 10, "x": [k * 7 % 5 for k in range(30)]})
    with patch("gpu_cep_kernels.device.selection._find_device", lambda: device):
        query = Case("PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 9", events, {"strategy": "skip_till_next_match"})
        assert compare(query, output="indices") == "matched"
    assert device.launches["walk_compared_windows"]
