"""Automata on plain label streams, strategy by strategy: patterns and streams of letters, and the matches of docs/strategies.md."""

from __future__ import annotations

import pytest

from tests import letters

STRATEGIES = {
    "next": "skip_till_next_match",
    "any": "skip_till_any_match",
    "strict": "strict_contiguity",
    "partition": "partition_contiguity",
    "robust": "robust_skip_till_next_match",
}
OF_EVERY_STRATEGY = ("ses_automaton", "brute_force")


@pytest.fixture(params=[*OF_EVERY_STRATEGY, "auto"])
def match(request):
    """The matches of a pattern over letters, by the automaton, by definition, and by whatever the engine chooses."""

    def found(pattern, stream, strategy="next", **options):
        return letters.match(pattern, stream, strategy=STRATEGIES[strategy], algorithm=request.param, **options)

    return found


def test_next_takes_the_first_event_that_fits(match):
    assert match("SEQ(A, B)", "ACBB") == ["A0 B2"]
    assert match("SEQ(A, B+)", "ABBC") == ["A0 B1 B2"]
    assert match("SEQ(A, B+, C)", "ABDBCC") == ["A0 B1 B3 C4"]
    assert match("SEQ(A, B)", "AAB") == ["A0 B2", "A1 B2"]
    assert match("SEQ(A, B, C)", "ABCABC") == ["A0 B1 C2", "A3 B4 C5"]


def test_any_takes_every_event_that_fits_or_passes_it_over(match):
    assert match("SEQ(A, B)", "ACBB", "any") == ["A0 B2", "A0 B3"]
    assert match("SEQ(A, B+)", "ABB", "any") == ["A0 B1", "A0 B1 B2", "A0 B2"]
    assert match("SEQ(A, B, C)", "ABBC", "any") == ["A0 B1 C3", "A0 B2 C3"]


def test_contiguity_passes_nothing_over(match):
    for strategy in ("strict", "partition"):
        assert match("SEQ(A, B)", "ACBAB", strategy) == ["A3 B4"]
        assert match("SEQ(A, B+)", "ABBCB", strategy) == ["A0 B1 B2"]
        assert match("SEQ(A, B+, C)", "ABBCABDC", strategy) == ["A0 B1 B2 C3"]


def test_robust_passes_over_what_leads_to_no_match(match):
    """The first b leaves no c in its window, or is not followed by what the pattern wants; the second one does."""
    assert match("SEQ(A a, B b, C c) WHERE c.ts <= b.ts + 1", "ABBC", "next") == []
    assert match("SEQ(A a, B b, C c) WHERE c.ts <= b.ts + 1", "ABBC", "robust") == ["a0 b2 c3"]
    assert match("SEQ(A, B, C)", "ABBC", "robust") == ["A0 B1 C3"]


def test_robust_steps_back_where_nothing_was_led_to_alone(match):
    """From each a the earliest way to a match, and no other."""
    text = "SEQ(A a, B b, C c, D d) WHERE c.ts <= b.ts + 2 AND d.ts <= c.ts + 1"
    assert match(text, "ABCBCDCD", "robust") == ["a0 b3 c4 d5"]
    assert match(text, "ABCBCDCD", "next") == []


def test_sets_are_in_any_order(match):
    assert match("SEQ(AND(A, B), C)", "BAC") == ["A1 B0 C2"]
    assert match("SEQ(AND(A, B), C)", "ABAC") == ["A0 B1 C3", "A2 B1 C3"]
    assert match("SEQ(AND(A, B), C)", "ABCAC", "any") == ["A0 B1 C2", "A0 B1 C4", "A3 B1 C4"]


def test_alternatives_and_options(match):
    assert match("SEQ(A, OR(B, C))", "ACAB") == ["A0 C1", "A0 B3", "A2 B3"]
    assert match("SEQ(A, B?, C)", "AC", "strict") == ["A0 C1"]
    assert match("SEQ(A, B?, C)", "ABC", "strict") == ["A0 B1 C2"]


def test_bounds_of_iterations(match):
    assert match("SEQ(A, B{2,3})", "ABABBBB") == ["A0 B1 B3 B4", "A2 B3 B4 B5"]
    assert match("SEQ(A, B{2})", "ABA") == []
    assert match("SEQ(A, B{2}, C)", "ABBBC", "strict") == []


def test_negations_look_between_their_neighbours_alone(match):
    assert match("SEQ(A, NOT(X), B)", "XABX") == ["A1 B2"]
    assert match("SEQ(A, NOT(X), B)", "AXB") == []
    assert match("SEQ(A, NOT(X), B)", "AXAB") == ["A2 B3"]


def test_negations_at_the_ends_look_as_far_as_the_window(match):
    assert match("SEQ(A, NOT(X)) WITHIN 2", "ABX") == []
    assert match("SEQ(A, NOT(X)) WITHIN 2", "ABBX") == ["A0"]
    assert match("SEQ(NOT(X), A) WITHIN 2", "XBA") == []
    assert match("SEQ(NOT(X), A) WITHIN 2", "XBBA") == ["A3"]


def test_windows_hold_their_last_moment(match):
    assert match("SEQ(A, B) WITHIN 2", "AXB") == ["A0 B2"]
    assert match("SEQ(A, B) WITHIN 2", "AXXB") == []
    assert match("SEQ(A, B+) WITHIN 2", "ABBB") == ["A0 B1 B2"]


def test_windows_of_events_count_them_all(match):
    assert match("SEQ(A, B) WITHIN 3 EVENTS", "AXB") == ["A0 B2"]
    assert match("SEQ(A, B) WITHIN 3 EVENTS", "AXXB") == []


def test_ties(match):
    """Events of one time do not follow one another, unless their positions say so."""
    assert match("SEQ(A, B)", "[AB]B", ties="strict") == ["A0 B2"]
    assert match("SEQ(A, B)", "[AB]B", ties="position") == ["A0 B1"]
    assert match("SEQ(A, NOT(X), B)", "[AX]B", ties="strict") == ["A0 B2"]
    assert match("SEQ(A, NOT(X), B)", "[AX]B", ties="position") == []
    assert match("AND(A, B)", "[AB]", ties="strict") == ["A0 B1"]


def test_after_match(match):
    assert match("SEQ(A, B)", "AABAB", after_match="skip_past_last") == ["A0 B2", "A3 B4"]
    assert match("SEQ(A, B)", "AABAB", "any", after_match="skip_to_next") == ["A0 B2", "A1 B2", "A3 B4"]


def test_streams_of_letters_are_read_as_they_are_written():
    assert letters.events("A[BC]D").to_pydict() == {"ts": [0, 1, 1, 3], "type": ["A", "B", "C", "D"]}
    assert letters.match("SEQ(A first, A second)", "AXA") == ["first0 second2"]
