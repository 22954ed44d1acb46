"""The step ``overlap``: searches that need not find the matches which ``after_match`` drops."""

from __future__ import annotations

import pyarrow as pa
import pytest

import gpu_cep as cep

ANY, ROBUST = "skip_till_any_match", "robust_skip_till_next_match"
MODES = pytest.mark.parametrize("after_match", ["skip_past_last", "skip_to_next"])


def events(types, **columns):
    return pa.table({"ts": range(len(types)), "type": list(types), **columns})


def ran(table, pattern, **options):
    """The matches as tuples of row numbers, and the counts of the run."""
    profile = cep.Profile()
    found = cep.match(table, f"PATTERN {pattern}", output="indices", profile=profile, **options)
    return [tuple(match.values()) for match in found.to_pylist()], profile.counts


@MODES
@pytest.mark.parametrize("algorithm", ["auto", "ses_automaton", "backtracking"])
def test_one_of_exponentially_many_matches_is_found_at_once(after_match, algorithm):
    """Of 2^60 - 1 matches that end with the first b, each start keeps the one of the least bindings."""
    found, counts = ran(events("A" * 60 + "B" * 5), "SEQ(A a+, B b)", strategy=ANY, after_match=after_match, algorithm=algorithm)
    assert found == ([([0], 60)] if after_match == "skip_past_last" else [([e], 60) for e in range(60)])
    assert counts["steps"] < 100_000


@pytest.mark.parametrize("algorithm", ["ses_automaton", "backtracking", "nfab"])
def test_a_match_ends_the_runs_that_it_overlaps(algorithm):
    """Without a window, and with all matches to be found, each a would take every b and c behind it."""
    types = "AB" + "AABC" * 500
    table = events(types, x=[e if kind == "A" else 0 for e, kind in enumerate(types)])
    pattern, options = "SEQ(A a, B b, C c) WHERE a.x >= c.x", {"strategy": ANY, "algorithm": algorithm, "after_match": "skip_past_last"}
    found, counts = ran(table, pattern, **options)
    assert found == [(0, 1, 5), *((e, e + 2, e + 3) for e in range(6, len(types), 4))]
    assert counts["steps"] < 20 * len(types)
    with pytest.raises(cep.MatchLimitExceeded, match="max_steps"):
        ran(table, pattern, prune=("filter", "chain"), max_steps=20 * len(types), **options)


@pytest.mark.parametrize("algorithm", ["auto", "ses_automaton", "backtracking", "nfab"])
@pytest.mark.parametrize("strategy", ["skip_till_next_match", ANY])
def test_of_matches_with_one_end_the_first_start_is_taken(strategy, algorithm):
    """The second a's match is found first, and ends with the same b as that of the first one."""
    options = {"strategy": strategy, "algorithm": algorithm, "after_match": "skip_past_last"}
    assert ran(events("AAB", x=[1, 1, 2]), "SEQ(A a, B b) WHERE a.x + 0 < b.x", **options)[0] == [(0, 2)]
    assert ran(events("AABB", x=[1, 1, 2, 2]), "SEQ(A a, B b{2}) WHERE a.x + 0 < b.x", **options)[0] == [(0, [2, 3])]


def test_earlier_starts_are_cut_off_by_what_later_ones_find():
    """Only the last a suits a c, the first one; those before would try all of them."""
    table = events("A" * 100 + "C" * 100, x=[*range(100), *range(99, 199)])
    found, counts = ran(table, "SEQ(A a, C c) WHERE a.x + 0 = c.x", after_match="skip_past_last", algorithm="ses_automaton")
    assert found == [(99, 100)]
    assert counts["steps"] < 500


@pytest.mark.parametrize("algorithm", ["ses_automaton", "backtracking", "nfab"])
def test_a_complete_run_is_no_match_because_its_extension_is_cut_off(algorithm):
    """The first a's run takes the last b, too, though it stands behind the end of the second one's match."""
    table, pattern = events("AABBB", x=[1, 2, 1, 2, 1]), "SEQ(A a, B b+) WHERE a.x + 0 = b.x"
    assert ran(table, pattern, algorithm=algorithm)[0] == [(0, [2, 4]), (1, [3])]
    assert ran(table, pattern, algorithm=algorithm, after_match="skip_past_last")[0] == [(1, [3])]


@MODES
def test_ties_of_last_events_are_decided_by_bindings(after_match):
    """All end with the last event; of the variables in the order of the pattern, the first one decides."""
    table = events("AAAA", x=[1, 2, 3, 0])
    pattern = "SEQ(AND(a, b), c) WHERE c.x = 0"
    found, _ = ran(table, pattern, after_match=after_match, strategy=ANY, algorithm="ses_automaton")
    assert found == ran(table, pattern, after_match=after_match, strategy=ANY, algorithm="brute_force")[0]
    assert found[0] == (0, 1, 3)


def test_nothing_is_cut_under_the_robust_strategy():
    """The first b leads to a match, though to one that is dropped: so the first a takes it, and not the second b."""
    table, pattern = events("ABBCABCC", x=[0, 1, 2, 2, 0, 3, 3, 1]), "SEQ(A a, B b, C c) WHERE b.x = c.x"
    assert ran(table, pattern, strategy=ROBUST)[0] == [(0, 1, 7), (4, 5, 6)]
    assert ran(table, pattern, strategy=ROBUST, after_match="skip_past_last")[0] == [(4, 5, 6)]


def explained(**options):
    return cep.explain(events("AB"), "PATTERN SEQ(A a+, B b)", **options)


def test_an_explanation_says_that_searches_are_cut_off():
    assert "overlap    at the first completion" in str(explained(after_match="skip_past_last"))
    assert "overlap" not in str(explained(after_match="skip_past_last", prune=("filter", "chain")))
    assert "overlap" not in str(explained())


def test_auto_leaves_algorithms_out_that_find_all_matches_of_kleene_closure():
    everything = {"ses_automaton", "nfab", "lazy_chain", "lazy_tree"}
    assert set(explained(strategy=ANY).plan.contenders) == everything
    assert set(explained(strategy=ANY, after_match="skip_to_next", prune=False).plan.contenders) == everything
    assert explained(strategy=ANY, after_match="skip_to_next").plan.contenders == ("ses_automaton",)
    assert set(explained(after_match="skip_to_next").plan.contenders) == {"ses_automaton", "nfab"}
