"""Every registered kernel: it has a case, the engine uses it, and it touches no reference count."""

from __future__ import annotations

import ast
from pathlib import Path

import numba
import numpy as np
import pytest

from tests.kernel_cases import CASES, kernels
from tests.kernels.runs import leading, made

ROOT = Path(__file__).resolve().parents[2]


def imported(folder):
    """The names imported from other modules by the files of a folder."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in folder.rglob("*.py")]
    return {alias.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}


def test_every_kernel_has_a_case():
    assert {case.kernel.__name__ for case in CASES} == kernels().keys()
    assert len({case.name for case in CASES}) == len(CASES)


def test_every_kernel_is_used():
    used = imported(ROOT / "gpu_cep" / "engine") | imported(ROOT / "kernels")
    assert kernels().keys() <= used


@pytest.mark.parametrize("case", {case.kernel.__name__: case for case in CASES}.values(), ids=lambda case: case.kernel.__name__)
def test_no_kernel_counts_references(case):
    """Reference counting in a hot loop costs three times the loop."""
    call = made(case, 3)
    arguments = *leading(case, 0, 1, 0), *call.arguments
    assert not counts_references(case.kernel.compiled, tuple(map(case.kernel.compiled.typeof_pyval, arguments)))


def test_reference_counts_are_seen():
    assert counts_references(numba.njit(lambda size: np.zeros(size).sum()), (numba.int64,))
    assert not counts_references(numba.njit(lambda size: size + 1), (numba.int64,))


def counts_references(compiled, types):
    """Whether the code for arguments of these types, from the disk where it is there, names numba's run time."""
    compiled.compile(types)
    return "NRT_" in str(compiled.overloads[types].library._get_module_for_linking())
