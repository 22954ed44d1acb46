"""Imports run down: spark_glue → gpu_cep.api → engine → plan → analysis → lang, and the kernels are a leaf."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCES = {
    ".".join(path.relative_to(root).with_suffix("").parts): path
    for root in (ROOT, ROOT / "kernels", ROOT / "spark_glue")
    for package in sorted(root.glob("gpu_cep*"))
    for path in sorted(package.rglob("*.py"))
}

ROAD = [
    f"gpu_cep.{layer}"
    for layer in (
        "choices", "errors", "lang", "analysis", "plan", "engine", "queries.row_plans", "queries.plans", "queries.runs",
        "queries.sliced_plans", "queries.sliced_runs", "live.queries", "live.clocks", "live.steps", "live.plans", "live.runs",
        "live.sliced_rows", "match_runs", "explanations", "result_forms", "api", "rule_sets.rules", "rule_sets.files",
        "rule_sets.plans", "rule_sets.families", "rule_sets.runs", "rule_sets.explain", "rule_sets.tables", "rule_sets.matching",
    )
]  # fmt: skip


def before(layer: str) -> list[str]:
    """The layers before one on the road."""
    return ROAD[: ROAD.index(f"gpu_cep.{layer}")]


# The folders of the engine and of the kernels: each imports only those before it.
ENGINE = [
    f"gpu_cep.engine.{folder}"
    for folder in (
        "accounting", "input", "lowering", "events", "windows", "phase_one", "output", "slices",
        "matchers", "adaptive", "compressed", "intervals", "brute_force", "row_patterns", "streaming", "rule_sets",
    )
]  # fmt: skip
# The algorithms, none of which imports another.
MATCHERS = [f"gpu_cep.engine.matchers.{folder}" for folder in ("automaton", "nfab", "lazy", "joins", "contiguous")]
KERNELS = [
    f"gpu_cep_kernels.{folder}"
    for folder in (
        "compile", "rules", "phase_one", "labels_decide", "matches", "automaton", "joins", "intervals", "device", "lazy", "nfab",
        "row_patterns",
    )
]  # fmt: skip
# The folders above the engine, whose files ROAD lists.
ABOVE = ["gpu_cep.queries", "gpu_cep.live", "gpu_cep.rule_sets"]
# The folders of the glue: they and the files beside them import each other in no circle.
SPARK = [
    f"gpu_cep_spark.{folder}" for folder in ("slices", "narrowing", "files", "reports", "tasks", "streaming", "rule_sets")
]  # fmt: skip
MOST_FLOORS = {"gpu_cep.engine": 9, "gpu_cep_kernels": 5, "gpu_cep_spark": 11}

DISPLAY = "gpu_cep.display"
KEYWORDS = ("gpu_cep.keywords", "gpu_cep.signatures")
# What the modules of a layer may import of the project; a layer is named by the longest prefix that fits.
BELOW: dict[str, set[str]] = {layer: set(ROAD[:number]) for number, layer in enumerate(ROAD)}
BELOW |= {
    "gpu_cep.errors": {"gpu_cep.lang.ast", "gpu_cep.choices"},
    "gpu_cep.identity": set(),
    "gpu_cep.records": set(),
    "gpu_cep.whole_files": {"gpu_cep.errors"},
    "gpu_cep.pictures": {"gpu_cep.errors", "gpu_cep.whole_files"},
    "gpu_cep.plan": {*before("plan"), "gpu_cep.pictures", "gpu_cep.whole_files", "gpu_cep.identity", "gpu_cep.records"},
    "gpu_cep.engine": {*before("engine"), *ENGINE, "gpu_cep_kernels", "gpu_cep.records"},
    "gpu_cep.queries.row_plans": {*before("queries.row_plans"), "gpu_cep.identity"},
    "gpu_cep.queries.plans": {*before("queries.plans"), "gpu_cep.identity"},
}
BELOW |= {
    folder: {*before("engine"), *ENGINE[:number], "gpu_cep_kernels", "gpu_cep.identity", "gpu_cep.records"}
    for number, folder in enumerate(ENGINE)
}
BELOW |= {folder: BELOW["gpu_cep.engine.matchers"] | {"gpu_cep.engine.matchers"} for folder in MATCHERS}
BELOW["gpu_cep.engine.brute_force"] |= {"gpu_cep.oracle"}
BELOW |= {
    "gpu_cep.oracle": {*before("analysis")},
    f"{DISPLAY}.plotting": {*ROAD, *KEYWORDS, "gpu_cep.whole_files", f"{DISPLAY}.match_view", "gpu_cep.pictures"},
    "gpu_cep.keywords": {*before("queries.plans")},
    "gpu_cep.signatures": {"gpu_cep.errors", "gpu_cep.keywords"},
    "gpu_cep.api": {*before("api"), *KEYWORDS},
    f"{DISPLAY}.cells": {"gpu_cep.engine.input.empty_tables", "gpu_cep.engine.input.readable", "gpu_cep.errors"},
    f"{DISPLAY}.event_texts": {f"{DISPLAY}.cells"},
    f"{DISPLAY}.match_view": {*ROAD, f"{DISPLAY}.cells", f"{DISPLAY}.event_texts"},
    f"{DISPLAY}.reporting": {
        *ROAD,
        *KEYWORDS,
        "gpu_cep.whole_files",
        *(f"{DISPLAY}.{part}" for part in ("cells", "match_view", "plotting")),
        "gpu_cep.pictures",
    },
    "gpu_cep.live.sliced_rows": {*before("live.sliced_rows"), "gpu_cep_kernels.compile.launch"},
    "gpu_cep.rule_sets.rules": {*before("api"), *KEYWORDS},
    "gpu_cep.rule_sets.files": {"gpu_cep.errors", "gpu_cep.rule_sets.rules"},
    "gpu_cep.rule_sets.plans": {*before("rule_sets.plans"), *KEYWORDS},
    "gpu_cep.rule_sets.families": {*before("rule_sets.families"), "gpu_cep_kernels.compile.launch"},
    "gpu_cep.rule_sets.runs": {*before("rule_sets.runs"), "gpu_cep_kernels.compile.launch"},
    "gpu_cep.rule_sets.explain": {*before("rule_sets.explain"), "gpu_cep_kernels.compile.launch"},
    "gpu_cep.rule_sets.matching": {*before("rule_sets.matching"), *KEYWORDS, "gpu_cep_kernels.compile.launch"},
    "gpu_cep.bound_events": {*ROAD, *KEYWORDS},
    "gpu_cep.streams": {*ROAD, *KEYWORDS, "gpu_cep.__version__"},
    "gpu_cep.progress_tables": {*ROAD, *KEYWORDS},
    "gpu_cep.rule_sets.lookups": {*ROAD},
    "gpu_cep.rule_sets.stream_plans": {*ROAD, *KEYWORDS},
    "gpu_cep.rule_sets.streams": {
        *ROAD,
        *KEYWORDS,
        *(f"gpu_cep.{part}" for part in ("rule_sets.lookups", "rule_sets.stream_plans", "streams", "__version__")),
    },
    "gpu_cep.sql_statements": {*before("analysis")},
    "gpu_cep.sql_answers": {*ROAD, "gpu_cep.sql_statements"},
    "gpu_cep.cli": {
        *ROAD,
        *KEYWORDS,
        "gpu_cep.pictures",
        "gpu_cep.progress_tables",
        "gpu_cep.sql_answers",
        "gpu_cep.whole_files",
        "gpu_cep.__version__",
        DISPLAY,
        "gpu_cep_kernels",
    },
    "gpu_cep": {
        *ROAD,
        "gpu_cep.bound_events",
        *KEYWORDS,
        "gpu_cep.progress_tables",
        "gpu_cep.sql_answers",
        "gpu_cep.streams",
        "gpu_cep.rule_sets.streams",
    },
    "gpu_cep_spark": {
        *ROAD,
        "gpu_cep.bound_events",
        *KEYWORDS,
        "gpu_cep.identity",
        "gpu_cep.progress_tables",
        "gpu_cep.rule_sets.lookups",
        "gpu_cep.rule_sets.stream_plans",
        "gpu_cep.sql_statements",
        "gpu_cep.__version__",
        "gpu_cep_kernels.device.selection",
    },
    "gpu_cep_kernels": set(),
}
BELOW |= {folder: set(KERNELS[:number]) for number, folder in enumerate(KERNELS)}
# The ways up, allowed inside a function or for type checkers only.
LAZY = {
    "gpu_cep": {f"{DISPLAY}.plotting", f"{DISPLAY}.reporting", "gpu_cep_spark"},
    "gpu_cep.bound_events": {f"{DISPLAY}.plotting", f"{DISPLAY}.reporting", "gpu_cep_spark"},
    "gpu_cep.rule_sets.matching": {"gpu_cep_spark"},
    "gpu_cep.sql_answers": {"gpu_cep_spark"},
    "gpu_cep_spark": {f"{DISPLAY}.plotting", f"{DISPLAY}.reporting"},
}
# Where a third-party package may be imported; numpy may be everywhere. The API declares types of other libraries.
HOMES = {
    "numba": {"gpu_cep_kernels.compile"},
    "llvmlite": {"gpu_cep_kernels.compile"},
    "numba_cuda": {"gpu_cep_kernels.compile"},
    "cuda": {"gpu_cep_kernels.compile"},
    "cupy": {"gpu_cep_kernels.device"},
    "rmm": {"gpu_cep_kernels.device.rmm_pool"},
    "cudf": {"gpu_cep.engine.input.device.cudf", "gpu_cep.api"},
    "pylibcudf": {"gpu_cep.engine.input.device.cudf"},
    "fsspec": {"gpu_cep.engine.input.file_systems"},
    "lark": {"gpu_cep.lang"},
    "matplotlib": {"gpu_cep.pictures.figure", f"{DISPLAY}.plotting"},
    "duckdb": {"gpu_cep.engine.output.frames", "gpu_cep.api", "gpu_cep.sql_answers"},
    "pandas": {"gpu_cep.engine.output.frames", "gpu_cep.api", "gpu_cep_spark.streaming.buckets", "gpu_cep_spark.streaming.packing"},
    "polars": {"gpu_cep.engine.output.frames", "gpu_cep.api"},
    "pyspark": {"gpu_cep_spark", "gpu_cep.bound_events", "gpu_cep.sql_answers"},
    "yaml": {"gpu_cep.rule_sets.files"},
    "rich": {"gpu_cep.cli", "gpu_cep_spark.reports.progress"},
    "sqlglot": {"gpu_cep.sql_statements"},
    "typer": {"gpu_cep.cli"},
    "pyarrow": {
        "gpu_cep.api",
        "gpu_cep.bound_events",
        "gpu_cep.cli",
        DISPLAY,
        "gpu_cep.oracle",
        "gpu_cep.match_runs",
        "gpu_cep.progress_tables",
        "gpu_cep.queries.row_plans",
        "gpu_cep.queries.plans",
        "gpu_cep.queries.runs",
        "gpu_cep.result_forms",
        "gpu_cep.rule_sets.families",
        "gpu_cep.rule_sets.lookups",
        "gpu_cep.rule_sets.plans",
        "gpu_cep.rule_sets.runs",
        "gpu_cep.rule_sets.matching",
        "gpu_cep.rule_sets.streams",
        "gpu_cep.rule_sets.stream_plans",
        "gpu_cep.rule_sets.tables",
        "gpu_cep.queries.sliced_plans",
        "gpu_cep.live.sliced_rows",
        "gpu_cep.queries.sliced_runs",
        "gpu_cep.sql_answers",
        "gpu_cep_spark",
        # where tables come in …
        "gpu_cep.engine.input",
        "gpu_cep.engine.lowering.text_predicates",
        "gpu_cep.engine.phase_one.computed_columns",
        "gpu_cep.engine.phase_one.device.columns",
        "gpu_cep.engine.run",
        "gpu_cep.engine.timeouts",
        # … and go out
        "gpu_cep.engine.answers",
        "gpu_cep.engine.brute_force",
        "gpu_cep.engine.compressed.compressed",
        "gpu_cep.engine.intervals",
        "gpu_cep.engine.output",
        "gpu_cep.engine.row_patterns",
        "gpu_cep.engine.rule_sets",
        "gpu_cep.engine.slices",
        "gpu_cep.engine.streaming",
        "gpu_cep.live.plans",
        "gpu_cep.live.clocks",
        "gpu_cep.live.queries",
        "gpu_cep.live.runs",
        "gpu_cep.live.steps",
        "gpu_cep.streams",
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


@cache
def imports_of(module: str) -> tuple[Import, ...]:
    return tuple(imports(module, ast.parse(SOURCES[module].read_text(encoding="utf-8"))))


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
        if layer in MATCHERS and layer_of(found.name) in MATCHERS:
            return layer_of(found.name) == layer
        targets = BELOW[layer] | (LAZY.get(layer, set()) if found.lazy else set())
        return layer_of(found.name) == layer or any(under(found.name, target) for target in targets)
    if package in HOMES:
        return any(under(module, home) for home in HOMES[package])
    return package in sys.stdlib_module_names or package == "numpy"


def canonical(module: str) -> str:
    return module.removesuffix(".__init__")


def test_imports_run_down() -> None:
    faults = [
        f"{path.relative_to(ROOT)}:{each.line} imports {each.name}"
        for module, path in SOURCES.items()
        for each in imports_of(module)
        if not allowed(canonical(module), each)
    ]
    assert not faults, "\n".join(faults)


def room_of(name: str, root: str) -> str | None:
    """The folder, or the file beside the folders, in which a module of `root` lies."""
    return ".".join(name.split(".")[: root.count(".") + 2]) if name.startswith(f"{root}.") else None


def rooms(root: str) -> dict[str, set[str]]:
    """What each folder and file right under `root` imports of the others."""
    found: dict[str, set[str]] = {}
    for module in SOURCES:
        room = room_of(canonical(module), root)
        if room:
            names = (room_of(each.name, root) for each in imports_of(module))
            found.setdefault(room, set()).update(name for name in names if name and name != room)
    return found


@pytest.mark.parametrize("root", MOST_FLOORS)
def test_few_floors_and_no_circle(root: str) -> None:
    below = rooms(root)
    floors = list(TopologicalSorter(below).static_order())  # raises CycleError
    floor: dict[str, int] = {}
    for room in floors:
        floor[room] = 1 + max((floor[other] for other in below.get(room, ())), default=0)
    assert max(floor.values()) <= MOST_FLOORS[root], floor


@pytest.mark.parametrize("folder", [*ENGINE, *MATCHERS, *KERNELS, *SPARK, *ABOVE, "gpu_cep.oracle", DISPLAY])
def test_a_folder_says_in_one_sentence_what_happens_inside(folder: str) -> None:
    tree = ast.parse(SOURCES[f"{folder}.__init__"].read_text(encoding="utf-8"))
    assert len(tree.body) == 1, "nothing else happens there"
    sentence = ast.get_docstring(tree) or ""
    assert sentence[:1].isupper(), sentence
    assert sentence.endswith("."), sentence


@pytest.mark.parametrize("folder", [*ENGINE, *KERNELS, *SPARK])
def test_the_lists_name_every_folder(folder: str) -> None:
    root = folder.rpartition(".")[0]
    path = SOURCES[f"{root}.__init__"].parent
    listed = {name.rpartition(".")[2] for name in (*ENGINE, *KERNELS, *SPARK) if name.rpartition(".")[0] == root}
    assert {each.name for each in path.iterdir() if (each / "__init__.py").exists()} == listed


@pytest.mark.parametrize(
    ("module", "source", "fine"),
    [
        ("gpu_cep.lang.ast", "from gpu_cep.engine import run", False),
        ("gpu_cep.plan", "import gpu_cep.api", False),
        ("gpu_cep.plan", "from gpu_cep import api", False),
        ("gpu_cep.engine.run", "from gpu_cep_kernels.compile import jit", True),
        ("gpu_cep.engine.input.times", "from gpu_cep.engine.lowering import programs", False),
        ("gpu_cep.engine.lowering.programs", "from gpu_cep.engine.input import times", True),
        ("gpu_cep.engine.matchers.lazy.conditions", "from gpu_cep.engine.matchers import search", True),
        ("gpu_cep.engine.matchers.lazy.conditions", "from gpu_cep.engine.matchers.joins import sides", False),
        ("gpu_cep.engine.matchers.search", "from gpu_cep.engine.matchers.joins import sides", False),
        ("gpu_cep_kernels.rules.cut", "from gpu_cep_kernels.compile import jit", True),
        ("gpu_cep_kernels.rules.cut", "from gpu_cep_kernels.matches import groups", False),
        ("gpu_cep_kernels.rules.cut", "import numba", False),
        ("gpu_cep.api", "import gpu_cep_kernels", False),
        ("gpu_cep.api", "from gpu_cep.oracle.events import matches", False),
        ("gpu_cep.engine.run", "from gpu_cep.oracle.events import matches", False),
        ("gpu_cep.engine.brute_force.events", "from gpu_cep.oracle.events import matches", True),
        ("gpu_cep.display.plotting.view", "from gpu_cep.engine.events import stream_keys", True),
        ("gpu_cep.api", "def f():\n    from gpu_cep.display import plotting", False),
        ("gpu_cep.__init__", "from gpu_cep.display.plotting import plot", False),
        ("gpu_cep.__init__", "from gpu_cep_spark import gpu_match", False),
        ("gpu_cep.__init__", "def f():\n    from gpu_cep_spark import gpu_match", True),
        ("gpu_cep.oracle", "from gpu_cep.plan import planner", False),
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
