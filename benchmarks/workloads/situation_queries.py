"""TPStream's queries over drawn situations (sections 6.2 to 6.4): every situation is where the column of its name holds.

Windows are in seconds. The paper draws relations at random without saying from which: here from all thirteen.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpu_cep.lang.ast_intervals import RELATIONS

SEED = 2026

DISCONNECTED = "A before B AND B overlaps C"  # figure 5 (c)
SEQUENTIAL, OVERLAPPING = ("before", "meets"), ("overlaps", "starts", "during")  # figure 7 (a)
PLANS = {  # figure 8 (a); Q3 also (b)
    "Q1": "A overlaps B AND A overlaps C AND B starts C",
    "Q2": "A overlaps B AND A before C AND B overlaps C",
    "Q3": "A before B AND A before C AND B before C",
}
SHAPES = ("equal", "meets", "chain", "star", "combined")  # figure 6


def query_of(pattern: str, names: Sequence[str], window: int) -> str:
    """Return the query with this pattern over situations of these names."""
    return f"DEFINE {', '.join(f'{name} AS {name}' for name in names)} PATTERN {pattern} WITHIN {window}"


def shaped(shape: str, count: int, run: int = 0) -> str:
    """Return the pattern of S1 to S`count` that figure 6 calls `shape`, with the relations of its `run`-th run."""
    rng = np.random.default_rng([SEED, SHAPES.index(shape), count, run])
    fixed = {"equal": "equals", "meets": "meets"}.get(shape)
    relations = [fixed or str(name) for name in rng.choice(list(RELATIONS), count - 1)]
    constraints = zip(_lefts(shape, count), relations, range(2, count + 1), strict=True)
    return " AND ".join(f"S{left} {relation} S{right}" for left, relation, right in constraints)


def _lefts(shape: str, count: int) -> list[int]:
    """Return with which situation each one from the second on is related."""
    chained = {"star": 1, "combined": count // 2}.get(shape, count)
    return [min(right - 1, chained) for right in range(2, count + 1)]
