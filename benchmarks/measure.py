"""Timings of one workload: the library on some threads, the C++ loop on one; and the check that both give the same matches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
from floors import best_seconds
from peers import peer_matches
from workloads import Workload, generate, query_text

import gpu_cep

OUTPUTS = {"count": "count", "rows": "indices"}  # what a benchmark asks for -> match()'s output=


@dataclass(frozen=True, slots=True)
class Case:
    """A workload at one size."""

    workload: Workload
    events: int
    streams: int
    window_factor: int = 1


@dataclass(frozen=True, slots=True)
class Timing:
    """The best wall time of one contestant on one case."""

    workload: str
    events: int
    streams: int
    window_factor: int
    output: str
    contestant: str
    threads: int
    seconds: float
    matches: int

    @property
    def events_per_second(self) -> float:
        return self.events / self.seconds


@dataclass(frozen=True, slots=True)
class Stages:
    """What the engine did in one run: the events that each stage let through, and its seconds."""

    workload: str
    output: str
    counts: dict[str, int]
    seconds: dict[str, float]


class Disagreement(Exception):
    """The library and the C++ loop found different matches."""


def events_of(case: Case) -> pa.Table:
    return generate(case.workload, case.events, case.streams)


def run_match(case: Case, events: pa.Table, output: str, threads: int, **options: object) -> pa.Table:
    """The library's answer to `case`."""
    query = query_text(case.workload, case.streams, case.window_factor)
    return gpu_cep.match(events, query, partition_by=case.workload.key, output=OUTPUTS[output], threads=threads, **options)


def measure_match(case: Case, events: pa.Table, output: str, threads: int, repeats: int) -> Timing:
    answer = run_match(case, events, output, threads)
    seconds = best_seconds(partial(run_match, case, events, output, threads), repeats)
    return _timing(case, output, "gpu_cep", threads, seconds, match_count(answer, output))


def measure_stages(case: Case, events: pa.Table, output: str) -> Stages:
    profile = gpu_cep.Profile()
    run_match(case, events, output, 1, profile=profile)
    return Stages(case.workload.name, output, profile.counts, profile.seconds)


def measure_peer(case: Case, events: pa.Table, output: str, repeats: int) -> Timing:
    run: Callable[[], object] = partial(peer_matches, case.workload, events, case.streams, rows=output == "rows", factor=case.window_factor)
    found = peer_matches(case.workload, events, case.streams, rows=False, factor=case.window_factor)
    return _timing(case, output, "c++", 1, best_seconds(run, repeats), found.count)


def match_count(answer: pa.Table, output: str) -> int:
    return sum(answer["count"].to_pylist()) if output == "count" else answer.num_rows


def check_agreement(case: Case, events: pa.Table) -> None:
    """Raise Disagreement unless counts and row numbers are the same as the C++ loop's."""
    peer = peer_matches(case.workload, events, case.streams, rows=True, factor=case.window_factor)
    count = match_count(run_match(case, events, "count", 1), "count")
    if count != peer.count:
        raise Disagreement(f"{case.workload.name}: {count} matches, {peer.count} in C++")
    if peer.rows is None:
        raise TypeError("a peer asked for rows gave none")
    if not _ordered(run_match(case, events, "rows", 1), peer.rows.schema).equals(_ordered(peer.rows, peer.rows.schema)):
        raise Disagreement(f"{case.workload.name}: the row numbers differ")


def _ordered(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """`rows` in one order: by the first single variable's row where matches share a first event, else as they are."""
    rows = rows.select(schema.names).cast(schema).combine_chunks()
    singles = [name for name in schema.names if not pa.types.is_large_list(schema.field(name).type)]
    if len(singles) == len(schema.names):
        return rows.sort_by([(name, "ascending") for name in singles])
    return rows


def _timing(case: Case, output: str, contestant: str, threads: int, seconds: float, matches: int) -> Timing:
    return Timing(case.workload.name, case.events, case.streams, case.window_factor, output, contestant, threads, seconds, matches)
