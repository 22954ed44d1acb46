"""The planner's benchmark and the fit of its constants, at a small size."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import gpu_cep

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def planner(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return import_module("planner")


@pytest.fixture
def costs(planner: ModuleType) -> ModuleType:
    return import_module("costs")


def small_case(planner: ModuleType) -> Any:
    query = "PATTERN SEQ(A a, B b, C c) WHERE a.x < b.x WITHIN 20"
    options = {"output": "indices", "strategy": "skip_till_any_match"}
    return planner.Case("joins", "small", (query,), lambda: planner.joins.events_of(planner.joins.QUESTIONS[0], 400), options)


def test_every_algorithm_and_the_choice_are_timed(planner: ModuleType) -> None:
    timing = planner.timed(small_case(planner), patience=0.01)
    assert set(timing.seconds) == {"auto", *planner.NAMED}
    assert timing.regret == timing.seconds["auto"] / min(timing.seconds[name] for name in planner.NAMED)
    assert set(timing.chosen) <= set(planner.NAMED)


def test_cases_that_all_give_up_are_left_out(planner: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planner, "BOUNDS", {"max_matches": 1})
    assert planner.timed(small_case(planner), patience=0.0) is None


def test_cases_have_names_of_their_own(planner: ModuleType) -> None:
    names = [(case.part, case.name) for part in planner.PARTS.values() for case in part()]
    assert len(names) > 300
    assert len(set(names)) == len(names)


def test_the_page_says_whether_the_aim_is_met(planner: ModuleType) -> None:
    near = planner.Timing("a", "near", {"auto": 1.2, "nfab": 1.0, "ses_automaton": 4.0}, ("nfab",))
    far = planner.Timing("b", "far", {"auto": 3.5, "nfab": 1.0}, ("nfab",))
    assert "never beyond 3 ×: met." in planner.markdown([near], "here")
    page = planner.markdown([near] * 20 + [far], "here")
    assert "never beyond 3 ×: not met." in page
    assert "| all | 21 | 95.2% | 1.20 | 1.20 | 3.50 |" in page
    assert page.index("b: far") < page.index("a: near")


def test_costs_that_explain_measurements_are_found(costs: ModuleType) -> None:
    random = np.random.default_rng(3)
    work = random.random((50, 3)) * [1e3, 1e4, 1e2]
    assert costs.fitted(work, work @ [5.0, 0.2, 40.0]) == pytest.approx([5.0, 0.2, 40.0])
    # a kind of work that would have to cost less than nothing costs nothing
    assert costs.fitted(work, np.maximum(work @ [5.0, 0.2, -10.0], 1.0))[2] == 0.0


def test_work_is_what_the_profile_counted(planner: ModuleType, costs: ModuleType) -> None:
    found = list(costs.measured(small_case(planner)))
    assert {algorithm for algorithm, _, _ in found} == set(planner.NAMED)
    profile = gpu_cep.Profile()
    case = small_case(planner)
    table = gpu_cep.match(case.events(), case.queries[0], algorithm="lazy_chain", profile=profile, **case.options)
    work = next(work for algorithm, work, _ in found if algorithm == "lazy_chain")
    assert work["steps"] == profile.counts["steps"] > 0
    assert work["bound"] == 3 * work["matches"] == 3 * table.num_rows
