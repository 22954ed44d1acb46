"""`import gpu_cep` is cheap: whoever only writes a query waits for no compiler and no Spark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
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
HEAVY = {
    *("gpu_cep.lang.builder", "numba", "llvmlite", "pyspark", "cupy", "cudf", "hypothesis"),
    *("pandas", "polars", "duckdb", "matplotlib", "rich", "typer"),
}
LIMIT = 0.5  # seconds of processor time, so that a busy machine does not count


def probe(module: str = "gpu_cep") -> dict[str, object]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "kernels", ROOT / "spark_glue")))}
    run = subprocess.run([sys.executable, "-c", PROBE, module], env=environment, capture_output=True, text=True, check=True, timeout=120)
    return json.loads(run.stdout)


def test_import_is_quick() -> None:
    probe()  # the first import may have to write byte code
    assert min(probe()["seconds"] for _ in range(3)) <= LIMIT


@pytest.mark.parametrize("name", ["RunReport", "gpu_match", "rapids_conf", "register", "sql_conf"])
def test_what_needs_spark_says_how_to_install_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "gpu_cep_spark", raising=False)
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(gpu_cep.EngineUnavailable, match=r"need PySpark, .*: pip install 'gpu_cep\[spark\]'"):
        getattr(gpu_cep, name)


def test_the_package_under_spark_tells_its_names() -> None:
    pytest.importorskip("pyspark")
    spark_glue = import_module("gpu_cep_spark")
    assert set(spark_glue.__all__) <= set(dir(spark_glue))
    assert all(getattr(spark_glue, name) is not None for name in spark_glue.__all__)


def test_import_loads_nothing_heavy() -> None:
    assert HEAVY.isdisjoint(probe()["modules"])


@pytest.mark.parametrize(
    ("module", "absent"),
    [
        ("gpu_cep_spark.matching", {"pandas", "matplotlib", "duckdb"}),
        # what a Python worker loads when its first task begins
        ("gpu_cep_spark.worker", {"pandas", "matplotlib", "gpu_cep_spark.matching", "gpu_cep_spark.sql", "gpu_cep_spark.jobs"}),
    ],
)
def test_spark_loads_what_it_needs(module: str, absent: set[str]) -> None:
    assert absent.isdisjoint(probe(module)["modules"])
