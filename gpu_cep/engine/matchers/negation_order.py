"""When a negation is judged where variables are bound in another order than the pattern's (lazy automata paper, section 4.4).

At its first chance, as joins do, or when a match is complete; a lazy automaton does what is expected to be less work.
"""

from __future__ import annotations

import numpy as np

from gpu_cep.engine.events.batches import Batch
from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.matchers.negation_scopes import scope_bounds
from gpu_cep.engine.matchers.search import Search
from gpu_cep_kernels.rules.scalars import LABEL_BITS
from gpu_cep_kernels.rules.tables import Flags, Floats


def negation_needs(search: Search, batch: Batch, order: Indices, expected: Floats) -> Flags:
    """[n, v]: whether negation n waits for variable v, in a batch of which so many events are `expected` for each variable in turn."""
    needs = first_chances(search, batch)
    return np.array([own if judges_early(own[order], expected) else np.ones_like(own) for own in needs], np.bool_).reshape(needs.shape)


def judges_early(needed: Flags, expected: Floats) -> bool:
    """Whether a negation that needs some of the variables in the order of evaluation is judged at its first chance.

    It is where no more partial matches are expected there than complete ones:
    they are then judged once for all that they are completed to.
    """
    through = np.cumsum(np.log(np.maximum(expected, np.finfo(np.float64).tiny)))
    return bool(through[int(np.flatnonzero(needed).max(initial=0))] <= through[-1])


def first_chances(search: Search, batch: Batch) -> Flags:
    """[n, v]: whether negation n cannot be judged before v is bound.

    v bounds its scope, is compared with its events, or may bind one of them,
    which is then no event outside the match. An open side of a scope needs
    the first or the last event of the match.
    """
    branch, negations, labels = search.tables.branch, search.negations, search.ordered.labels
    positives = len(branch.before)
    minimal = {v for v, mask in enumerate(branch.before) if mask == 0}
    maximal = set(range(positives)) - {v for v in range(positives) if any(mask >> v & 1 for mask in branch.before)}
    needs = np.zeros((len(branch.negations), positives), np.bool_)
    for n, negation in enumerate(branch.negations):
        compared = {v for c in branch.conditions if negation.variable in c.variables for v in c.variables}
        places = negations.places[negations.place_first[n] : negations.place_first[n + 1]]
        places = places[np.searchsorted(places, batch.low) : np.searchsorted(places, batch.high)]
        marks = [int(np.bitwise_or.reduce(word[places])) for word in labels]
        bindable = {v for v, number in enumerate(branch.positives) if marks[number // LABEL_BITS] >> number % LABEL_BITS & 1}
        after, before = scope_bounds(branch, negation)
        bounds = set(after or maximal) | set(before or minimal)
        needs[n, sorted((compared | bindable | bounds) - {negation.variable})] = True
    return needs
