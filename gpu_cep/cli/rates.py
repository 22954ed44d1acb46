"""How fast a query is on a user's own events, beside what reading and copying its columns takes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gpu_cep import api
from gpu_cep.engine.input.read_tables import on_host, read_events
from gpu_cep.plan.columns_read import columns_read

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Rate:
    """The shortest of several runs, and how many times as long as copying the columns it took."""

    what: str
    seconds: float
    events_per_second: float
    copies: float


@dataclass(frozen=True, slots=True)
class Rates:
    """What was measured: over how many events, in how many runs, and what each took."""

    events: int
    runs: int
    columns: tuple[str, ...]
    matches: int
    rates: tuple[Rate, ...]

    def facts(self) -> dict[str, Any]:
        """All of it, as JSON has it."""
        return asdict(self)


def measure(text: str, events: Any, runs: int, asked: Mapping[str, Any]) -> Rates:
    """Count and list the matches of a query over `events` (a path or a table) several times, and read and copy its columns as often."""
    table = on_host(read_events(events))
    names = _columns_read(text, table, asked)
    held = table.select(names).combine_chunks()
    matched = partial(api.match, held, text, **asked)
    copying = _shortest(partial(_copy_buffers, held), runs)[0]
    seconds = {"copy its columns": copying}
    if isinstance(events, str | Path):
        seconds["read the file"] = _shortest(partial(read_events, events), runs)[0]
    seconds["match, output=count"], counts = _shortest(partial(matched, output="count"), runs)
    seconds["match, output=indices"] = _shortest(partial(matched, output="indices"), runs)[0]
    matches = pc.sum(counts["count"], min_count=0).as_py()
    rates = tuple(Rate(what, spent, table.num_rows / spent, spent / copying) for what, spent in seconds.items())
    return Rates(table.num_rows, runs, tuple(names), matches, rates)


def _columns_read(text: str, table: pa.Table, asked: Mapping[str, Any]) -> list[str]:
    """The columns that are read to count a query's matches."""
    plan = api.explain(text, table.slice(0, 0), output="count", **asked).plan
    assert plan is not None, "there are columns to bind to"
    return [table.column_names[column] for column in columns_read(plan.query, plan.settings)]


def _copy_buffers(table: pa.Table) -> list[Any]:
    chunks = (chunk for column in table.columns for chunk in column.chunks)
    return [np.frombuffer(buffer, np.uint8).copy() for chunk in chunks for buffer in chunk.buffers() if buffer]


def _shortest(action: Callable[[], Result], runs: int) -> tuple[float, Result]:
    """The seconds of the shortest of several runs, and what the last one gave; no two results are held at a time."""
    shortest, result = _time_call(action)
    for _ in range(runs - 1):
        del result
        seconds, result = _time_call(action)
        shortest = min(shortest, seconds)
    return shortest, result


def _time_call(action: Callable[[], Result]) -> tuple[float, Result]:
    begin = time.perf_counter()
    result = action()
    return time.perf_counter() - begin, result
