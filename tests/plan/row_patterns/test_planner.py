"""Plans of row patterns: which conditions are label bits, since the pattern fixes how far they read."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_cep as cep
from gpu_cep.plan.row_patterns.automaton import ACCEPT, RowAutomaton
from gpu_cep.plan.row_patterns.borders import at_borders, rows_of_others
from gpu_cep.plan.row_patterns.distances import NO_ROW, fixed_distances, rows_back
from gpu_cep.plan.row_patterns.places import RowPlace
from tests.drawn.row_patterns import patterns
from tests.plan.row_patterns.test_automaton import automaton_of


@pytest.mark.parametrize(
    ("pattern", "place", "distances"),
    [
        ("A B C", RowPlace((0,)), {0: 0, 1: -1, 2: -2}),
        ("A B C", RowPlace((0,), from_first=True), {0: 0, 1: -1, 2: -2}),
        ("A B C", RowPlace(None, from_first=True, offset=1), {1: 0, 2: -1}),
        ("A B C", RowPlace(None, offset=1, distance=2), {1: 1, 2: 1}),
        ("A+ B", RowPlace((0,)), {0: 0, 1: -1}),
        ("A+ B", RowPlace((0,), from_first=True), {}),
        ("A B+", RowPlace((0,)), {0: 0}),
        ("A B+ A", RowPlace((1,), distance=1), {1: 1}),
        ("(A B | B A) C", RowPlace((0, 1)), {0: 0, 1: 0, 2: -1}),
        ("(A B | B A) C", RowPlace((0,)), {0: 0}),
        ("A{3} B", RowPlace((0,), offset=2), {1: -3}),
        ("A B? C", RowPlace((0,), from_first=True), {0: 0, 1: -1}),
        ("A B", RowPlace((1,)), {1: 0}),
        ("A B", RowPlace((0,), final=True), {}),
        ("A B", RowPlace((0,), inside=True), {}),
    ],
)
def test_distances(pattern, place, distances):
    assert fixed_distances(automaton_of(pattern), place) == distances


def ways_into(automaton: RowAutomaton, most: int) -> list[tuple[int, ...]]:
    """The states of all ways of up to so many rows."""
    ways = [(q,) for q in {*automaton.starts_first, *automaton.starts_later} if q != ACCEPT]
    for way in ways:
        if len(way) < most:
            ways += [(*way, q) for q in automaton.moves[way[-1]] if q != ACCEPT]
        if len(ways) > 4000:
            break
    return ways


@given(patterns, st.sampled_from([None, (0,), (1,), (0, 1)]), st.booleans(), st.integers(0, 2), st.integers(-1, 1))
def test_distances_hold_on_all_ways(pattern, members, from_first, offset, distance):
    automaton = automaton_of(pattern)
    found = fixed_distances(automaton, RowPlace(members, from_first=from_first, offset=offset, distance=distance))
    seen: dict[int, set[int | None]] = {}
    for way in ways_into(automaton, 6):
        rows = [d for d, q in enumerate(way) if members is None or automaton.variable[q] in members]
        rows = rows if from_first else rows[::-1]
        back = len(way) - 1 - rows[offset] if offset < len(rows) else None
        seen.setdefault(automaton.variable[way[-1]], set()).add(None if back is None else distance - back)
    for variable, distances in seen.items():
        if variable in found:
            assert distances == {found[variable]}
    # what differs only on longer ways is left out as well
    assert set(found) <= set(seen)


@given(patterns, st.lists(st.sampled_from([None, (0,), (1,), (0, 1)]), min_size=1, max_size=2), st.booleans(), st.integers(0, 2))
def test_rows_back_are_those_of_all_ways(pattern, sets, from_first, offset):
    automaton = automaton_of(pattern)
    places = [RowPlace(members, from_first=from_first, offset=offset) for members in sets]
    for variable in set(automaton.variable):
        seen = set()
        for way in ways_into(automaton, 6):
            if automaton.variable[way[-1]] == variable:
                seen.add(tuple(back_in(automaton, way, place) for place in places))
        found = rows_back(automaton, places, variable)
        assert not found or seen <= found


SETS = st.sampled_from([(0,), (1,), (0, 1), (2,)])


@given(patterns, SETS, st.booleans())
def test_what_is_at_a_border_or_counted_is_so_on_all_ways(pattern, members, from_first):
    automaton = automaton_of(pattern)
    place = RowPlace(members, from_first=from_first)
    whole = [way for way in ways_into(automaton, 6) if ACCEPT in automaton.moves[way[-1]] or automaton.ends[way[-1]]]
    for way in ways_into(automaton, 6):
        running = at_borders(automaton, place, at_end=False)
        assert back_in(automaton, way, running) == back_in(automaton, way, place)
    for way in whole:
        final = at_borders(automaton, place, at_end=True)
        assert back_in(automaton, way, final) == back_in(automaton, way, place)
    less = rows_of_others(automaton, members)
    if less is not None and whole:
        assert {sum(automaton.variable[q] not in members for q in way) for way in whole} == {less}


@pytest.mark.parametrize(
    ("pattern", "members", "first", "last", "less"),
    [
        ("A B+ C", (0,), True, False, None),
        ("A B+ C", (2,), False, True, None),
        ("A B+ C", (1,), False, False, 2),
        ("A+ B", (0,), False, False, 1),
        ("A+ B+", (1,), False, True, None),
        ("(A | B) C", (0, 1), True, False, 1),
        ("(A | B) C", (0,), False, False, None),
        ("A B A", (0,), False, True, 1),
        ("A B? C", (0, 2), False, True, None),
        ("A?", (0,), True, False, None),
        ("A B $", (1,), False, True, 1),
    ],
)
def test_last_rows_at_borders_and_rows_of_others(pattern, members, first, last, less):
    automaton = automaton_of(pattern)
    found = at_borders(automaton, RowPlace(members), at_end=True)
    assert (found == RowPlace(None, from_first=True), found == RowPlace(None)) == (first, last)
    assert rows_of_others(automaton, members) == less


def back_in(automaton: RowAutomaton, way: tuple[int, ...], place: RowPlace) -> int:
    """How many rows before the last one of a way the row of a place lies."""
    rows = [d for d, q in enumerate(way) if place.members is None or automaton.variable[q] in place.members]
    rows = rows if place.from_first else rows[::-1]
    return len(way) - 1 - rows[place.offset] if place.offset < len(rows) else NO_ROW


IN_A_RUN = "(LAST(D.price, 1) IS NULL AND D.price < S.price) OR D.price < LAST(D.price, 1)"


@pytest.mark.parametrize(
    ("pattern", "define", "told"),
    [
        ("S D+ U", f"D AS {IN_A_RUN}", "by rows at -1, 0"),
        ("S D+ U", "D AS D.price < LAST(D.price, 1) OR LAST(D.price, 1) IS NULL AND D.price < S.price", "by rows at -1, 0"),
        ("S D+ U", "D AS coalesce(price < LAST(D.price, 1), price < LAST(S.price))", None),
        # the first row of D need not be behind S, nor have a value
        ("S X? D+", f"D AS {IN_A_RUN}", None),
        ("S D+", "D AS price < LAST(D.price, 1) OR LAST(D.price, 1) IS NULL", None),
        ("S D+", "D AS volume < LAST(D.volume, 1) OR LAST(D.price, 1) IS NULL AND volume < S.volume", None),
        ("S D+ U D+", f"D AS {IN_A_RUN}", None),
        ("(S D+)+", f"D AS {IN_A_RUN}", None),
        # several are judged one by one
        ("S D+", f"D AS volume > 0 AND ({IN_A_RUN}) AND count(*) < 9", "by rows at -1, 0"),
    ],
)
def test_what_says_the_same_on_every_way_is_lifted(pattern, define, told):
    ticks = pa.table({"ts": [1], "price": [1.0], "volume": [2]})
    explained = str(cep.explain(ticks, f"MATCH_RECOGNIZE (ORDER BY ts MEASURES count(*) AS n PATTERN ({pattern}) DEFINE {define})"))
    labels, _, reading = explained.partition("conditions that read the match")
    lifted = [line for line in labels.splitlines() if line.startswith("  D: ") and "LAST(D" in line]
    assert [line.rpartition(", by")[2] for line in lifted] == ([] if told is None else [told.removeprefix("by")])
    assert ("LAST(D" in reading.partition("pattern ")[0]) is (told is None)
