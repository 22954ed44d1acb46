"""The longest runs of starts without a match on label streams, against the definition in plain Python."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_cep_kernels.automaton.dead_ends import new_dead_ends
from gpu_cep_kernels.automaton.enumeration import CandidateWindows, Mode, Shortcuts
from gpu_cep_kernels.automaton.longest_runs import Longest, find_longest_runs
from gpu_cep_kernels.rules.path_arrays import deepen_path, double_rows, new_path
from gpu_cep_kernels.rules.tables import Criteria, EventTable, MatchTable, PathState, Status, Strategy
from tests.kernels import reference
from tests.kernels.automaton.test_enumeration import AMPLE, NO_JUMPS, counts_of, no_conditions
from tests.kernels.streams import divided_problems, negated_problems, of_characters

RUNS = pytest.mark.parametrize("strategy", [Strategy.NEXT, Strategy.CONTIGUOUS])


def longest_runs(pattern, stream, strategy, negations=(), *, path=64, room=AMPLE, steps=AMPLE):
    """The runs by start, which windows have a match, and why the search stopped."""
    variables, arrays = len(pattern.level), stream.arrays(len(pattern.level))
    minimal = (1 << pattern.sizes[0]) - 1
    starts = np.array([e for e, label in enumerate(stream.labels) if label & minimal], np.int64)
    conditions = no_conditions(variables + len(negations))
    run = new_path(path, pattern.table(), conditions)
    counts, totals = np.empty((len(starts), variables), np.int32), np.zeros(len(starts), np.int64)
    found = MatchTable(np.empty(len(starts), np.int64), counts, np.empty(room, np.int64), totals)
    longest, stops, status = Longest(*np.zeros((3, 1), np.int64)), set(), None
    while status != Status.FINISHED:
        status = find_longest_runs(
            CandidateWindows(starts, arrays.ends[starts]),
            EventTable(arrays.next_events.after, arrays.next_events.occurrence, stream.successors()),
            Criteria(pattern.table(), conditions, stream.negation_table(variables, negations)),
            Shortcuts(NO_JUMPS, new_dead_ends(counts_of(pattern), 0, 0)),
            Mode(strategy.value, False, steps),
            run,
            longest,
            found,
        )
        stops.add(status)
        run = deepen_path(run) if status == Status.PATH_FULL else run
        found = found._replace(events=double_rows(found.events)) if status == Status.OUTPUT_FULL else found
    number = int(run.state[PathState.MATCHES])
    bounds = np.concatenate([[0], np.cumsum(counts[:number].ravel())]).tolist()
    events = found.events.tolist()
    bindings = [tuple(events[low:high]) for low, high in zip(bounds, bounds[1:], strict=False)]
    runs = [tuple(bindings[m * variables : (m + 1) * variables]) for m in range(number)]
    assert [min(sum(each, ())) for each in runs] == starts[found.starts[:number]].tolist()
    return runs, starts[totals > 0].tolist(), stops


@RUNS
def test_longest_runs_of_label_streams(strategy):
    @given(negated_problems(max_size=12))
    def check(problem):
        pattern, stream, negations = problem
        runs, matched, _ = longest_runs(pattern, stream, strategy, negations)
        assert runs == reference.longest_runs(pattern, stream, strategy, negations)
        assert matched == sorted({min(sum(match, ())) for match in reference.matches(pattern, stream, strategy, negations)})

    check()


@RUNS
def test_runs_stay_in_their_part(strategy):
    @given(divided_problems(max_size=12))
    def check(problem):
        assert longest_runs(*problem, strategy)[0] == reference.longest_runs(*problem, strategy)

    check()


@RUNS
def test_a_search_for_runs_goes_on_after_every_stop(strategy):
    @given(negated_problems(max_size=8), st.integers(1, 3), st.integers(1, 3), st.integers(0, 3))
    def check(problem, path, room, steps):
        pattern, stream, negations = problem
        runs, *_ = longest_runs(pattern, stream, strategy, negations, path=path, room=room, steps=steps)
        assert runs == reference.longest_runs(pattern, stream, strategy, negations)

    check()


def test_it_stops_for_room_and_for_steps():
    problem = of_characters("aabb", (1, 1, 1), ((1, None), (1, None), (1, 1)))
    runs, matched, stops = longest_runs(*problem, Strategy.NEXT, path=1, room=1, steps=0)
    assert runs == [((0, 1), (2, 3), ()), ((1,), (2, 3), ())]
    assert matched == []
    assert stops == {Status.FINISHED, Status.PATH_FULL, Status.OUTPUT_FULL, Status.STEPS_SPENT}


def test_of_runs_of_one_length_the_one_that_lacks_least_is_kept():
    """Both variables fit both events. By bindings the run that binds both to b would come first."""
    pattern, stream = of_characters("ab", (2,), ((1, 2), (3, 3)))
    both = replace(stream, labels=(0b11, 0b11))
    assert longest_runs(pattern, both, Strategy.NEXT)[0] == [((0,), (1,)), ((1,), ())]


def test_of_runs_that_lack_as_little_the_one_that_ends_first_is_kept():
    """By bindings the run that binds the start to the first variable would come first."""
    pattern, stream = of_characters("a-ab", (2, 1), ((1, 1), (1, 1), (1, 1)))
    either = replace(stream, labels=(0b011, 0, 0b001, 0b010))
    assert longest_runs(pattern, either, Strategy.NEXT)[0][0] == ((2,), (0,), ())
