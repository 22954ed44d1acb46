"""Merge the matches of several branches, which ascend by first event."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import starmap
from typing import NamedTuple

import numpy as np

from gpu_cep.engine.events.matches import Indices, Matches
from gpu_cep.engine.input.buffers import new_values
from gpu_cep.plan.event_plan import are_disjoint
from gpu_cep_kernels.matches.flat_matches import FlatMatches, merge_matches

_NOT_READ = np.empty(0, np.int64)


class BranchMatches(NamedTuple):
    """Matches that bind some of a query's variables.

    Their variable v is the query's ``variables[v]``; these ascend.
    """

    matches: Matches
    variables: tuple[int, ...]


def unite_matches(parts: Sequence[BranchMatches], variables: int) -> Matches:
    """Return the matches of all parts, each once: by first event, last event and bindings.

    Those of each part are in this order, and no part has one twice.
    """
    if len(parts) == 1:
        return parts[0].matches.widen(parts[0].variables, variables)
    return once_in_order(merge_by_starts(parts, variables), [part.variables for part in parts])


def once_in_order(matches: Matches, bound: Sequence[tuple[int, ...]]) -> Matches:
    """Return the matches of branches, each once: by first event, in whose order they are, last event and bindings.

    `bound` are the variables of each branch.
    """
    in_order = matches.sort_within_starts()
    return in_order if are_disjoint(bound) else in_order.drop_repeated()


def merge_by_starts(parts: Sequence[BranchMatches], variables: int) -> Matches:
    """Return the matches of all parts, by first event, as matches of all of so many `variables`.

    Those of each part ascend by first event. Among equal ones those of earlier parts come before.
    """
    held = [part for part in parts if len(part.matches)] or list(parts[:1])
    while len(held) > 1:
        held = [*starmap(_merge, zip(held[::2], held[1::2], strict=False)), *held[len(held) // 2 * 2 :]]
    ((matches, own),) = held
    return matches.widen(own, variables)


def _merge(left: BranchMatches, right: BranchMatches) -> BranchMatches:
    """Return the matches of two parts, which bind the variables of either."""
    variables = tuple(sorted({*left.variables, *right.variables}))
    number, bound = len(left.matches) + len(right.matches), left.matches.bound + right.matches.bound
    counts = new_values((number, len(variables)), np.int32)
    merged = Matches(new_values(number, np.int64), counts, new_values(bound, np.int64))
    merge_matches(
        *_side(left, variables), *_side(right, variables), merged.first, FlatMatches(_NOT_READ, merged.counts, merged.events)
    )  # fmt: skip
    return BranchMatches(merged, variables)


def _side(part: BranchMatches, variables: tuple[int, ...]) -> tuple[Indices, Indices, FlatMatches]:
    """Return the first events of a part, which of the `variables` its own are, and its matches."""
    matches = part.matches
    columns = np.searchsorted(variables, part.variables)
    return matches.first, columns, FlatMatches(matches.offsets, np.ascontiguousarray(matches.counts), matches.events)
