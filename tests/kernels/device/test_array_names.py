"""Every name of the array module that code for devices uses exists in CuPy, run or not."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from gpu_cep_kernels.compile.jit import simulated
from tests.requirements import require_modules

ROOT = Path(__file__).resolve().parents[3]
KERNELS = ROOT / "kernels" / "gpu_cep_kernels"
SOURCES = [*sorted((ROOT / "gpu_cep" / "engine").rglob("*.py")), *sorted(KERNELS.rglob("*.py"))]


def is_module(node):
    """Whether an expression is an array module: ``xp``, ``device.xp`` or, in its own file, ``cupy``."""
    match node:
        case ast.Name(id="xp" | "cupy") | ast.Attribute(attr="xp"):
            return True
    return False


def used_names(source):
    """What is read of an array module."""
    return {node.attr for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Attribute) and is_module(node.value)}


def test_the_search_finds_names():
    assert used_names("xp.sort(device.xp.zeros(3)); self.xp.cuda.Event(); xps.none") == {"sort", "zeros", "cuda"}


@pytest.mark.skipif(simulated(), reason="the simulator needs no CuPy")
@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_cupy_has_every_name(path):
    require_modules("cupy")
    import cupy

    assert not [name for name in used_names(path.read_text(encoding="utf-8")) if not hasattr(cupy, name)]
