"""`import gpu_cep` is cheap: whoever only writes a query waits for no compiler and no Spark."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path

import pytest

import gpu_cep

ROOT = Path(__file__).resolve().parents[1]
PROBE = """
import importlib, json, sys, time
before = time.process_time()
importlib.import_module(sys.argv[1])
seconds = time.process_time() - before
print(json.dumps({"seconds": seconds, "modules": sorted(sys.modules)}))
"""
# Each module in a fork of its own, which has of other projects what they all import.
FORKS = """
import importlib, json, os, sys
import numba, numpy, pyarrow, pyspark.sql
for module in sys.argv[1:]:
    if os.fork() == 0:
        importlib.import_module(module)
        print(json.dumps(sorted(sys.modules)), flush=True)
        os._exit(0)
    assert os.wait()[1] == 0, module
"""
HEAVY = {
    *("gpu_cep.lang.builder", "numba", "llvmlite", "pyspark", "cupy", "cudf", "hypothesis"),
    *("pandas", "polars", "duckdb", "matplotlib", "rich", "typer"),
}
# what no Python worker needs
DRIVERS = {"matplotlib", "gpu_cep_spark.matching", "gpu_cep_spark.sql", "gpu_cep_spark.jobs"}
LIMIT = 0.5  # seconds of processor time, so that a busy machine does not count


def environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "kernels", ROOT / "spark_glue")))}


def printed(program: str, *arguments: str) -> str:
    run = subprocess.run(
        [sys.executable, "-c", program, *arguments], env=environment(), capture_output=True, text=True, check=True, timeout=120
    )
    return run.stdout


def test_import_is_quick_and_loads_nothing_heavy() -> None:
    assert HEAVY.isdisjoint(json.loads(printed(PROBE, "gpu_cep"))["modules"])
    # the first import may have had to write byte code
    assert min(json.loads(printed(PROBE, "gpu_cep"))["seconds"] for _ in range(3)) <= LIMIT


@pytest.mark.parametrize("name", ["RunReport", "gpu_match", "rapids_conf", "register", "sql_conf"])
def test_what_needs_spark_says_how_to_install_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "gpu_cep_spark", raising=False)
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(gpu_cep.EngineUnavailable, match=r"need PySpark, .*: pip install 'gpu_cep\[spark\]'"):
        getattr(gpu_cep, name)


def test_an_old_spark_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    version = pytest.importorskip("pyspark.version")
    assert "pyspark>=4.1" in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for told, message in (("4.0.1", "PySpark 4.1 or newer, and 4.0.1 is installed"), ("3.5.3", "3.5.3 is installed"), ("4.1.0.dev1", None)):
        monkeypatch.delitem(sys.modules, "gpu_cep_spark", raising=False)
        monkeypatch.setattr(version, "__version__", told)
        with nullcontext() if message is None else pytest.raises(gpu_cep.EngineUnavailable, match=message):
            import_module("gpu_cep_spark")


def test_the_package_under_spark_tells_its_names() -> None:
    pytest.importorskip("pyspark")
    spark_glue = import_module("gpu_cep_spark")
    assert set(spark_glue.__all__) <= set(dir(spark_glue))
    assert all(getattr(spark_glue, name) is not None for name in spark_glue.__all__)


def test_a_query_is_checked_without_what_runs_it() -> None:
    check = "import sys; from gpu_cep.cli import main; [main(['validate', each]) for each in sys.argv[1:]]; print('numba' in sys.modules)"
    queries = ("PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 5", "MATCH_RECOGNIZE (ORDER BY ts PATTERN (A B) DEFINE A AS x > 1)")
    assert printed(check, *queries) == "the pattern is valid\nthe pattern is valid\nFalse\n"


def test_spark_loads_what_it_needs() -> None:
    """Each is the first of the project that its process imports."""
    absent = {
        "gpu_cep_spark.matching": {"pandas", "matplotlib", "duckdb"},
        **{module: DRIVERS | {"pandas"} for module in import_module("gpu_cep_spark.daemon").LOADED},
        "gpu_cep_spark.streaming.processor": DRIVERS,
    }
    for module, modules in zip(absent, printed(FORKS, *absent).splitlines(), strict=True):
        assert absent[module].isdisjoint(json.loads(modules)), module


@pytest.mark.parametrize("folder", ["gpu_cep", "kernels", "spark_glue"])
def test_parts_of_a_package_are_imported_where_they_are_used(folder: str) -> None:
    """Pyarrow loads only some of its modules: another module of the process may have loaded what this one forgets."""
    apart = {"acero", "compute", "csv", "dataset", "feather", "flight", "fs", "json", "orc", "parquet", "substrait"}
    parts = re.compile(rf"\b(?:pa|pyarrow)\.(?:{'|'.join(apart)})\b")
    for path in (ROOT / folder).rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if not parts.search(text):
            continue
        tree = ast.parse(text)
        imported = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
        used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("pa", "pyarrow")}
        missing = {f"pyarrow.{name}" for name in used & apart} - imported
        assert not missing, f"{path} uses {sorted(missing)} without importing it"
