"""The planner's benchmark and the fit of its constants, at a small size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpu_cep
from benchmarks.planner import choices, costs, joins


def small_case() -> Any:
    query = "PATTERN SEQ(A a, B b, C c) WHERE a.x < b.x WITHIN 20"
    options = {"output": "indices", "strategy": "skip_till_any_match"}
    return choices.Case("joins", "small", (query,), lambda: joins.events_of(joins.QUESTIONS[0], 400), options)


def test_every_algorithm_and_the_choice_are_timed() -> None:
    timing = choices.timed(small_case(), patience=0.01)
    assert set(timing.seconds) == {"auto", *choices.NAMED}
    assert timing.regret == timing.seconds["auto"] / min(timing.seconds[name] for name in choices.NAMED)
    assert set(timing.chosen) <= set(choices.NAMED)


def test_cases_that_all_give_up_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choices, "BOUNDS", {"max_matches": 1})
    assert choices.timed(small_case(), patience=0.0) is None


def test_cases_have_names_of_their_own() -> None:
    names = [(case.part, case.name) for part in choices.PARTS.values() for case in part()]
    assert len(names) > 300
    assert len(set(names)) == len(names)


def test_the_page_says_whether_the_aim_is_met() -> None:
    near = choices.ChoiceTimes("a", "near", {"auto": 1.2, "nfab": 1.0, "ses_automaton": 4.0}, ("nfab",))
    far = choices.ChoiceTimes("b", "far", {"auto": 3.5, "nfab": 1.0}, ("nfab",))
    assert "never beyond 3 ×: met." in choices.markdown([near], "here")
    page = choices.markdown([near] * 20 + [far], "here")
    assert "never beyond 3 ×: not met." in page
    assert "| all | 21 | 95.2% | 1.20 | 1.20 | 3.50 |" in page
    assert page.index("b: far") < page.index("a: near")


def test_costs_that_explain_measurements_are_found() -> None:
    random = np.random.default_rng(3)
    work = random.random((50, 3)) * [1e3, 1e4, 1e2]
    assert costs.fitted(work, work @ [5.0, 0.2, 40.0]) == pytest.approx([5.0, 0.2, 40.0])
    # a kind of work that would have to cost less than nothing costs nothing
    assert costs.fitted(work, np.maximum(work @ [5.0, 0.2, -10.0], 1.0))[2] == 0.0


def test_work_is_what_the_profile_counted() -> None:
    found = list(costs.measured(small_case()))
    assert {algorithm for algorithm, _, _ in found} == set(choices.NAMED)
    profile = gpu_cep.Profile()
    case = small_case()
    table = gpu_cep.match(case.events(), case.queries[0], algorithm="lazy_chain", profile=profile, **case.options)
    work = next(work for algorithm, work, _ in found if algorithm == "lazy_chain")
    assert work["steps"] == profile.counts["steps"] > 0
    assert work["bound"] == 3 * work["matches"] == 3 * table.num_rows
