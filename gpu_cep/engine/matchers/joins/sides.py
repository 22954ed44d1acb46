"""Say how the rows of a join's two sides are related, as the tables that kernels read."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from gpu_cep.engine.events.matches import Indices
from gpu_cep_kernels.joins.table_joins import APART, BEFORE, BEHIND, Sides
from gpu_cep_kernels.matches.hashing import HashKeys
from gpu_cep_kernels.rules.scalars import EQ
from gpu_cep_kernels.rules.tables import BY_FLOATS, ConditionTable, PatternTable

Precedence = npt.NDArray[np.bool_]
_NONE: Indices = np.empty(0, np.int64)


def relate_sides(pattern: PatternTable, conditions: ConditionTable, left: list[int], right: list[int], *, exclusive: bool) -> Sides:
    """Return how a table of the variables `left` and one of the variables `right` are related.

    The variables are in the order of their places in the tables. `exclusive`:
    no event satisfies the properties of two variables.
    """
    precedes = pattern.precedes
    before, behind = precedes[np.ix_(left, right)], precedes[np.ix_(right, left)].T
    tests = [] if exclusive else [(APART, ~before & ~behind)]
    if len(right) > 1:
        tests += _order_tests(precedes, left, right)
    one, other = (np.concatenate([_NONE, *(np.nonzero(related)[side] for _, related in tests)]) for side in range(2))
    return Sides(
        left_place=_places(left, len(precedes)),
        right_place=_places(right, len(precedes)),
        preceding=np.flatnonzero(before.all(axis=1)),
        succeeding=np.flatnonzero(behind.any(axis=1)),
        one=one,
        other=other,
        relation=np.concatenate([_NONE, *(np.full(np.count_nonzero(related), relation) for relation, related in tests)]),
        conditions=_join_conditions(conditions, set(left), set(right)),
    )


def _order_tests(precedes: Precedence, left: list[int], right: list[int]) -> list[tuple[int, Precedence]]:
    """Return the order relations that rows are tested for, as bool [left place, right place].

    Relations that others imply are left out. So are those that a row's range
    of candidates implies. It lies behind the events that precede all of the
    right side.
    """
    members = [*left, *right]
    within = precedes[np.ix_(members, members)]
    direct = within & ~(within.astype(np.float32) @ within.astype(np.float32) > 0)
    size = len(left)
    ranged = within[:size, size:].all(axis=1, keepdims=True)
    return [(BEFORE, direct[:size, size:] & ~ranged), (BEHIND, direct[size:, :size].T)]


def _places(variables: list[int], size: int) -> Indices:
    """Return int64 [variable]: the variable's place in a table, or −1."""
    places = np.full(size, -1, np.int64)
    places[variables] = np.arange(len(variables))
    return places


def _join_conditions(table: ConditionTable, left: set[int], right: set[int]) -> Indices:
    """Return the conditions that read variables of both sides and no others.

    Comparisons come first, because they are cheap.
    """
    read = [set(table.variable[first:end].tolist()) for first, end in pairwise(table.part_first.tolist())]
    across = [c for c, variables in enumerate(read) if variables <= left | right and not variables <= left and not variables <= right]
    return np.array(sorted(across, key=lambda c: bool(table.left_variable[c] < 0)), np.int64)


def join_keys(table: ConditionTable, sides: Sides) -> tuple[HashKeys, HashKeys]:
    """Return the keys by which the rows of the left and of the right table are hashed.

    They are the values that the join demands to be equal.
    """
    equal = [c for c in sides.conditions if table.left_variable[c] >= 0 and table.comparison[c] == EQ]
    named = [((table.left_variable[c], table.left_column[c]), (table.right_variable[c], table.right_column[c])) for c in equal]
    turned = [(one, other) if sides.left_place[one[0]] >= 0 else (other, one) for one, other in named]
    floating = np.array([table.means[c] == BY_FLOATS for c in equal], np.bool_)
    left, right = (np.array([pair[side] for pair in turned], np.int64).reshape(-1, 2).T.copy() for side in range(2))
    return HashKeys(sides.left_place[left[0]], left[1], floating), HashKeys(sides.right_place[right[0]], right[1], floating)
