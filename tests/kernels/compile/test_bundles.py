"""Named tuples as kernels' arguments: their members, by name and by number, whatever is nested in them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

from gpu_cep_kernels.compile.bundles import Bundle
from gpu_cep_kernels.compile.jit import plain, rule, sequential


class Inner(NamedTuple):
    flags: Any
    rows: Any
    share: float


class Outer(NamedTuple):
    inner: Inner
    number: int
    raised: bool
    others: Inner


class Alike(NamedTuple):
    first: int
    second: int


@rule
def _sum_of(inner: Inner, row: int) -> float:
    """Return the sum of a row, where its flag is set, times the share."""
    flags, rows, share = inner
    total = 0.0
    for k in range(rows.shape[1]):
        total += rows[row, k] * share
    return total if flags[row] else 0.0


@sequential(writes=("outer.others",))
def add_up(outer: Outer, alike: Alike) -> float:
    """Return a number that all members bear on, and write to one of the arrays."""
    total = float(outer.number + alike.first * 10 + alike.second)
    if outer.raised:
        total += 1000.0
    for row in range(outer.inner.flags.size):
        total += _sum_of(outer.inner, row) + _sum_of(outer.others, row)
        outer.others.rows[row, 0] = total
    return total


def _arguments() -> tuple[Outer, Alike]:
    draw = np.random.default_rng(1)
    inner = Inner(draw.integers(0, 2, 5).astype(np.bool_), draw.integers(0, 9, (5, 3)), 0.5)
    strided = np.asfortranarray(draw.uniform(0, 9, (8, 5)))[::2, 1:]
    return Outer(inner, 7, True, Inner(np.ones(4, np.uint8), strided, 0.25)), Alike(2, 3)


def test_every_member_is_read_and_written_as_in_python():
    (outer, alike), (expected, _) = _arguments(), _arguments()
    narrowed = Inner(outer.inner.flags[:4], outer.inner.rows[:4], outer.inner.share)
    again = Inner(expected.inner.flags[:4], expected.inner.rows[:4], expected.inner.share)
    assert add_up(outer._replace(inner=narrowed), alike) == plain(add_up)(expected._replace(inner=again), alike)
    np.testing.assert_array_equal(outer.others.rows, expected.others.rows)


def test_named_tuples_are_bundles_and_arrays_are_not():
    outer, alike = _arguments()
    add_up(outer._replace(inner=outer.others), alike)
    kinds = add_up.compiled.signatures[-1]
    assert [type(kind) for kind in kinds] == [Bundle, Bundle]
    assert [isinstance(each, Bundle) for each in kinds[0].types] == [True, False, False, True]
    assert not any(isinstance(each, Bundle) for each in kinds[0].types[0].types)


def test_types_that_differ_deep_inside_have_names_of_their_own():
    outer, _ = _arguments()
    of = add_up.compiled.typeof_pyval
    other = outer._replace(others=outer.others._replace(share=1))
    assert of(outer) == of(_arguments()[0])
    assert of(outer) != of(other)
    assert str(of(outer)) != str(of(other))
    assert max(len(str(of(each))) for each in (outer, other)) < 50


def test_an_array_that_is_not_of_its_type_is_an_error():
    outer, alike = _arguments()
    add_up(outer, alike)
    entry = add_up.compiled.overloads[tuple(map(add_up.compiled.typeof_pyval, (outer, alike)))].entry_point
    for wrong in (outer.others.rows.astype(np.float32), [1.0]):
        with pytest.raises(TypeError, match="an array in Outer is not of its type"):
            entry(outer._replace(others=outer.others._replace(rows=wrong)), alike)
