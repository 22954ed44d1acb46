"""Trees of joins over label streams, without conditions, against the definitions in plain Python; and how large their tables grow."""

from __future__ import annotations

from itertools import product
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_cep.engine.events.label_words import count_by_variable
from gpu_cep.engine.matchers.joins import workplace
from gpu_cep.engine.matchers.joins.execution import BatchJoins
from gpu_cep.engine.matchers.joins.negations import JoinNegations
from gpu_cep.engine.matchers.joins.workplace import cpu_workplace
from gpu_cep.engine.windows.batch_events import input_buffers
from gpu_cep.plan.join_trees import Join, Single, joined_variables
from gpu_cep_kernels.phase_one.input_buffers import Streams
from gpu_cep_kernels.rules.path_arrays import new_path
from gpu_cep_kernels.rules.tables import ColumnBank, Conditions
from tests.kernel_cases.tables import aggregate_table, condition_table, negation_table, program_table
from tests.kernels.streams import LabelStream, Pattern, label_streams, label_words, patterns

SINGLE = patterns(st.just((1, 1)))
SEQUENCE = Pattern((1, 1, 1), ((1, 1),) * 3)
# Every event may be bound to any variable, and the window holds them all.
DENSE = LabelStream((7,) * 60, tuple(range(60)), 60)

NO_WORDS = np.empty(0, np.uint64)
NO_COLUMNS = ColumnBank(np.empty((0, 0), np.int64), np.empty((0, 0)), NO_WORDS, NO_WORDS, np.empty((0, 0, 0)))


@st.composite
def trees(draw, variables):
    """A tree of joins of these variables, which may stand in any order."""
    if len(variables) == 1:
        return Single(variables[0])
    cut = draw(st.integers(1, len(variables) - 1))
    return Join(draw(trees(variables[:cut])), draw(trees(variables[cut:])))


@st.composite
def joined_streams(draw):
    pattern = draw(SINGLE)
    variables = range(len(pattern.level))
    return pattern, draw(label_streams(len(variables))), draw(trees(draw(st.permutations(variables))))


class Account:
    """What was looked at, call by call."""

    def __init__(self):
        self.candidates = []

    def spend(self, candidates, start):
        self.candidates.append(candidates)


def joining(pattern, stream, own, account, exclusive=False, threads=1):
    variables = len(pattern.level)
    labels, clock = label_words(stream.labels, variables), np.array(stream.times, np.uint64)
    conditions = Conditions(condition_table(variables, ()), aggregate_table(variables, ()), program_table(()), NO_COLUMNS, 0)
    streams = Streams(np.array([0, len(clock)]), clock, clock, np.uint64(stream.length), stream.strict)
    buffers = input_buffers(labels, count_by_variable(labels, variables))
    runs, no_negation = (new_path(variables, pattern.table(), conditions),), negation_table([], np.zeros(1, np.int64), clock, clock, 0)
    none = JoinNegations(pattern.table(), conditions, no_negation, np.zeros((0, variables), np.bool_), runs, account)
    where, listed = cpu_workplace(conditions, threads), buffers.events
    return BatchJoins(pattern.table(), conditions.table, buffers, streams, conditions, listed, own, exclusive, account, none, where)


def by_definition(pattern, stream, own):
    """All bindings of distinct events in order within a window, of which the first is before `own`."""
    events = [[e for e, label in enumerate(stream.labels) if label >> v & 1] for v in range(len(pattern.level))]
    return sorted(
        binding
        for binding in product(*events)
        if len(set(binding)) == len(binding)
        and min(binding) < own
        and stream.times[max(binding)] - stream.times[min(binding)] <= stream.length
        and all(stream.is_before(binding[u], binding[v]) for v in range(len(binding)) for u in pattern.before(v))
    )


def rows(tables, tree):
    found = [table.events[np.argsort(joined_variables(tree))].T for table in tables]
    return sorted(tuple(row) for table in found for row in table.tolist())


@given(joined_streams(), st.integers(0, 9))
def test_any_tree_gives_all_bindings(drawn, own):
    pattern, stream, tree = drawn
    assert rows(joining(pattern, stream, own, Account()).tables(tree), tree) == by_definition(pattern, stream, own)


@given(joined_streams(), st.integers(1, 5), st.integers(1, 5), st.integers(1, 3))
def test_neither_the_size_of_tables_nor_threads_change_anything(drawn, candidates, size, threads):
    pattern, stream, tree = drawn
    with patch.multiple(workplace, _CANDIDATES=candidates, _ROWS=size, _INDEXED=size):
        assert rows(joining(pattern, stream, 9, Account(), threads=threads).tables(tree), tree) == by_definition(pattern, stream, 9)


@given(SINGLE.flatmap(lambda pattern: st.tuples(st.just(pattern), label_streams(len(pattern.level), exclusive=True))))
def test_events_of_one_variable_each_need_no_comparison(drawn):
    pattern, stream = drawn
    tree = Single(0)
    for v in range(1, len(pattern.level)):
        tree = Join(tree, Single(v))
    assert rows(joining(pattern, stream, 9, Account(), exclusive=True).tables(tree), tree) == by_definition(pattern, stream, 9)


@pytest.mark.parametrize(
    "tree", [Join(Join(Single(0), Single(1)), Single(2)), Join(Single(0), Join(Single(1), Single(2)))], ids=["left", "right"]
)
def test_no_table_outgrows_its_bounds(tree):
    """Of 60 events that fit everywhere there are 34,220 sequences of three."""
    account = Account()
    with patch.multiple(workplace, _CANDIDATES=100, _ROWS=50, _INDEXED=40):
        sizes = [len(table.first) for table in joining(SEQUENCE, DENSE, 60, account).tables(tree)]
    # a block of the right side takes one chunk more than its limit
    assert max(account.candidates) <= 140
    assert max(sizes) <= 140
    assert sum(sizes) == 34_220


def test_on_many_threads_a_call_has_a_row_for_each_as_far_as_its_bounds_go():
    """Each row of the left table has up to 59 candidates, more than a call may look at on one thread."""
    account, tree = Account(), Join(Single(0), Single(1))
    with patch.multiple(workplace, _CANDIDATES=10, _SHARED_CANDIDATES=200):
        found = rows(joining(Pattern((1, 1), ((1, 1),) * 2), DENSE, 60, account, threads=16).tables(tree), tree)
    assert len(found) == 1_770
    assert 140 < max(account.candidates) <= 200


def test_rows_that_cannot_begin_a_match_in_time_are_not_joined():
    account = Account()
    (table,) = joining(SEQUENCE, DENSE, 1, account).tables(Join(Single(0), Single(1)))
    assert table.first.tolist() == [0] * 59
    assert sum(account.candidates) == 59
