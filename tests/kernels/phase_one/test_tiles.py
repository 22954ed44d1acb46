"""The rules of tiles: bits of a tile's word are counted and found alike by Python, by compiled code and by Python's integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest

from gpu_cep_kernels.phase_one.tiles import TILE, bits_before, count_words, first_place

WORDS = [0, 1, 2, 0x80000000, 0xFFFFFFFF, 0x7FFFFFFE, 0x55555555, 0xAAAAAAAA, *np.random.default_rng(3).integers(0, 1 << 32, 50).tolist()]


def compiled(rule: Any) -> Callable[..., int]:
    """The rule as kernels call it."""
    called: Callable[..., int] = numba.njit(lambda *given: rule(*given))
    return called


@pytest.mark.parametrize("form", [lambda rule: rule, compiled], ids=["Python", "compiled"])
def test_bits_are_those_of_the_integer(form):
    before, words, first = form(bits_before), form(count_words), form(first_place)
    for word in WORDS:
        held = np.uint32(word)
        with np.errstate(over="ignore"):
            assert words(np.array([held, held]), 0, 2) == 2 * word.bit_count()
            assert first(held) == (TILE if not word else (word & -word).bit_length() - 1)
            for place in range(TILE):
                assert before(held, place) == (word & ((1 << place) - 1)).bit_count()
