"""Every name of the array module that code for devices uses exists in CuPy, run or not, and takes the arguments that it is given."""

from __future__ import annotations

import ast
from functools import reduce
from pathlib import Path

import pytest

from gpu_cep_kernels.compile.jit import simulated
from tests.cupy_signatures import Documented, refusal, signature_of
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


def dotted(node):
    """The names that lead from an array module to an expression; None if it is none of the module's."""
    if is_module(node):
        return ()
    if isinstance(node, ast.Name) and node.id == "runtime":
        return ("cuda", "runtime")
    if isinstance(node, ast.Attribute):
        before = dotted(node.value)
        return None if before is None else (*before, node.attr)
    return None


def used_calls(source):
    """The functions of an array module that are called: names that lead there, how many arguments, which keywords."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and (names := dotted(node.func)) and not any(isinstance(each, ast.Starred) for each in node.args):
            yield names, len(node.args), tuple(word.arg for word in node.keywords if word.arg)


def refusals(module, source):
    """What is wrong with the calls."""
    called = [(reduce(getattr, names, module), arguments, words) for names, arguments, words in used_calls(source)]
    return [f"{function.__name__}: {why}" for function, *given in called if (why := refusal(function, *given))]


def test_the_search_finds_names():
    assert used_names("xp.sort(device.xp.zeros(3)); self.xp.cuda.Event(); xps.none") == {"sort", "zeros", "cuda"}


@pytest.mark.skipif(simulated(), reason="the simulator needs no CuPy")
@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_cupy_has_every_name(path):
    require_modules("cupy")
    import cupy

    assert not [name for name in used_names(path.read_text(encoding="utf-8")) if not hasattr(cupy, name)]


@pytest.mark.skipif(simulated(), reason="the simulator needs no CuPy")
@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_cupys_functions_take_the_arguments(path):
    require_modules("cupy")
    import cupy

    assert refusals(cupy, path.read_text(encoding="utf-8")) == []


@pytest.mark.skipif(simulated(), reason="the simulator needs no CuPy")
@pytest.mark.parametrize(
    "source",
    ["xp.take(a, b, mode='clip', like=c)", "xp.isnan(a, b, c, d)", "runtime.memcpyAsync(a, b, c)", "cupy.cuda.Event(timing=False)"],
)
def test_wrong_arguments_are_found(source):
    require_modules("cupy")
    import cupy

    assert len(refusals(cupy, source)) == 1


def test_calls_are_found():
    source = "xp.zeros(3, dtype=int); device.xp.cuda.Event(disable_timing=True).record(s); xp.concatenate(*parts)"
    assert [*used_calls(source)] == [(("zeros",), 1, ("dtype",)), (("cuda", "Event"), 0, ("disable_timing",))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("memcpyAsync(intptr_t dst, size_t size, int kind=0)", "(dst, size, kind=None)"),
        ("_ndarray_base.sum(self, axis=None, keepdims=False) -> _ndarray_base", "(axis=None, keepdims=None)"),
        ("isnan(x, /, out=None, \\*, casting='same_kind')", "(x, /, out=None, *, casting=None)"),
        ("Returns nothing.", None),
    ],
)
def test_signatures_are_read_off_documentation(text, expected):
    found = signature_of(Documented(text))
    assert (None if found is None else str(found)) == expected
