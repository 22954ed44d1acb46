"""The examples in the docs and in public docstrings do what they show."""

from __future__ import annotations

import doctest
import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from gpu_cep.analysis import types
from gpu_cep.analysis.bind import bind
from gpu_cep.analysis.bind_intervals import bind_intervals
from gpu_cep.analysis.functions import ALIASES, HOST_FUNCTIONS, KERNEL_FUNCTIONS
from gpu_cep.analysis.options import Options
from gpu_cep.analysis.types import Attribute, Schema
from gpu_cep.lang.ast_intervals import IntervalQuery
from gpu_cep.lang.parser import parse
from gpu_cep.plan.event_plan import EventPlan
from gpu_cep.plan.interval_plan import IntervalPlan
from gpu_cep.plan.planner import INTERVAL_RULES, RULES, draft_interval_plan, draft_plan
from gpu_cep.plan.settings import Settings

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = [
    *("algorithms.md", "builder.md", "coming-from.md", "composition.md", "compressed.md", "intervals.md", "joins.md", "language.md"),
    *("mapping.md", "report.md", "row-patterns.md", "rule-sets.md", "strategies.md", "streams.md", "timelines.md"),
]
_TYPES = {"ts": types.INTEGER, "type": types.STRING, "k": types.INTEGER, "x": types.INTEGER, "y": types.FLOAT, "s": types.STRING}
SCHEMA = Schema(tuple(Attribute(name, kind) for name, kind in _TYPES.items()))

MODULES = [
    *("gpu_cep", "gpu_cep.api", "gpu_cep.bound_events", "gpu_cep.errors", "gpu_cep.rule_sets.matching"),
    *("gpu_cep.rule_sets.rules", "gpu_cep.sql_answers"),
    *(f"gpu_cep.lang.builder.{name}" for name in ("expressions", "functions", "patterns")),
]


@pytest.mark.parametrize("page", PAGES)
def test_pages(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # pages write files
    result = doctest.testfile(str(DOCS / page), module_relative=False, encoding="utf-8")
    assert result.attempted
    assert not result.failed


@pytest.mark.parametrize("module", MODULES)
def test_docstrings(module: str) -> None:
    result = doctest.testmod(import_module(module))
    assert result.attempted
    assert not result.failed


def draft(text: str, **settings: Any) -> EventPlan | IntervalPlan:
    """The plan of a query before any rule, over columns of each type."""
    query = parse(text)
    if isinstance(query, IntervalQuery):
        return draft_interval_plan(bind_intervals(query, SCHEMA, Options()), Settings(**settings))
    return draft_plan(bind(query, SCHEMA, Options(), ranking=settings.get("order_matches_by")), Settings(**settings))


@pytest.mark.parametrize("rule", dict.fromkeys((*RULES, *INTERVAL_RULES)))
def test_rules(rule: Callable[..., Any]) -> None:
    """Each rule of the planner shows what it finds and what it leaves."""
    module = import_module(rule.__module__)
    (shown,) = doctest.DocTestFinder(recurse=False).find(rule, rule.__name__, globs={**vars(module), "draft": draft})
    result = doctest.DocTestRunner().run(shown)
    assert any("draft(" in example.source for example in shown.examples)
    assert result.attempted
    assert not result.failed


def test_all_scalar_functions_are_listed() -> None:
    text = (DOCS / "language.md").read_text(encoding="utf-8")
    section = text.split("### Scalar functions\n")[1].split("\n## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    listed = re.findall(r"`(\w+)\(", " ".join(rows))
    assert sorted(set(listed)) == sorted({*KERNEL_FUNCTIONS, *HOST_FUNCTIONS, *ALIASES})
