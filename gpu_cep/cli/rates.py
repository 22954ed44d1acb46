"""Measure how fast a query runs on a user's events, and how fast its columns are read and copied."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gpu_cep import api
from gpu_cep.keywords import read_keywords
from gpu_cep.plan.columns_read import columns_read
from gpu_cep.queries.plans import make_plan

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Rate:
    """The shortest of several runs of one action.

    `copies` is its time divided by the time of copying the columns.
    """

    what: str
    seconds: float
    events_per_second: float
    copies: float


@dataclass(frozen=True, slots=True)
class Measurements:
    """All measurements, with the numbers of events, runs and matches, and the columns read."""

    events: int
    runs: int
    columns: tuple[str, ...]
    matches: int
    rates: tuple[Rate, ...]

    def facts(self) -> dict[str, Any]:
        """Return all fields as a dictionary that JSON can hold."""
        return asdict(self)


def measure(text: str, table: pa.Table, reading: Callable[[], Any] | None, runs: int, asked: Mapping[str, Any]) -> Measurements:
    """Time a query over `table`, copying its columns and, unless it is None, `reading` the table.

    Each is done `runs` times.
    """
    names = _columns_read(text, table, asked)
    held = table.select(names).combine_chunks()
    copying = _shortest(partial(_copy_buffers, held), runs)[0]
    seconds = {"copy its columns": copying}
    if reading is not None:
        seconds["read the file"] = _shortest(reading, runs)[0]
    seconds["match, output=count"], counts = _shortest(lambda: api.match(held, text, output="count", **asked), runs)
    seconds["match, output=indices"] = _shortest(lambda: api.match(held, text, output="indices", **asked), runs)[0]
    matches = pc.sum(counts["count"], min_count=0).as_py()
    rates = tuple(Rate(what, spent, table.num_rows / spent, spent / copying) for what, spent in seconds.items())
    return Measurements(table.num_rows, runs, tuple(names), matches, rates)


def _columns_read(text: str, table: pa.Table, asked: Mapping[str, Any]) -> list[str]:
    """Return the names of the columns that counting the query's matches reads."""
    plan = make_plan(text, table.schema, *read_keywords({**asked, "output": "count"}))
    return [table.column_names[column] for column in columns_read(plan.query, plan.settings)]


def _copy_buffers(table: pa.Table) -> list[Any]:
    chunks = (chunk for column in table.columns for chunk in column.chunks)
    return [np.frombuffer(buffer, np.uint8).copy() for chunk in chunks for buffer in chunk.buffers() if buffer]


def _shortest(action: Callable[[], Result], runs: int) -> tuple[float, Result]:
    """Return the seconds of the shortest run, and the result of the last one.

    Only one result is held at a time. A run before them is not timed: it may compile kernels.
    """
    result, shortest = action(), float("inf")
    for _ in range(runs):
        del result
        seconds, result = _time_call(action)
        shortest = min(shortest, seconds)
    return shortest, result


def _time_call(action: Callable[[], Result]) -> tuple[float, Result]:
    begin = time.perf_counter()
    result = action()
    return time.perf_counter() - begin, result
