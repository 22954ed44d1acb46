"""The choice among algorithms, batch by batch: what is chosen, by which expectations, and when it is made anew."""

from __future__ import annotations

import time
from types import SimpleNamespace
from unittest.mock import Mock, patch

import numpy as np
import pyarrow as pa
import pytest

import gpu_cep
from gpu_cep import errors
from gpu_cep.engine import run
from gpu_cep.engine.adaptive import algorithms, choice
from gpu_cep.engine.adaptive.algorithms import ALGORITHMS, CostedAlgorithm
from gpu_cep.engine.matchers.nfab import nfab
from gpu_cep.plan.costs import Estimate

RISING = "PATTERN SEQ(A a, B b+, C c) WHERE b[i].x > b[i-1].x WITHIN 20000"
ANY = "PATTERN SEQ(A a, B b, C c) WHERE skip_till_any_match {{ {} }} WITHIN {}"


def events(size, shares, seed=3, **columns):
    random = np.random.default_rng(seed)
    types = pa.array(random.choice(list("ABCD")[: len(shares)], size, p=shares)).dictionary_encode()
    return pa.table({"ts": range(size), "type": types, "x": random.random(size), "k": random.integers(0, 500, size), **columns})


def answers(table, query, **options):
    profile = gpu_cep.Profile()
    gpu_cep.match(table, query, profile=profile, **{"output": "count", "threads": 1, "prune": False, **options})
    return profile.answers


def chosen(table, query, **options):
    return {answer.expected.algorithm for answer in answers(table, query, **options)}


def test_rare_events_are_where_a_chain_begins():
    assert chosen(events(60_000, (0.6, 0.399, 0.001)), ANY.format("a.x < b.x", 100)) == {"lazy_chain"}


def test_equal_values_in_long_windows_are_joined():
    assert chosen(events(60_000, (0.4, 0.3, 0.3)), ANY.format("a.k = b.k AND b.k = c.k", 5_000)) == {"join_tree"}


def test_short_windows_are_walked():
    query = "PATTERN SEQ(A a, B b+, C c) WHERE a.x < c.x WITHIN 20"
    assert chosen(events(60_000, (0.2, 0.3, 0.3, 0.2)), query) == {"ses_automaton"}


def test_runs_that_every_start_would_walk_again_are_merged():
    size = 20_000
    slowly = np.arange(size) / size
    assert chosen(events(size, (0.3, 0.699, 0.001), x=slowly), RISING) == {"nfab"}


def test_a_trace_looks_at_no_event_behind_it(monkeypatch):
    """It makes the offers of a pass over the whole batch, whose windows reach beyond the events that it takes."""
    traced, sizes = [], []
    sample, new_pass = nfab.Nfab.sample, nfab._new_pass

    def sampled(self, batch, branch, starts, end, offers):
        found = sample(self, batch, branch, starts, end, offers)
        whole = new_pass(self.search, batch, branch, starts, None).trace(end, offers)
        traced.append((found[-1].tolist(), whole[-1].tolist()))
        return found

    def made(*given):
        passing = new_pass(*given)
        sizes.append(len(passing.earliest))
        return passing

    monkeypatch.setattr(nfab.Nfab, "sample", sampled)
    monkeypatch.setattr(nfab, "_new_pass", made)
    size = 20_000
    assert answers(events(size, (0.3, 0.699, 0.001), x=np.arange(size) / size), RISING)
    ((found, whole),) = traced
    assert found == whole
    assert 0 < sizes[0] < size / 2


@pytest.mark.parametrize("query", [ANY.format("a.x < b.x", 30), ANY.format("a.k = b.k", 2_000), ANY.format("b.x > c.x AND a.x < c.x", 12)])
def test_what_is_expected_is_near_to_what_comes(query):
    (answer,) = answers(events(60_000, (0.3, 0.3, 0.4)), query)
    assert answer.expected.exact
    assert answer.matches > 100
    assert 0.4 < answer.expected.matches / answer.matches < 2.5
    if answer.expected.steps:
        assert 0.4 < answer.expected.steps / answer.steps < 2.5


@pytest.mark.parametrize(
    ("strategy", "condition", "weighed"),
    [
        ("skip_till_any_match", "a.x - b.x > 0.9", 1),
        ("skip_till_any_match", "a.x > b.x", 0),
        ("skip_till_next_match", "a.x - b.x > 0.9", 0),
    ],
)
def test_programs_that_judge_what_is_passed_over_are_weighed(strategy, condition, weighed):
    table, query = events(20_000, (0.1, 0.45, 0.45)), f"PATTERN SEQ(A a, B b, C c) WHERE {strategy} {{ {condition} }} WITHIN 100"
    walks = []
    for program in (0.0, 1_000.0):
        with patch.object(algorithms, "PROGRAM", program), patch.object(algorithms, "PASS_BATCH", 1e12):
            (answer,) = answers(table, query)
        walks += [each for each in (answer.expected, *answer.others) if each.algorithm == "ses_automaton"]
    cheap, dear = walks
    assert cheap.steps == dear.steps > 0
    assert dear.cost - cheap.cost == pytest.approx(1_000 * weighed * cheap.steps)


def test_what_cannot_be_cheaper_is_not_tried():
    (answer,) = answers(events(60_000, (0.6, 0.3999, 0.0001)), ANY.format("a.x < b.x", 100))
    assert answer.expected.algorithm == "lazy_chain"
    assert {other.algorithm for other in answer.others if not other.exact} >= {"nfab", "ses_automaton"}
    assert all(other.cost > 0 for other in answer.others)


def test_nothing_is_tried_where_a_variable_has_no_event():
    table = events(1_000, (0.5, 0.5))
    with patch.object(choice.ALGORITHMS["ses_automaton"].__class__, "estimate", side_effect=AssertionError, create=True):
        (answer,) = answers(table, ANY.format("a.x < b.x", 100))
    assert (answer.matches, answer.steps, answer.expected.exact) == (0, 0, False)


@pytest.mark.parametrize(("size", "tried"), [(35, False), (60, True)])
def test_nothing_is_tried_where_few_events_fit_each_variable(size, tried):
    """Up to about 2,000 combinations cost less than a sample."""
    (answer,) = answers(events(size, (0.34, 0.33, 0.33)), ANY.format("a.x < b.x", 1_000))
    assert answer.expected.exact == tried
    others = [(each.cost, each.algorithm) for each in answer.others]
    assert tried or (answer.expected.cost, answer.expected.algorithm) <= min(others)


def small_batches(size):
    return patch.object(run, "cut_batches", lambda plan, ordered, threads: plain(plan, ordered, size))


plain = run.cut_batches


def test_batches_of_other_frequencies_choose_anew():
    size = 8_192
    parts = [events(size, shares, seed) for seed, shares in enumerate([(0.5, 0.499, 0.001), (0.3, 0.3, 0.4)])]
    table = pa.concat_tables(parts).set_column(0, "ts", pa.array(range(2 * size)))
    with small_batches(size):
        first, second = answers(table, ANY.format("a.x < b.x", 40))
    assert first.expected.order.startswith("c")
    assert second.expected != first.expected


def test_batches_alike_share_a_choice():
    with small_batches(4_096):
        found = answers(events(16_384, (0.3, 0.3, 0.4)), ANY.format("a.x < b.x", 40))
    assert len(found) == 4
    assert len({answer.expected.cost / (answer.expected.steps or 1.0) for answer in found}) < 4


def test_the_rest_of_a_stream_is_answered_as_what_came_before():
    with small_batches(4_096), patch.object(choice, "cheapest", wraps=choice.cheapest) as choosing:
        found = answers(events(8_192 + 400, (0.3, 0.3, 0.4)), ANY.format("a.x < b.x", 40))
    assert len(found) == 3
    assert choosing.call_count == 1


def test_a_larger_batch_makes_a_choice_of_its_own():
    with small_batches(4_096), patch.object(choice, "cheapest", wraps=choice.cheapest) as choosing:
        found = answers(events(5_000, (0.3, 0.3, 0.4), k=np.arange(5_000) >= 400), ANY.format("a.x < b.x", 40), partition_by="k")
    assert [answer.events for answer in found] == [400, 2_500, 2_100]
    assert choosing.call_count == 2


def test_what_threads_share_is_chosen_apart(monkeypatch):
    """Estimates are of time, and so of as many threads as share a batch."""
    monkeypatch.setattr("gpu_cep.engine.adaptive.statistics.count_parts", lambda batch: 2 if batch.low else 1)
    with small_batches(4_096), patch.object(choice, "cheapest", wraps=choice.cheapest) as choosing:
        found = answers(events(4_096 + 400, (0.3, 0.3, 0.4)), ANY.format("a.x < b.x", 40), threads=2)
    assert len(found) == 2
    assert choosing.call_count == 2


def slowly(choose):
    """The same, so slow that another thread asks meanwhile."""

    def chosen(*arguments):
        time.sleep(0.2)
        return choose(*arguments)

    return chosen


def test_threads_wait_for_a_choice_that_suits_them():
    with small_batches(2_048), patch.object(choice, "cheapest", side_effect=slowly(choice.cheapest)) as choosing:
        found = answers(events(8_192, (0.3, 0.3, 0.4)), ANY.format("a.x < b.x", 40), threads=2)
    assert len(found) == 4
    assert choosing.call_count == 1


def test_a_choice_that_fails_fails_for_all_that_wait_for_it():
    choosing = patch.object(choice, "cheapest", side_effect=slowly(Mock(side_effect=errors.EventError("no choice"))))
    with small_batches(2_048), choosing as chosen, pytest.raises(errors.EventError, match="no choice"):
        answers(events(8_192, (0.3, 0.3, 0.4)), ANY.format("a.x < b.x", 40), threads=2)
    assert chosen.call_count == 1


def test_values_that_drift_make_a_choice_anew():
    """Frequencies stay, but a condition that nearly nothing satisfied comes to hold nearly always."""
    size = 16_384
    values = np.concatenate([np.arange(size)[::-1], np.arange(size), np.arange(size)]) / size
    table = events(3 * size, (0.3, 0.3, 0.4), x=values)
    with small_batches(size):
        first, second, third = answers(table, ANY.format("a.x < b.x AND b.x < c.x", 60), algorithm="auto")
    assert second.steps > 4 * first.steps
    assert second.expected.steps < second.steps / 4
    assert 0.4 < third.expected.matches / third.matches < 2.5


def test_matches_that_negations_rule_out_make_no_choice_anew():
    """How many these are is not known before, nor then."""
    size = 20_000
    table = events(3 * size, (0.2, 0.2, 0.3, 0.3))
    query = "PATTERN SEQ(A a, NOT(D d), B b, C c) WHERE skip_till_any_match { a.k = b.k AND b.x < c.x } WITHIN 400"
    with small_batches(size), patch.object(choice, "cheapest", side_effect=choice.cheapest) as choosing:
        found = answers(table, query)
    assert {answer.expected.algorithm for answer in found} == {"join_tree"}
    assert all(4 * answer.steps < answer.expected.steps for answer in found)
    assert choosing.call_count == 1


def test_trials_are_not_charged_to_the_budget():
    table, query = events(5_000, (0.3, 0.3, 0.4)), ANY.format("a.x < b.x", 30)
    (answer,) = answers(table, query)
    assert answers(table, query, max_steps=answer.steps, max_matches=answer.matches)[0].matches == answer.matches


@pytest.mark.parametrize("query", [ANY.format("a.n + b.n > 0 AND b.x < c.x", 500), RISING.replace("b[i].x", "b[i].n + b[i].n")])
def test_an_overflow_in_a_trial_is_left_to_the_run(query):
    table = events(5_000, (0.3, 0.3, 0.4), n=np.full(5_000, 2**62))
    with pytest.raises(errors.EventError, match=r"integer overflow in .*, in the window that starts at ts=\d"):
        gpu_cep.match(table, query)


def test_each_branch_chooses_for_itself():
    table = events(40_000, (0.5, 0.4, 0.0995, 0.0005))
    query = "PATTERN OR(SEQ(A a, B b), SEQ(C c, D d)) WHERE skip_till_any_match { a.x < b.x AND c.x < d.x } WITHIN 30"
    found = answers(table, query)
    assert [answer.branch for answer in found] == [0, 1]
    assert sum(answer.matches for answer in found) == gpu_cep.match(table, query, output="indices").num_rows


def test_an_algorithm_that_is_asked_for_is_not_weighed():
    (answer,) = answers(events(5_000, (0.3, 0.3, 0.4)), ANY.format("a.x < b.x", 30), algorithm="nfab")
    assert (answer.expected.algorithm, answer.expected.exact, answer.others) == ("nfab", False, ())
    assert answer.steps > 0


def test_steps_are_counted():
    profile = gpu_cep.Profile()
    gpu_cep.match(events(5_000, (0.3, 0.3, 0.4)), ANY.format("a.x < b.x", 30), profile=profile)
    assert profile.counts["steps"] == sum(answer.steps for answer in profile.answers) > 0


def test_explain_may_run_the_query():
    table = events(60_000, (0.6, 0.399, 0.001))
    text = str(gpu_cep.explain(table, ANY.format("a.x < b.x", 100), output="count", threads=1, run=True))
    assert "ran        events 60,000 → filtered 60,000 → pivots" in text
    assert "  lazy_chain in one batch of 60,000 events, bound in the order c, b, a\n    took      " in text
    assert "    expected  " in text
    assert "    against   ses_automaton: at least " in text
    kinds = [table["type"].to_pylist().count(kind) for kind in "ABC"]
    assert "  events by properties alone: a {:,}, b {:,}, c {:,}\n".format(*kinds) in text


def test_explain_tells_which_variable_no_event_fits():
    table = pa.table({"ts": [1, 2, 3], "type": ["A", "A", "B"], "x": [1, 2, 3]})
    text = str(gpu_cep.explain(table, "PATTERN SEQ(A a, C c, AND(NOT(B n), B b)) WHERE b.x > 3 WITHIN 9", run=True))
    assert "events by properties alone: a 2, c 0, b 0, n 1" in text


def test_explain_counts_the_events_of_more_variables_than_a_word_has_bits():
    pattern = f"PATTERN SEQ({', '.join(f'T{v} v{v}' for v in range(70))})"
    table = pa.table({"ts": range(140), "type": [f"T{min(place, 69)}" for place in range(140)]})
    fitting = gpu_cep.explain(table, pattern, run=True).fitting
    assert fitting == {f"v{v}": 71 if v == 69 else 1 for v in range(70)}


def test_explain_runs_over_events_only():
    with pytest.raises(errors.PatternError, match="a query runs over events; give explain"):
        gpu_cep.explain("PATTERN SEQ(A a, B b)", run=True)
    with pytest.raises(errors.UnsupportedError, match=r"run=True\) is not supported with algorithm='brute_force'"):
        gpu_cep.explain(events(10, (0.5, 0.5)), "PATTERN SEQ(A a, B b)", algorithm="brute_force", run=True)


def test_what_threads_share_takes_a_part_of_the_time():
    """A batch of one huge stream is divided among threads by all algorithms but one pass."""
    statistics = SimpleNamespace(workers=4)
    for parallel, nanoseconds in ((True, 25.0), (False, 100.0)):
        algorithm = CostedAlgorithm(lambda _: 100.0, lambda _: Estimate("nfab", 100.0), Mock(), parallel)
        assert algorithm.least_time(statistics) == nanoseconds
        assert algorithm.estimated_time(statistics).cost == nanoseconds
    assert [name for name, algorithm in ALGORITHMS.items() if not algorithm.parallel] == ["nfab"]
