"""The states of patterns whose matches labels decide."""

from __future__ import annotations

import pytest

from gpu_cep.plan.states import MOST_STATES, Transition, state_space


def states(before, quantifiers, tied=False):
    minimum, maximum = zip(*quantifiers, strict=True)
    return state_space(tuple(before), minimum, maximum, tied)


def test_a_sequence_of_repeated_variables():
    space = states([0, 1], [(1, None), (1, None)])
    # nothing, a, a and b
    assert space.transitions == (Transition(0, 0, 1), Transition(1, 0, 1), Transition(1, 1, 2), Transition(2, 1, 2))
    assert space.final == (False, False, True)
    assert space.settled == (0, 1, 2)


def test_an_event_of_the_current_time_has_no_successor_in_it():
    space = states([0, 1], [(1, None), (1, None)], tied=True)
    # nothing, a before the current time, a in it, a and b
    assert space.settled == (0, 1, 1, 3)
    assert [transition.source for transition in space.transitions if transition.variable == 1] == [1, 3]


@pytest.mark.parametrize(
    ("before", "quantifiers", "number"),
    [
        ([0, 0, 0], [(1, 1)] * 3, 8),
        ([0, 1, 3], [(1, 1)] * 3, 4),
        ([0], [(3, None)], 4),
        ([0], [(2, 5)], 6),
        # how many events a closed variable has does not matter
        ([0, 1], [(1, 5), (1, 5)], 1 + 5 + 5),
    ],
)
def test_how_many_there_are(before, quantifiers, number):
    assert len(states(before, quantifiers).final) == number


@pytest.mark.parametrize("tied", [False, True])
def test_transitions_lead_up_or_stay(tied):
    space = states([0, 1, 1, 7], [(1, None), (2, 3), (1, 1), (1, None)], tied)
    assert all(transition.source <= transition.target for transition in space.transitions)
    assert sum(space.final) >= 1


@pytest.mark.parametrize(("before", "quantifiers"), [([0] * 7, [(1, 1)] * 7), ([0], [(10**9, None)]), ([0] * 1000, [(1, 1)] * 1000)])
def test_too_many_are_not_computed(before, quantifiers):
    assert states(before, quantifiers) is None
    assert MOST_STATES < 2**7
