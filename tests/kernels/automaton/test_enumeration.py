"""The automaton on label streams without any condition, against the definitions in plain Python."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_cep_kernels.automaton.dead_ends import ALWAYS, NEVER, StateKeys, new_dead_ends
from gpu_cep_kernels.automaton.enumeration import (
    CandidateWindows,
    Mode,
    Shortcuts,
    enumerate_matches,
)
from gpu_cep_kernels.rules.cut import KEEP_ALL, KEEP_DISJOINT, KEEP_EARLIEST
from gpu_cep_kernels.rules.path_arrays import deepen_path, new_path
from gpu_cep_kernels.rules.tables import (
    ColumnBank,
    Conditions,
    ConditionTable,
    Criteria,
    EventTable,
    MatchTable,
    PathState,
    ProgramTable,
    Status,
    Strategy,
)
from tests.kernel_cases.jumps import no_jumps
from tests.kernel_cases.tables import aggregate_table
from tests.kernels import reference
from tests.kernels.streams import Negated, divided_problems, negated_problems, of_characters, problems, widened

NONE, NO_WORDS = np.empty(0, np.int64), np.empty(0, np.uint64)
NO_PROGRAMS = ProgramTable(np.empty((0, 4), np.int64), NONE, np.empty(0), np.empty(0, np.uint8), 1)
NO_COLUMNS = ColumnBank(np.empty((0, 0), np.int64), np.empty((0, 0)), NO_WORDS, NO_WORDS, np.empty((0, 0, 0)))
NO_JUMPS = no_jumps()
AMPLE = 1 << 20


def no_conditions(variables):
    none = ConditionTable(**dict.fromkeys(ConditionTable._fields, NONE))
    table = none._replace(
        first=np.zeros(variables + 1, np.int64),
        alone=np.zeros(variables, np.bool_),
        part_first=np.zeros(1, np.int64),
        closing_first=np.zeros(1, np.int64),
        roles=1,
    )
    return Conditions(table, aggregate_table(variables, ()), NO_PROGRAMS, NO_COLUMNS, 0)


def counts_of(pattern):
    """States where nothing reads what is bound: they differ in how often variables are bound."""
    enough = np.array([least if most is None else most for least, most in pattern.quantifiers], np.int64)
    weight = np.cumprod([1, *(enough[:-1] + 1)]).astype(np.int64)
    lone = [ALWAYS if most == 1 and pattern.level.count(level) == 1 else NEVER for most, level in zip(enough, pattern.level, strict=True)]
    return StateKeys(enough, weight, NONE, NONE, NO_WORDS, np.array(lone, np.int64))


class Enumeration:
    """A run over all starts of a stream that goes on as often as it stops."""

    def __init__(
        self, pattern, stream, strategy, negations=(), counting=False, path=64, matches=AMPLE // 64, steps=AMPLE, places=0,
        kept=KEEP_ALL, limit=1, order=None,
    ):  # fmt: skip
        self.pattern, self.strategy, self.counting, self.steps = pattern, strategy, counting, steps
        self.variables = len(pattern.level)
        arrays = stream.arrays(self.variables)
        minimal = (1 << pattern.sizes[0]) - 1
        self.starts = np.array([e for e, label in enumerate(stream.labels) if label & minimal], np.int64)
        if order is not None:
            self.starts = self.starts[order(len(self.starts))]
        self.ends = arrays.ends[self.starts]
        self.events = EventTable(arrays.next_events.after, arrays.next_events.occurrence, stream.successors())
        self.conditions = no_conditions(self.variables + len(negations))
        self.negations = stream.negation_table(self.variables, negations)
        self.run = new_path(path, pattern.table(), self.conditions, kept, limit)
        counts, totals = np.empty((matches, self.variables), np.int32), np.zeros(len(self.starts), np.int64)
        self.output = MatchTable(np.empty(matches, np.int64), counts, np.empty(64 * matches, np.int64), totals)
        self.dead_ends = new_dead_ends(counts_of(pattern), places, 0)
        self.found, self.stops = [], set()

    def finished(self):
        status = None
        while status != Status.FINISHED:
            status = enumerate_matches(
                CandidateWindows(self.starts, self.ends),
                self.events,
                Criteria(self.pattern.table(), self.conditions, self.negations),
                Shortcuts(NO_JUMPS, self.dead_ends),
                Mode(self.strategy.value, self.counting, self.steps),
                self.run,
                self.output,
            )
            self.stops.add(status)
            self._take()
            if status == Status.PATH_FULL:
                self.run = deepen_path(self.run)
        return self

    def _take(self):
        taken, filled = int(self.run.state[PathState.MATCHES]), int(self.run.state[PathState.EVENTS])
        starts, counts, events, _ = self.output
        place = 0
        for m in range(taken):
            bindings = []
            for count in counts[m].tolist():
                bindings.append(tuple(events[place : place + count].tolist()))
                place += count
            assert self.starts[starts[m]] == min(sum(bindings, ()))
            self.found.append(tuple(bindings))
        assert place == filled
        self.run.state[[PathState.MATCHES, PathState.EVENTS]] = 0

    def matches(self):
        return sorted(self.found, key=lambda match: (first(match), last(match), match))


def first(match):
    return min(sum(match, ()))


def last(match):
    return max(sum(match, ()))


NAMES = {Strategy.NEXT: "next", Strategy.ANY: "any", Strategy.CONTIGUOUS: "contiguous", Strategy.ROBUST: "robust"}
STRATEGIES = pytest.mark.parametrize("strategy", NAMES, ids=NAMES.get)


@STRATEGIES
def test_matches_of_label_streams(strategy):
    @given(divided_problems(max_size=14 if strategy in (Strategy.NEXT, Strategy.CONTIGUOUS) else 8))
    def check(problem):
        assert Enumeration(*problem, strategy).finished().matches() == reference.matches(*problem, strategy)

    check()


@STRATEGIES
def test_negations_on_label_streams(strategy):
    @given(negated_problems())
    def check(problem):
        pattern, stream, negations = problem
        assert Enumeration(pattern, stream, strategy, negations).finished().matches() == reference.matches(
            pattern, stream, strategy, negations
        )

    check()


@STRATEGIES
def test_labels_of_two_words(strategy):
    @given(problems(max_size=6), st.sampled_from([60, 62, 64]))
    def check(problem, variables):
        wide = widened(*problem, variables)
        assert Enumeration(*wide, strategy).finished().matches() == reference.matches(*wide, strategy)

    check()


@STRATEGIES
def test_an_enumeration_goes_on_after_every_stop(strategy):
    @given(negated_problems(max_size=8), st.integers(1, 3), st.integers(1, 3), st.integers(0, 3))
    def check(problem, path, matches, steps):
        pattern, stream, negations = problem
        stopped = Enumeration(pattern, stream, strategy, negations, path=path, matches=matches, steps=steps).finished()
        assert stopped.matches() == reference.matches(pattern, stream, strategy, negations)

    check()


@pytest.mark.parametrize("places", [1, 4, 256])
def test_dead_ends_are_kept_across_stops(places):
    @given(problems(max_size=10), st.integers(1, 3), st.integers(0, 3))
    def check(problem, path, steps):
        stopped = Enumeration(*problem, Strategy.ROBUST, path=path, matches=1, steps=steps, places=places).finished()
        assert stopped.matches() == reference.matches(*problem, Strategy.ROBUST)

    check()


def test_a_dead_end_of_the_robust_strategy_is_searched_once():
    """Behind each run of b's there is one c, where there must be two."""
    problem = of_characters("a" + "b" * 14 + "c", (1, 1, 1), ((1, 1), (1, None), (2, 2)))
    searched, kept = (Enumeration(*problem, Strategy.ROBUST, places=places).finished() for places in (0, 16))
    assert searched.found == kept.found == []
    assert kept.run.state[PathState.STEPS] < 100 < 10_000 < searched.run.state[PathState.STEPS]


def test_it_stops_for_room_and_for_steps():
    problem = of_characters("aabb", (1, 1), ((1, None), (1, 1)))
    cramped = Enumeration(*problem, Strategy.ANY, path=1, matches=1).finished()
    assert cramped.stops == {Status.FINISHED, Status.OUTPUT_FULL, Status.PATH_FULL}
    hasty = Enumeration(*problem, Strategy.ANY, steps=0).finished()
    assert hasty.stops == {Status.FINISHED, Status.STEPS_SPENT}
    assert cramped.matches() == hasty.matches() == reference.matches(*problem, Strategy.ANY)


@STRATEGIES
def test_counting_counts_the_matches_of_each_start(strategy):
    @given(negated_problems(max_size=8))
    def check(problem):
        pattern, stream, negations = problem
        counted = Enumeration(pattern, stream, strategy, negations, counting=True, matches=1, steps=5).finished()
        firsts = [min(sum(match, ())) for match in reference.matches(pattern, stream, strategy, negations)]
        assert counted.output.totals.tolist() == [firsts.count(start) for start in counted.starts]
        assert counted.found == []

    check()


WORDS = [
    # a word, the sizes of the sets, quantifiers, and the matches of skip-till-next: the bindings' places
    ("ab", (1, 1), ((1, 1), (1, 1)), [((0,), (1,))]),
    ("a--b", (1, 1), ((1, 1), (1, 1)), [((0,), (3,))]),
    ("ba", (1, 1), ((1, 1), (1, 1)), []),
    ("ba", (2,), ((1, 1), (1, 1)), [((1,), (0,))]),
    ("aab", (1, 1), ((1, None), (1, 1)), [((0, 1), (2,)), ((1,), (2,))]),
    ("abb", (1, 1), ((1, 1), (1, None)), [((0,), (1, 2))]),
    ("aab", (1, 1), ((2, 2), (1, 1)), [((0, 1), (2,))]),
    ("aaab", (1, 1), ((1, 2), (1, 1)), [((0, 1), (3,)), ((1, 2), (3,)), ((2,), (3,))]),
    ("abab", (1, 1), ((1, 1), (1, 1)), [((0,), (1,)), ((2,), (3,))]),
    ("bacb", (2, 1), ((1, 1), (1, None), (1, 1)), [((1,), (0,), (2,))]),
    ("cab", (1, 1, 1), ((1, 1),) * 3, []),
]  # fmt: skip


@pytest.mark.parametrize(("word", "sizes", "quantifiers", "found"), WORDS)
def test_words(word, sizes, quantifiers, found):
    assert Enumeration(*of_characters(word, sizes, quantifiers), Strategy.NEXT).finished().matches() == found


@pytest.mark.parametrize(
    ("word", "parts", "found"),
    [
        ("aab", 1, [((0, 1), (2,)), ((1,), (2,))]),
        ("aa-b", 1, []),
        ("aa-b", 2, [((1,), (3,))]),
        ("a-ab", 1, [((2,), (3,))]),
        ("a-a-b-", 2, [((0, 2), (4,)), ((2,), (4,))]),
    ],
)
def test_contiguous_words(word, parts, found):
    pattern, stream = of_characters(word, (1, 1), ((1, None), (1, 1)))
    assert Enumeration(pattern, replace(stream, parts=parts), Strategy.CONTIGUOUS).finished().matches() == found


def test_robust_passes_over_what_leads_to_no_match():
    """The event at 0 lies in the window before the b at 2, but not in that before the b at 4."""
    pattern, stream = of_characters("-ab-b", (1, 1), ((1, 1), (1, 1)), length=3)
    rules_out = (Negated((0,), before=(0,)),)
    found = {strategy: Enumeration(pattern, stream, strategy, rules_out).finished().matches() for strategy in NAMES}
    assert found == {Strategy.NEXT: [], Strategy.ANY: [((1,), (4,))], Strategy.CONTIGUOUS: [], Strategy.ROBUST: [((1,), (4,))]}


@pytest.mark.parametrize(
    ("negated", "found"),
    [
        (Negated((2,), after=(0,), before=(1,)), []),
        (Negated((1, 3), after=(0,), before=(1,)), [((0, 1), (3,)), ((1,), (3,))]),
        (Negated((0,), before=(0,)), [((0, 1), (3,))]),
        (Negated((4,), after=(1,)), []),
        (Negated((5,), after=(1,)), [((0, 1), (3,))]),
        (Negated((0,)), [((0, 1), (3,))]),
    ],
    ids=["between", "bound events", "before", "after", "after, at the end of one window", "beside"],
)
def test_scopes_of_negations(negated, found):
    pattern, stream = of_characters("aa-b--", (1, 1), ((1, None), (1, 1)), length=4)
    assert Enumeration(pattern, stream, Strategy.NEXT, (negated,)).finished().matches() == found


def test_a_word_whose_letters_may_be_skipped():
    matches = Enumeration(*of_characters("aabb", (1, 1), ((1, None), (1, 1))), Strategy.ANY).finished().matches()
    assert matches == [((0,), (2,)), ((0, 1), (2,)), ((0,), (3,)), ((0, 1), (3,)), ((1,), (2,)), ((1,), (3,))]


def test_steps_do_not_grow_with_irrelevant_events():
    def steps(gap):
        enumeration = Enumeration(*of_characters(f"a{'-' * gap}b", (1, 1), ((1, 1), (1, 1)), length=10_000), Strategy.NEXT).finished()
        return int(enumeration.run.state[PathState.STEPS])

    assert steps(0) == steps(5_000) > 0


def test_a_dead_end_of_skip_till_any_is_seen_before_it_is_walked():
    """No c follows: without looking ahead every subset of the a's would be tried."""
    pattern, stream = of_characters("a" * 40 + "b", (1, 1, 1), ((1, None), (1, 1), (1, 1)))
    enumeration = Enumeration(pattern, stream, Strategy.ANY).finished()
    assert enumeration.found == []
    assert enumeration.run.state[PathState.STEPS] < 100


def is_ruled_out(match, other, kept):
    """Whether `other` completes before the match, and begins with its first event (or later, where matches must not overlap)."""
    before = (last(other), first(other), other) < (last(match), first(match), match)
    return before and (first(other) == first(match) or (kept == KEEP_DISJOINT and first(other) > first(match)))


def disjoint(matches):
    """Those that do not overlap, in the order in which they complete."""
    taken = []
    for match in sorted(matches, key=lambda match: (last(match), first(match), match)):
        if all(first(match) > last(other) for other in taken):
            taken.append(match)
    return taken


@STRATEGIES
@pytest.mark.parametrize("kept", [KEEP_DISJOINT, KEEP_EARLIEST], ids=["disjoint", "earliest"])
def test_a_cut_spares_only_matches_that_are_never_taken(strategy, kept):
    @given(negated_problems(max_size=8), st.randoms(use_true_random=False), st.integers(1, 3), st.integers(0, 3))
    def check(problem, random, path, steps):
        pattern, stream, negations = problem

        def order(starts):
            return np.array(random.sample(range(starts), starts), np.int64)

        wanted = reference.matches(pattern, stream, strategy, negations)
        cut = Enumeration(pattern, stream, strategy, negations, path=path, matches=2, steps=steps, kept=kept, order=order)
        found = cut.finished().matches()
        assert set(found) <= set(wanted)
        assert {match for match in wanted if not any(is_ruled_out(match, other, kept) for other in wanted)} <= set(found)
        if kept == KEEP_DISJOINT:
            assert disjoint(found) == disjoint(wanted)

    check()


def first_of_starts(matches, limit):
    """At most so many matches of each first event, the first ones by last event and bindings."""
    ordered = sorted(matches, key=lambda match: (first(match), last(match), match))
    return [match for place, match in enumerate(ordered) if sum(first(other) == first(match) for other in ordered[:place]) < limit]


@STRATEGIES
@pytest.mark.parametrize("limit", [1, 2, 3, 7])
def test_a_cut_spares_only_matches_behind_the_first_ones_of_their_start(strategy, limit):
    @given(negated_problems(max_size=8), st.integers(1, 3), st.integers(0, 3), st.booleans())
    def check(problem, path, steps, counting):
        pattern, stream, negations = problem
        wanted = reference.matches(pattern, stream, strategy, negations)
        kept = first_of_starts(wanted, limit)
        cut = Enumeration(
            pattern, stream, strategy, negations, counting=counting, path=path, matches=2, steps=steps, kept=KEEP_EARLIEST, limit=limit
        ).finished()
        if counting:
            least = [sum(first(match) == start for match in kept) for start in cut.starts.tolist()]
            assert np.minimum(cut.output.totals, limit).tolist() == least
        else:
            assert set(cut.found) <= set(wanted)
            assert first_of_starts(cut.found, limit) == kept

    check()


@pytest.mark.parametrize("text", ["abbbbbbc", "abdbdbbdc", "aabbcbdbdcc"])
def test_of_matches_that_end_together_the_first_by_bindings_are_kept(text):
    for sizes in ((1, 1, 1), (1, 2)) if "d" not in text else ((1, 1, 1, 1), (1, 2, 1)):
        quantifiers = ((1, None),) * sum(sizes)
        pattern, stream = of_characters(text, sizes, quantifiers)
        every = Enumeration(pattern, stream, Strategy.ANY).finished().found
        for limit in range(1, 40):
            cut = Enumeration(pattern, stream, Strategy.ANY, kept=KEEP_EARLIEST, limit=limit).finished()
            assert first_of_starts(cut.found, limit) == first_of_starts(every, limit)


@pytest.mark.parametrize("counting", [False, True])
def test_of_exponentially_many_matches_few_are_found(counting):
    """A hundred b's have more than 10**30 subsets."""
    pattern, stream = of_characters("a" + "b" * 100 + "c", (1, 1, 1), ((1, 1), (1, None), (1, 1)), length=200)
    cut = Enumeration(pattern, stream, Strategy.ANY, counting=counting, kept=KEEP_EARLIEST, limit=5).finished()
    assert cut.run.state[PathState.STEPS] < 20_000
    if counting:
        assert cut.output.totals.tolist() == [5]
    else:
        assert first_of_starts(cut.found, 5) == [((0,), (1,), (101,)), *(((0,), tuple(range(1, n)), (101,)) for n in range(3, 7))]


def test_a_complete_run_is_no_match_because_its_extension_is_cut_off():
    """Of two partitions, the run of the first takes the last event, too, behind the end of the other one's match."""
    pattern, stream = of_characters("aabbb-", (1, 1), ((1, 1), (1, None)))
    found = {
        kept: Enumeration(pattern, replace(stream, parts=2), Strategy.CONTIGUOUS, kept=kept, order=lambda starts: np.arange(starts)[::-1])
        for kept in (KEEP_ALL, KEEP_DISJOINT)
    }
    assert found[KEEP_ALL].finished().matches() == [((0,), (2, 4)), ((1,), (3,))]
    assert found[KEEP_DISJOINT].finished().matches() == [((1,), (3,))]
