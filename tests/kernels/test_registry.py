"""Every registered kernel: it has a case, the engine uses it, and it touches no reference count."""

from __future__ import annotations

import ast
from pathlib import Path

import numba
import pytest

from gpu_cep.testing.kernel_cases import CASES, kernels
from tests.kernels.runs import leading, made

ROOT = Path(__file__).resolve().parents[2]
OPTIONS = ("error_model", "_nrt")

# For tests only: the conditions on windows need no statistics written out.
UNUSED = {"summary_statistics"}


def imported(folder):
    """The names imported from other modules by the files of a folder."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in folder.rglob("*.py")]
    return {alias.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}


def test_every_kernel_has_a_case():
    assert {case.kernel.__name__ for case in CASES} == kernels().keys()
    assert len({case.name for case in CASES}) == len(CASES)


def test_every_kernel_is_used():
    used = imported(ROOT / "gpu_cep" / "engine") | imported(ROOT / "kernels")
    assert kernels().keys() - used == UNUSED


@pytest.mark.parametrize("case", {case.kernel.__name__: case for case in CASES}.values(), ids=lambda case: case.kernel.__name__)
def test_no_kernel_counts_references(case):
    """Reference counting in a hot loop costs three times the loop."""
    function, call = case.kernel, made(case, 3)
    options = {option: function.compiled.targetoptions[option] for option in OPTIONS}
    compiled = numba.njit(**options)(function.body)
    compiled.compile(tuple(map(numba.typeof, (*leading(case, 0, 1, 0), *call.arguments))))
    assert all("NRT_" not in text for text in compiled.inspect_llvm().values())
