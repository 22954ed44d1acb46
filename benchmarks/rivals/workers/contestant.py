"""What every rival's worker does: answer, have the answer compared with the library's, then answer again against the clock.

A worker runs in its rival's environment: beside the rival, only the standard library and pyarrow are there.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq


@dataclass(frozen=True, slots=True)
class Job:
    """A question in the rival's words, over the events in a Parquet file; `expected` are the library's matches in another.

    `checkout`: a folder with the rival's sources, if it is on no package index.
    """

    question: str
    text: str
    window: int
    events: str
    expected: str
    key: str | None
    value: str
    types: tuple[str, ...]
    threads: int
    repeats: int
    mode: str = ""
    checkout: str = ""


@dataclass(frozen=True, slots=True)
class WarmRuns:
    """The wall and processor seconds of each warm run."""

    seconds: tuple[float, ...]
    cpu_seconds: tuple[float, ...]
    matches: int


class Disagreement(Exception):
    """A rival's matches are not the library's."""


class Contestant(Protocol):
    """A rival with the events in its memory; `process` is the one that does its work."""

    process: int

    def matches(self) -> pa.Table:
        """Return all matches, in the columns that they are compared by."""

    def run(self) -> None:
        """Answer once more and produce every match's row, wherever that is cheapest."""


def serve(opened: Callable[[Job], Contestant]) -> None:
    """Do the job that the command line's first argument describes; the last line of the output is what was measured."""
    job = Job(**json.loads(sys.argv[1]))
    contestant = opened(job)
    expected = pq.read_table(job.expected)
    check(contestant.matches(), expected)
    contestant.run()
    timings = [_timed(contestant) for _ in range(job.repeats)]
    seconds, cpu_seconds = zip(*timings, strict=True)
    print(json.dumps(asdict(WarmRuns(seconds, cpu_seconds, expected.num_rows))))


def check(found: pa.Table, expected: pa.Table) -> None:
    """Raise Disagreement unless both tables have the same rows, in any order."""
    if found.num_rows != expected.num_rows:
        raise Disagreement(f"{found.num_rows} matches, {expected.num_rows} expected")
    if not _ordered(found, expected.schema).equals(_ordered(expected, expected.schema)):
        raise Disagreement(f"{found.num_rows} matches as expected, but not the same")


def _ordered(matches: pa.Table, schema: pa.Schema) -> pa.Table:
    return matches.select(schema.names).cast(schema).sort_by([(name, "ascending") for name in schema.names]).combine_chunks()


def _timed(contestant: Contestant) -> tuple[float, float]:
    start, cpu_start = time.perf_counter(), processor_seconds(contestant.process)
    contestant.run()
    return time.perf_counter() - start, processor_seconds(contestant.process) - cpu_start


def processor_seconds(process: int) -> float:
    """Return the processor time that all threads of a process have taken so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def plain_columns(events: pa.Table) -> dict[str, Any]:
    """Return the columns with text in place of dictionaries."""
    return {
        field.name: events[field.name].cast(field.type.value_type) if pa.types.is_dictionary(field.type) else events[field.name]
        for field in events.schema
    }
