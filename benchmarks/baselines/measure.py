"""Timings of one workload: the library on some threads, the C++ loop on one; and the check that all give the same matches."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Unpack

import pyarrow as pa

import gpu_cep
from benchmarks.baselines.cpp_loops import has_compiler
from benchmarks.baselines.floors import best_in_turn
from benchmarks.baselines.peers import peer_matches
from benchmarks.workloads.questions import DEFAULT_EVENTS, Workload, generate, query_text
from gpu_cep.choices import Engine, TableOutput
from gpu_cep.engine.phase_one.engine_choice import require_device
from gpu_cep.errors import EngineUnavailable
from gpu_cep.keywords import RunOptions

OUTPUTS: dict[str, TableOutput] = {"count": "count", "rows": "indices"}  # what a benchmark asks for -> match()'s output=
CORES = len(os.sched_getaffinity(0))
THREADS = tuple(sorted({1, CORES}))


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
    engine: str = "cpu"
    algorithm: str = "auto"

    @property
    def events_per_second(self) -> float:
        return self.events / self.seconds

    @property
    def who(self) -> str:
        """Return the contestant, and what it ran on."""
        place = "GPU" if self.engine == "gpu" else f"{self.threads} thread{'s' * (self.threads > 1)}"
        return f"{self.contestant}, {place}"


@dataclass(frozen=True, slots=True)
class Stages:
    """What the engine did on one thread: the events that each stage let through, its seconds, and those of the whole call."""

    workload: str
    output: str
    counts: dict[str, int]
    seconds: dict[str, float]
    whole: float


class Disagreement(Exception):
    """Two contestants found different matches."""


def of_usual_length(workload: Workload, events: int) -> Case:
    """Return a case of so many events in streams as long as the workload's own."""
    return Case(workload, events, max(1, workload.streams * events // DEFAULT_EVENTS))


def events_of(case: Case) -> pa.Table:
    return generate(case.workload, case.events, case.streams)


class Asking(RunOptions, total=False):
    """The further keywords that the library is asked with."""

    profile: gpu_cep.Profile


def run_match(case: Case, events: pa.Table, output: str, threads: int, **options: Unpack[Asking]) -> pa.Table:
    """Return the library's answer to `case`."""
    query = query_text(case.workload, case.streams, case.window_factor)
    return gpu_cep.match(events, query, partition_by=case.workload.key, output=OUTPUTS[output], threads=threads, **options)


def gpu_at_hand() -> bool:
    """Return whether there is a card; the simulator is none, for its times mean nothing."""
    try:
        return not require_device().simulated
    except EngineUnavailable:
        return False


@dataclass(frozen=True, slots=True)
class Contestant:
    """Who answers a case, on what, how, and how many matches it finds."""

    name: str
    threads: int
    engine: str
    run: Callable[[], object]
    matches: int


def measure_contestants(case: Case, events: pa.Table, output: str, repeats: int) -> list[Timing]:
    """Return the times of the library on one thread, on all and on a card, and of the C++ loop; of those that are at hand."""
    contestants = [ours(case, events, output, threads) for threads in THREADS]
    if gpu_at_hand():
        contestants.append(ours(case, events, output, CORES, "gpu"))
    if has_compiler():
        contestants.append(peer(case, events, output))
    if len({each.matches for each in contestants}) > 1:
        raise Disagreement(f"{case.workload.name}, {output}: {[(each.name, each.threads, each.matches) for each in contestants]}")
    seconds = best_in_turn([each.run for each in contestants], repeats)
    return [_timing(case, output, each, best) for each, best in zip(contestants, seconds, strict=True)]


def ours(case: Case, events: pa.Table, output: str, threads: int, engine: Engine = "cpu") -> Contestant:
    run = partial(run_match, case, events, output, threads, engine=engine)
    return Contestant("gpu_cep", threads, engine, run, match_count(run(), output))


def peer(case: Case, events: pa.Table, output: str) -> Contestant:
    run = partial(peer_matches, case.workload, events, case.streams, rows=output == "rows", factor=case.window_factor)
    return Contestant("c++", 1, "cpu", run, run().count)


def measure_stages(case: Case, events: pa.Table, output: str, repeats: int) -> Stages:
    """Return each stage's shortest time in so many runs, and the shortest run."""
    counts: dict[str, int] = {}
    seconds: dict[str, float] = {}
    whole = float("inf")
    for _ in range(repeats):
        profile = gpu_cep.Profile()
        begin = time.perf_counter()
        run_match(case, events, output, 1, profile=profile)
        whole = min(whole, time.perf_counter() - begin)
        counts = profile.counts
        seconds = {stage: min(spent, seconds.get(stage, spent)) for stage, spent in profile.seconds.items()}
    return Stages(case.workload.name, output, counts, seconds, whole)


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


def _timing(case: Case, output: str, who: Contestant, seconds: float) -> Timing:
    name, events, streams, factor = case.workload.name, case.events, case.streams, case.window_factor
    return Timing(name, events, streams, factor, output, who.name, who.threads, seconds, who.matches, who.engine)
