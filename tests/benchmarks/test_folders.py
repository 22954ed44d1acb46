"""The benchmarks' folders import one way."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import benchmarks

ROOT = Path(benchmarks.__file__).parent
BELOW: dict[str, set[str]] = {"record": set(), "workloads": set(), "rules": {"record"}, "baselines": {"record", "workloads"}}
BELOW |= {"row_patterns": {"record", "baselines"}}
BELOW |= {folder: {"record", "workloads", "baselines"} for folder in ("spark", "papers")}
BELOW |= {"gpu": {"record", "workloads", "baselines", "row_patterns"}}
BELOW |= {"suite": {"record", "workloads", "baselines", "spark"}, "kinds": {"record", "workloads", "baselines"}}
BELOW |= {"planner": {"record", "papers"}, "rivals": {"record", "workloads", "baselines", "spark", "kinds", "row_patterns"}}


def imported(path: Path) -> Iterator[str]:
    """The folders from which a module imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("benchmarks."):
            yield node.module.split(".")[1]


def test_imports_run_down() -> None:
    folders = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert folders == set(BELOW)
    faults = [
        f"{path.relative_to(ROOT)} imports from {other}"
        for folder in folders
        for path in (ROOT / folder).rglob("*.py")
        if ".environments" not in path.parts
        for other in imported(path)
        if other != folder and other not in BELOW[folder]
    ]
    assert not faults, "\n".join(faults)
