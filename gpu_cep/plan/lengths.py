"""Write lengths of time in words: in units of time if the length of a tick is known, else in ticks."""

from __future__ import annotations

from gpu_cep.analysis.types import Attribute
from gpu_cep.analysis.windows import own_tick
from gpu_cep.lang.ast import UNITS
from gpu_cep.lang.literals import with_unit


def length_text(length: int | float, timestamp: Attribute) -> str:
    """Return a number of the timestamp's ticks in words: ``6 hours``, or ``10 ticks of ts``."""
    tick = own_tick(timestamp)
    if tick is None:
        return f"{length:,} ticks of {timestamp.name}"
    whole = int(length) * tick
    unit = max((unit for unit in UNITS if whole % UNITS[unit] == 0), key=UNITS.__getitem__) if whole else "seconds"
    return with_unit(f"{whole // UNITS[unit]:,}", unit)
