"""Results of :func:`gpu_cep.match` in the oracle's form, to be compared with it."""

from __future__ import annotations

import pyarrow as pa

from gpu_cep.oracle.events import Match


def matches_of(indices: pa.Table) -> list[Match]:
    """The matches of a table made with ``output="indices"``."""
    return [{name: _rows(value) for name, value in row.items()} for row in indices.to_pylist()]


def _rows(value: int | list[int] | None) -> tuple[int, ...]:
    if value is None:
        return ()
    return (value,) if isinstance(value, int) else tuple(value)
