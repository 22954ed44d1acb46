"""How much a test tries: few in the fast suite, more in the full one, or as many examples of a property as CEP_EXAMPLES asks for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations, product
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings

# Of a property that says nothing else.
FAST, FULL = 20, 50


def examples(fast: int, full: int) -> settings:
    """Return the settings of a property that tries so many examples in the fast suite, and in the full one; asked for more, that many."""
    by_suite = {"fast": fast, "full": full}
    return settings(max_examples=by_suite.get(settings.get_current_profile_name(), max(full, settings().max_examples)))


def every_pair(**values: Sequence[Any]) -> pytest.MarkDecorator:
    """Parametrise a test by all combinations of the values, of which the fast suite runs some that have every pair of two values."""
    return _grid(values, covering)


def every_value(**values: Sequence[Any]) -> pytest.MarkDecorator:
    """Parametrise a test by all combinations of the values, of which the fast suite runs those with the first of all lists but one.

    It is for values that different parts of the code read.
    """
    return _grid(values, lambda places: {place for place in places if place.count(0) >= len(place) - 1})


def _grid(values: Mapping[str, Sequence[Any]], chosen: Callable[[list[tuple[int, ...]]], set[tuple[int, ...]]]) -> pytest.MarkDecorator:
    """Return the decorator for all combinations, of which the fast suite runs those at the `chosen` places."""
    assert len(values) > 1, "all of one list are run"
    places = list(product(*(range(len(each)) for each in values.values())))
    briefly = chosen(places)
    rows = [
        pytest.param(*row, marks=() if place in briefly else pytest.mark.full)
        for place, row in zip(places, product(*values.values()), strict=True)
    ]
    return pytest.mark.parametrize(tuple(values), rows)


def covering(rows: list[tuple[int, ...]]) -> set[tuple[int, ...]]:
    """Return rows that have all pairs of values in two columns that the given ones have: each time one with most of those that lack."""
    pairs = {row: {*combinations(enumerate(row), 2)} for row in rows}
    lacking, chosen = set().union(*pairs.values()), set[tuple[int, ...]]()
    while lacking:
        best = max(rows, key=lambda row: len(pairs[row] & lacking))
        chosen.add(best)
        lacking -= pairs[best]
    return chosen


def load(suite: str, asked: int | None, *, shrinks: bool) -> None:
    """Load the settings of a suite. Every run tries the same examples, so that its verdict is the code's, unless a number was asked for.

    A failing example is made small if the suite `shrinks`; the fault is found either way.
    """
    phases = tuple(Phase) if shrinks else (Phase.explicit, Phase.generate)
    # how long it takes to draw is the machine's, too
    timeless = settings(deadline=None, phases=phases, suppress_health_check=[HealthCheck.too_slow])
    settings.register_profile("fast", timeless, max_examples=FAST, derandomize=True)
    settings.register_profile("full", timeless, max_examples=FULL, derandomize=True)
    settings.register_profile("asked", timeless, max_examples=asked or FULL)
    settings.load_profile(suite if asked is None else "asked")
