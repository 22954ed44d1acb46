"""Imports run down: spark_glue → gpu_cep.api → engine → plan → analysis → lang, and the kernels are a leaf."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCES = {
    ".".join(path.relative_to(root).with_suffix("").parts): path
    for root in (ROOT, ROOT / "kernels", ROOT / "spark_glue")
    for package in sorted(root.glob("gpu_cep*"))
    for path in sorted(package.rglob("*.py"))
}

ROAD = ["gpu_cep.errors", "gpu_cep.lang", "gpu_cep.analysis", "gpu_cep.plan", "gpu_cep.engine", "gpu_cep.planning", "gpu_cep.api"]
# What the modules of a layer may import of the project; a layer is named by the longest prefix that fits.
BELOW = {layer: set(ROAD[:number]) for number, layer in enumerate(ROAD)} | {
    "gpu_cep.errors": {"gpu_cep.lang.ast"},
    "gpu_cep.pictures": {"gpu_cep.errors"},
    "gpu_cep.plan": {*ROAD[:3], "gpu_cep.pictures"},
    "gpu_cep.engine": {*ROAD[:4], "gpu_cep_kernels"},
    "gpu_cep.engine.brute_force": {*ROAD[:5], "gpu_cep.testing.expressions", "gpu_cep.testing.oracle"},
    "gpu_cep.engine.interval_brute_force": {*ROAD[:5], "gpu_cep.testing.interval_oracle"},
    "gpu_cep.testing": {*ROAD[:2]},
    "gpu_cep.testing.kernel_cases": {"gpu_cep_kernels"},
    "gpu_cep.testing.strict_arrays": {"gpu_cep_kernels"},
    "gpu_cep.plotting": {*ROAD, "gpu_cep.keywords", "gpu_cep.pictures"},
    "gpu_cep.keywords": {*ROAD[:5]},
    "gpu_cep.api": {*ROAD[:6], "gpu_cep.keywords"},
    "gpu_cep.cells": {"gpu_cep.errors"},
    "gpu_cep.reporting": {*ROAD, "gpu_cep.cells", "gpu_cep.keywords", "gpu_cep.pictures", "gpu_cep.plotting"},
    "gpu_cep.cli": {*ROAD, "gpu_cep.cells", "gpu_cep.keywords", "gpu_cep.pictures", "gpu_cep.plotting", "gpu_cep.reporting"},
    "gpu_cep": {*ROAD},
    "gpu_cep_kernels": set(),
    "gpu_cep_spark": {*ROAD, "gpu_cep.keywords", "gpu_cep.__version__"},
}
# The ways up, allowed inside a function or for type checkers only.
LAZY = {
    "gpu_cep": {"gpu_cep.plotting", "gpu_cep.reporting", "gpu_cep_spark"},
}
# Where a third-party package may be imported; numpy may be everywhere.
HOMES = {
    "numba": {"gpu_cep_kernels.jit"},
    "llvmlite": {"gpu_cep_kernels.jit"},
    "cupy": {"gpu_cep_kernels"},
    "rmm": {"gpu_cep_kernels.rmm_pool"},
    "cudf": {"gpu_cep.engine.device.cudf"},
    "lark": {"gpu_cep.lang"},
    "hypothesis": {"gpu_cep.testing"},
    "matplotlib": {"gpu_cep.pictures.figure", "gpu_cep.pictures.files", "gpu_cep.plotting"},
    "duckdb": {"gpu_cep.engine.frames"},
    "pandas": {"gpu_cep.engine.frames"},
    "polars": {"gpu_cep.engine.frames"},
    "pyspark": {"gpu_cep_spark"},
    "rich": {"gpu_cep.cli", "gpu_cep_spark.progress"},
    "typer": {"gpu_cep.cli"},
    "pyarrow": {
        "gpu_cep.api",
        "gpu_cep.cells",
        "gpu_cep.cli",
        "gpu_cep.planning",
        "gpu_cep.plotting",
        "gpu_cep.reporting",
        "gpu_cep.testing",
        "gpu_cep_spark",
        # where tables come in …
        "gpu_cep.engine.buffers",
        "gpu_cep.engine.columns",
        "gpu_cep.engine.computed",
        "gpu_cep.engine.device.columns",
        "gpu_cep.engine.device.cudf",
        "gpu_cep.engine.device.resident",
        "gpu_cep.engine.device.tables",
        "gpu_cep.engine.footprint",
        "gpu_cep.engine.encodings",
        "gpu_cep.engine.host_functions",
        "gpu_cep.engine.lists",
        "gpu_cep.engine.run",
        "gpu_cep.engine.slices",
        "gpu_cep.engine.sources",
        "gpu_cep.engine.tables",
        "gpu_cep.engine.text",
        # … and go out
        "gpu_cep.engine.answers",
        "gpu_cep.engine.arrow",
        "gpu_cep.engine.brute_force",
        "gpu_cep.engine.compressed",
        "gpu_cep.engine.frames",
        "gpu_cep.engine.interval_brute_force",
        "gpu_cep.engine.interval_events",
        "gpu_cep.engine.interval_results",
        "gpu_cep.engine.intervals",
        "gpu_cep.engine.order",
        "gpu_cep.engine.results",
        "gpu_cep.engine.returns",
    },
}


@dataclass(frozen=True)
class Import:
    """`name` is the module or the module's member that is imported; `lazy` if not at import time."""

    name: str
    line: int
    lazy: bool


def imports(module: str, tree: ast.AST, lazy: bool = False) -> Iterator[Import]:
    for node in ast.iter_child_nodes(tree):
        yield from (Import(name, node.lineno, lazy) for name in imported_names(module, node))
        yield from imports(module, node, lazy or is_lazy(node))


def is_lazy(node: ast.AST) -> bool:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda() | ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
    return False


def imported_names(module: str, node: ast.AST) -> list[str]:
    match node:
        case ast.Import():
            return [alias.name for alias in node.names]
        case ast.ImportFrom(level=0):
            return [f"{node.module}.{alias.name}" for alias in node.names]
        case ast.ImportFrom():
            package = module if SOURCES[module].name == "__init__.py" else module.rpartition(".")[0]
            base = ".".join(package.split(".")[: len(package.split(".")) - node.level + 1])
            return [".".join(filter(None, (base, node.module, alias.name))) for alias in node.names]
        case ast.Call(func=ast.Attribute(attr="import_module") | ast.Name(id="import_module"), args=[ast.Constant(value=str(name)), *_]):
            return [name]
        case _:
            return []


def under(name: str, prefix: str) -> bool:
    return name == prefix or name.startswith(prefix + ".")


def layer_of(module: str) -> str:
    return max((layer for layer in BELOW if under(module, layer)), key=len)


def allowed(module: str, found: Import) -> bool:
    package = found.name.partition(".")[0]
    if package.startswith("gpu_cep"):
        layer = layer_of(module)
        targets = BELOW[layer] | (LAZY.get(layer, set()) if found.lazy else set())
        return layer_of(found.name) == layer or any(under(found.name, target) for target in targets)
    if package in HOMES:
        return any(under(module, home) for home in HOMES[package])
    return package in sys.stdlib_module_names or package == "numpy"


def canonical(module: str) -> str:
    return module.removesuffix(".__init__")


@pytest.mark.parametrize("module", SOURCES)
def test_imports_run_down(module: str) -> None:
    path = SOURCES[module]
    found = imports(module, ast.parse(path.read_text(encoding="utf-8")))
    faults = [f"{path.relative_to(ROOT)}:{each.line} imports {each.name}" for each in found if not allowed(canonical(module), each)]
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize(
    ("module", "source", "fine"),
    [
        ("gpu_cep.lang.ast", "from gpu_cep.engine import run", False),
        ("gpu_cep.plan", "import gpu_cep.api", False),
        ("gpu_cep.plan", "from gpu_cep import api", False),
        ("gpu_cep.engine", "from gpu_cep_kernels import jit", True),
        ("gpu_cep.api", "import gpu_cep_kernels", False),
        ("gpu_cep.api", "from gpu_cep.testing.oracle import matches", False),
        ("gpu_cep.engine.run", "from gpu_cep.testing.oracle import matches", False),
        ("gpu_cep.engine.brute_force", "from gpu_cep.testing.oracle import matches", True),
        ("gpu_cep.plotting.view", "from gpu_cep.engine import keys", True),
        ("gpu_cep.api", "def f():\n    from gpu_cep import plotting", False),
        ("gpu_cep.__init__", "from gpu_cep.plotting import plot", False),
        ("gpu_cep.__init__", "from gpu_cep_spark import gpu_match", False),
        ("gpu_cep.__init__", "def f():\n    from gpu_cep_spark import gpu_match", True),
        ("gpu_cep.testing", "from gpu_cep.plan import planner", False),
        ("gpu_cep.plan", "import numba", False),
        ("gpu_cep.analysis", "import pyarrow.compute", False),
        ("gpu_cep.api", "import_module('pyspark')", False),
        ("gpu_cep_kernels", "from gpu_cep.errors import CepError", False),
        ("gpu_cep_spark", "from gpu_cep.api import match", True),
        ("gpu_cep.errors", "from gpu_cep.lang import parser", False),
    ],
)
def test_the_rule_itself(module: str, source: str, fine: bool) -> None:
    assert all(allowed(canonical(module), each) for each in imports(module, ast.parse(source))) is fine
