"""Decide when a NOT is judged if variables are not bound in the pattern's order.

Joins judge it as soon as a partial match binds all that it needs. A lazy
automaton does so, or waits until the match is complete, as is expected to be
less work. Source: lazy automata paper, section 4.4.
"""

from __future__ import annotations

import numpy as np

from gpu_cep.engine.events.batches import Batch
from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.lowering.scopes import scope_bounds
from gpu_cep.engine.matchers.search import Search
from gpu_cep_kernels.rules.scalars import LABEL_BITS
from gpu_cep_kernels.rules.tables import Flags, Floats


def negation_needs(search: Search, batch: Batch, order: Indices, expected: Floats) -> Flags:
    """Return bool [negation, variable]: whether the negation is judged only after the variable is bound.

    Variables are bound in the given `order`. For each partial match,
    ``expected[d]`` events of variable ``order[d]`` are expected.
    """
    needs = earliest_needs(search, batch)
    return np.array([own if judges_early(own[order], expected) else np.ones_like(own) for own in needs], np.bool_).reshape(needs.shape)


def judges_early(needed: Flags, expected: Floats) -> bool:
    """Return whether a negation is judged before the match is complete.

    It is if no more partial matches are expected at the last needed variable
    than complete matches. ``needed[d]`` and ``expected[d]`` are in the order
    in which variables are bound.
    """
    matches = np.cumsum(np.log(np.maximum(expected, np.finfo(np.float64).tiny)))
    return bool(matches[int(np.flatnonzero(needed).max(initial=0))] <= matches[-1])


def earliest_needs(search: Search, batch: Batch) -> Flags:
    """Return bool [negation, variable]: whether the negation must wait until the variable is bound.

    It must if the variable bounds its scope or is compared with its events. It
    must, too, if the variable may bind one of them: events of the match do not
    count. An open side of the scope waits for all variables that can bind the
    match's first or last event.
    """
    branch = search.tables.branch
    variables = range(len(branch.before))
    minimal = {v for v, mask in enumerate(branch.before) if mask == 0}
    maximal = {v for v in variables if not any(mask >> v & 1 for mask in branch.before)}
    needs = np.zeros((len(branch.negations), len(variables)), np.bool_)
    for n, negation in enumerate(branch.negations):
        compared = {v for c in branch.conditions if negation.variable in c.variables for v in c.variables}
        after, before = scope_bounds(branch, negation)
        bounds = set(after or maximal) | set(before or minimal)
        needs[n, sorted((compared | _bindable(search, batch, n) | bounds) - {negation.variable})] = True
    return needs


def _bindable(search: Search, batch: Batch, n: int) -> set[int]:
    """Return the variables that could bind an event of negation n in the batch."""
    negations, labels = search.negations, search.ordered.labels
    events = negations.places[negations.place_first[n] : negations.place_first[n + 1]]
    events = events[np.searchsorted(events, batch.low) : np.searchsorted(events, batch.high)]
    bits = [int(np.bitwise_or.reduce(word[events])) for word in labels]
    return {v for v, number in enumerate(search.tables.branch.positives) if bits[number // LABEL_BITS] >> number % LABEL_BITS & 1}
