"""What the oracle answers to a random case."""

from __future__ import annotations

from hypothesis import assume

from gpu_cep.errors import UnsupportedError
from gpu_cep.lang.parser import parse
from gpu_cep.testing import oracle
from gpu_cep.testing.oracle import Match
from gpu_cep.testing.strategies import Case

LIMIT = 2_000


def expected(case: Case) -> list[Match]:
    """The oracle's matches; cases that are too much work for it are left out."""
    try:
        return oracle.matches(parse(case.text), case.events, **case.options, limit=LIMIT)
    except UnsupportedError:
        assume(False)
        raise
