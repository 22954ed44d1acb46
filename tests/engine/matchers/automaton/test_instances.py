"""The bounds of the thesis on automaton instances (section 4.6), on the steps that the engine's automaton makes.

An instance takes at most one step for each event of its match window, and so
the automaton makes at most |W| · |Ω| steps in a window, plus one for each
instance that finds no event left, where |Ω| is the number of its instances
(section 4.6: O(|E| · |W| · |Ω|)). ``max_steps`` is the engine's own count.
Each set B is followed by a variable that fits every event, in the place of the
thesis' special transition ε; all events are in one window, which starts at
each of them, and `backtracking` rules none of them out beforehand.
"""

from __future__ import annotations

from math import factorial

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_cep as cep

EPSILON = "any"
TYPES = st.text("ABC", min_size=1, max_size=9)
LETTERS = "ABCD"


def exclusive(sizes, quantified):
    """Sets whose variables are pairwise mutually exclusive (Def. 4.4): each has a type of its own."""
    return [f"{LETTERS[v]} v{v}{'+' if v < quantified else ''}" for v in range(sizes)]


def overlapping(size, quantified):
    """Sets whose variables fit the same events."""
    return [f"v{v}{'+' if v < quantified else ''}" for v in range(size)]


def match(types, members, epsilon=True, **options):
    """The matches of ⟨B, {ε}⟩ under skip till next match."""
    declared = f"AND({', '.join(members)})" if len(members) > 1 else members[0]
    pattern = f"SEQ({declared}, {EPSILON})" if epsilon else declared
    events = pa.table({"ts": range(len(types)), "type": list(types)})
    options |= {"strategy": "skip_till_next_match", "algorithm": "backtracking", "output": "indices"}
    return cep.match(events, f"PATTERN {pattern}", **options)


def assert_bounded(types, members, instances, epsilon=True):
    """In no window there are more instances: the windows that start at the events hold what is behind them."""
    steps = sum((length + 1) * instances(length) for length in range(1, len(types) + 1))
    match(types, members, epsilon, max_steps=steps)


@given(TYPES, st.integers(1, 3))
def test_theorem_4_1(types, size):
    """No quantified variables, pairwise exclusive: |Ω| = O(1), here 1 (and by Lemma 4.1 one match of a window at most)."""
    members = exclusive(size, 0)
    assert_bounded(types, members, lambda length: 1)
    starts = [min(row["v0"], *(row[f"v{v}"] for v in range(size))) for row in match(types, members).to_pylist()]
    assert len(starts) == len(set(starts))


@given(TYPES, st.integers(1, 3), st.data())
def test_theorem_4_2(types, size, data):
    """Quantified variables, pairwise exclusive: |Ω| = O(|W|), one more for each event that is read in the accepting state of B."""
    members = exclusive(size, data.draw(st.integers(1, size)))
    assert_bounded(types, members, lambda length: 1 + length)


@given(TYPES, st.integers(1, 4))
def test_theorem_4_3(types, size):
    """No quantified variables, none exclusive: |Ω| = O(|B|!), one for each path through the automaton."""
    assert_bounded(types, overlapping(size, 0), lambda length: factorial(size))


@given(st.text("ABC", min_size=1, max_size=6), st.integers(1, 3), st.data())
def test_theorem_4_4(types, size, data):
    """Quantified variables, none exclusive: O((|B|−1)! · |W|^|B|) with one of them, O(m · (|B|−1)! · m^(|W| · |B|)) with m > 1.

    The proof counts the paths that begin with a quantified variable, of which
    there are most instances; all paths are |B| times as many at most.
    """
    m = data.draw(st.integers(1, size))

    def instances(length):
        one = factorial(size - 1) * length**size
        return size * (one if m == 1 else m * factorial(size - 1) * m ** (length * size))

    assert_bounded(types, overlapping(size, m), instances)


@given(TYPES, st.integers(2, 3))
def test_lemma_4_1_for_a_whole_pattern(types, size):
    """All variables of all sets pairwise exclusive: O(1) instances, quantified or not (section 4.6.2)."""
    assert_bounded(types, exclusive(size, size - 1), lambda length: 1, epsilon=False)


@pytest.mark.parametrize("size", [2, 3, 4, 5])
def test_the_bound_of_theorem_4_3_is_reached(size):
    types = "A" * (size + 1)
    assert match(types, overlapping(size, 0)).num_rows == factorial(size)
    with pytest.raises(cep.MatchLimitExceeded, match="steps"):
        match(types, overlapping(size, 0), max_steps=factorial(size))


def test_the_bound_of_theorem_4_2_is_reached():
    """Each event behind the first goes on with the binding, and ends it, in another instance."""
    assert match("A" * 10, ["A v0+"], max_steps=1_000).num_rows == 10 * 9 // 2


def test_what_theorem_4_4_bounds_grows_exponentially():
    """With m = 2 quantified variables each event doubles the instances of a window."""
    found = [match("A" * length, ["v0+", "v1+"], epsilon=False).num_rows for length in (4, 6, 8)]
    # the window that starts at event i has 2**(length − i) of which two bind one variable only, and so no match
    assert found == [sum(2**left - 2 for left in range(2, length + 1)) for length in (4, 6, 8)]
