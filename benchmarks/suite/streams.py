"""Push events into streams: what a push costs by the length of the window, the number of keys and the question.

``python -m benchmarks.suite.streams [--push N] [--pushes N] [--windows N …] [--keys N …] [--only QUESTION …] [--threads N] [--out FOLDER]``
generates events in the order of time, fills a window, and then pushes further events. It takes the milliseconds of processor time of a
push (the best and the median one), the events a second of all pushes, and the median as a multiple of what `match` takes for the events
of one window, measured in the same run. Then come batches that are read one by one (`result="reader"`) beside the same events in a
table. It prints the page and writes it with its record to ``benchmarks/results/``.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import gpu_cep as cep
from benchmarks.record import pages, pushes
from benchmarks.record.folders import RESULTS
from benchmarks.record.machine import environment, name_on
from benchmarks.record.pushes import Pushed, Read

PUSH, PUSHES, WINDOWS, KEYS = 1_000, 30, (1_000, 10_000, 100_000), (10, 10_000)
READ, BATCH = 2_000_000, 10_000
SCHEMA = pa.schema({"ts": pa.timestamp("us"), "type": pa.string(), "card": pa.int64(), "amount": pa.float64()})
QUESTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "next": ("PATTERN SEQ(A a, B b, C c) WHERE [card] AND b.amount > a.amount AND c.amount > b.amount", {}),
    "trend": ("PATTERN SEQ(A a, B b+) WHERE [card] AND b.amount > a.amount", {}),
    "absence": ("PATTERN SEQ(A a, B b, NOT(C c)) WHERE [card] AND b.amount > a.amount", {}),
    "any, selective": ("PATTERN SEQ(A a, B b, C c) WHERE skip_till_any_match { [card] AND a.amount > 0.98 AND b.amount > 0.98 }", {}),
    "neighbours": ("PARTITION BY card PATTERN SEQ(a, b, c) WHERE strict_contiguity { b.amount > a.amount AND c.amount > b.amount }", {}),
    "taken": ("PATTERN SEQ(A a, B b) WHERE [card] AND b.amount > a.amount", {"after_match": "skip_past_last"}),
    "timeouts": ("PATTERN SEQ(A a, B b, C c) WHERE [card] AND b.amount > a.amount AND c.amount > b.amount", {"timeouts": True}),
    "situations": ("PARTITION BY card DEFINE H AS amount > 0.5, L AS amount <= 0.5 PATTERN H meets L", {}),
}


def events_from(begin: int, count: int, keys: int) -> pa.Table:
    """Return the events of some microseconds, one in each."""
    random = np.random.default_rng(begin)
    columns = [
        (begin + np.arange(count)).astype("datetime64[us]"),
        pa.array(list("ABCDEFGHIJ")).take(pa.array(random.integers(0, 10, count))),
        random.integers(0, keys, count),
        random.random(count),
    ]
    return pa.table(columns, schema=SCHEMA)


def measure(question: str, window: int, keys: int, push: int, pushes: int, threads: int) -> Pushed:
    """Push events of which a window holds so many."""
    query, options = QUESTIONS[question]
    text = f"{query} WITHIN {window} us"
    live, full = cep.stream(text, SCHEMA, threads=threads, **options), events_from(0, window, keys)
    whole = min(seconds(lambda: cep.match(full, text, threads=threads, **options)) for _ in range(3))
    live.push(full)
    parts = [events_from(window + number * push, push, keys) for number in range(pushes + 2)]
    took = [seconds(partial(live.push, part)) for part in parts]
    # the first ones choose algorithms
    return Pushed(question, window, keys, push, tuple(took[2:]), whole, live.clock.reported)


def seconds(call: Callable[[], Any]) -> float:
    """Return the processor time of a call."""
    begin = time.process_time()
    call()
    return time.process_time() - begin


def read(question: str, keys: int, events: int, threads: int) -> Read:
    """Return what a reader of batches takes, and a table of the same events."""
    query, options = QUESTIONS[question]
    text = f"{query} WITHIN 10000 us"
    table = events_from(0, events, keys)

    def batches() -> Iterator[pa.RecordBatch]:
        yield from table.to_batches(max_chunksize=BATCH)

    by_batch = seconds(lambda: cep.match(batches(), text, result="reader", threads=threads, **options).read_all())
    return Read(question, keys, events, by_batch, seconds(lambda: cep.match(table, text, threads=threads, **options)))


def measured(asked: argparse.Namespace) -> tuple[list[Pushed], list[Read]]:
    """Return what pushes and readers take, question by question."""
    pushed, by_batch = [], []
    for question in asked.only:
        for keys in asked.keys:
            for window in asked.windows:
                pushed.append(measure(question, window, keys, asked.push, asked.pushes, asked.threads))
                print(pushed[-1], file=sys.stderr, flush=True)
    for question in asked.only:
        by_batch.append(read(question, asked.keys[-1], asked.read, asked.threads))
        print(by_batch[-1], file=sys.stderr, flush=True)
    return pushed, by_batch


def markdown(pushed: Sequence[Pushed], by_batch: Sequence[Read], where: Mapping[str, str], threads: int) -> str:
    """Return the page of a record."""
    questions = pages.table([("question", "text"), *((name, f"`{text}`") for name, (text, _) in QUESTIONS.items())])
    sections = [
        f"# Pushes into streams, on {where['machine']}, {where['day']}",
        f"Commit {where['commit']}; {threads} thread(s), pushes of {pushed[0].push:,} events, milliseconds of processor time; load average "
        f"{where['load']} before the first one. `of a window` is the median push beside `match` of the events of one window. Written by "
        "`python -m benchmarks.suite.streams`.",
        questions,
        pushes.table(pushed),
        f"Batches of {BATCH:,} events that are read one by one, beside a table of them:",
        pushes.table_of_reads(by_batch),
    ]
    return "\n\n".join(sections) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print and record what pushes take."""
    asked = _parser().parse_args(arguments)
    where = environment()
    pushed, by_batch = measured(asked)
    page = markdown(pushed, by_batch, where, asked.threads)
    record = {"environment": where, "threads": asked.threads, "pushes": [asdict(each) for each in pushed]}
    record["reads"] = [asdict(each) for each in by_batch]
    print(page)
    print(*pages.write(asked.out, name_on(where, "pushes"), page, record), sep="\n")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.suite.streams", description="Measure what pushes into streams cost.")
    parser.add_argument("--push", type=int, default=PUSH, help="events of a push")
    parser.add_argument("--pushes", type=int, default=PUSHES, help="how many pushes are measured")
    parser.add_argument("--windows", type=int, nargs="+", default=WINDOWS, help="events that a window holds")
    parser.add_argument("--keys", type=int, nargs="+", default=KEYS, help="how many cards there are")
    parser.add_argument("--only", nargs="+", choices=tuple(QUESTIONS), default=tuple(QUESTIONS), metavar="QUESTION", help="these alone")
    parser.add_argument("--read", type=int, default=READ, help="events that are read batch by batch")
    parser.add_argument("--threads", type=int, default=1, help="threads of the engine")
    parser.add_argument("--out", type=Path, default=RESULTS, help="the folder for the record")
    return parser


if __name__ == "__main__":
    sys.exit(main())
