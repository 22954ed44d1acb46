"""Push events into streams: what a push costs by the length of the window, the number of keys and the question.

``python -m benchmarks.suite.streams [--push N] [--pushes N] [--windows N …] [--keys N …] [--only QUESTION …] [--threads N]``
generates events in the order of time, fills a window, and then pushes further events. It prints the milliseconds of processor time of a
push (the best and the median one), the events a second of all pushes, and both as multiples of what `match` takes for the events of
one window, measured in the same run. Last come batches that are read one by one (`result="reader"`) beside the same events in a table.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa

import gpu_cep as cep

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


@dataclass(frozen=True, slots=True)
class Pushed:
    """What pushes took: seconds of each, what matching one window takes, the events of a push, and how many matches came out."""

    seconds: tuple[float, ...]
    window: float
    events: int
    matches: int

    @property
    def rate(self) -> float:
        """Events a second."""
        return self.events * len(self.seconds) / sum(self.seconds)


def events_from(begin: int, count: int, keys: int) -> pa.Table:
    """The events of some microseconds, one in each."""
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
    took = [seconds(lambda part=part: live.push(part)) for part in parts]
    # the first ones choose algorithms
    return Pushed(tuple(took[2:]), whole, push, live.clock.reported)


def seconds(call: Callable[[], Any]) -> float:
    """The processor time of a call."""
    begin = time.process_time()
    call()
    return time.process_time() - begin


def read(question: str, keys: int, events: int, threads: int) -> tuple[float, float]:
    """The seconds that a reader of batches takes, and those of a table."""
    query, options = QUESTIONS[question]
    text = f"{query} WITHIN 10000 us"
    table = events_from(0, events, keys)

    def batches() -> Iterator[pa.RecordBatch]:
        yield from table.to_batches(max_chunksize=BATCH)

    by_batch = seconds(lambda: cep.match(batches(), text, result="reader", threads=threads, **options).read_all())
    return by_batch, seconds(lambda: cep.match(table, text, threads=threads, **options))


def main(arguments: Sequence[str] | None = None) -> None:
    """Print what pushes take."""
    asked = _parser().parse_args(arguments)
    print(f"pushes of {asked.push:,} events, {asked.threads} thread(s), milliseconds of processor time")
    print(f"{'question':15} {'keys':>7} {'window':>8} {'best':>8} {'median':>8} {'events/s':>10} {'of a window':>12} {'matches':>9}")
    for question in asked.only:
        for keys in asked.keys:
            for window in asked.windows:
                pushed = measure(question, window, keys, asked.push, asked.pushes, asked.threads)
                middle = median(pushed.seconds)
                print(
                    f"{question:15} {keys:7,} {window:8,} {1e3 * min(pushed.seconds):8.2f} {1e3 * middle:8.2f} {pushed.rate:10,.0f} "
                    f"{middle / pushed.window:11.2f}x {pushed.matches:9,}",
                    flush=True,
                )
    print(f"\nbatches of {BATCH:,} events, {asked.read:,} in all, beside a table of them")
    for question in asked.only:
        by_batch, at_once = read(question, asked.keys[-1], asked.read, asked.threads)
        print(f"{question:15} {asked.read / by_batch:12,.0f} events/s, {by_batch / at_once:5.2f} times the time of the table", flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.suite.streams", description="Measure what pushes into streams cost.")
    parser.add_argument("--push", type=int, default=PUSH, help="events of a push")
    parser.add_argument("--pushes", type=int, default=PUSHES, help="how many pushes are measured")
    parser.add_argument("--windows", type=int, nargs="+", default=WINDOWS, help="events that a window holds")
    parser.add_argument("--keys", type=int, nargs="+", default=KEYS, help="how many cards there are")
    parser.add_argument("--only", nargs="+", choices=tuple(QUESTIONS), default=tuple(QUESTIONS), metavar="QUESTION", help="these alone")
    parser.add_argument("--read", type=int, default=READ, help="events that are read batch by batch")
    parser.add_argument("--threads", type=int, default=1, help="threads of the engine")
    return parser


if __name__ == "__main__":
    main()
