"""Push the events of many kinds of questions into streams: what pushes of several sizes take beside one call over all events.

``python -m benchmarks.kinds.streams [--events N] [--kinds NAME …] [--pushes N …] [--keys N] [--many N] [--repeats N] [--threads N]
[--folder FOLDER]`` takes the processor time, the least of some runs in turns, of `match` and of the pushes of each size with the end of
the stream. A further column has many keys. All must give as many matches. It prints its page and writes it with its record to
``benchmarks/results/``.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

import gpu_cep
from benchmarks.baselines.measure import Disagreement
from benchmarks.kinds.events import make, through_parquet, with_own_texts
from benchmarks.kinds.questions import KINDS, Kind
from benchmarks.kinds.report import PACKAGES
from benchmarks.record import machine, pages
from benchmarks.record.folders import RESULTS
from benchmarks.record.push_kinds import PushedKind, table
from benchmarks.workloads.questions import DEFAULT_EVENTS

EVENTS, KEYS, MANY_KEYS, REPEATS = 1_000_000, 1_000, 100_000, 3
PUSHES, PUSH_OF_MANY = (1_000, 10_000, 100_000), 10_000
# A window holds at most this share of the events, so that a run passes windows.
_WINDOW = 0.4
# Streams take windows only; where a question has none, it gets one of so many of the gaps that it allows between events.
_GAPS = 20
STREAMED = (
    "rise_fall", "v_shape", "sessions", "next_kleene", "next_rising", "negation_middle", "or_of_two", "set_then_one", "funnel",
    "selective_prices", "situations_many", "situations_early",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class PushedQuestion:
    """A kind of question over so many keys: its events, and its text with RETURN."""

    kind: Kind
    keys: int
    events: pa.Table
    text: str
    threads: int

    def whole(self) -> int:
        """Return the number of matches of all events in one call."""
        return len(gpu_cep.match(self.events, self.text, threads=self.threads, **self.kind.options))

    def pushed(self, parts: Sequence[pa.Table]) -> int:
        """Return the number of matches that come out of pushes, and of the end of the stream."""
        live = gpu_cep.stream(self.text, self.events.schema, threads=self.threads, **self.kind.options)
        return sum(len(live.push(part)) for part in parts) + len(live.finish())

    def parts(self, push: int) -> list[pa.Table]:
        """Return the events of each push of about `push` events, with dictionaries of their texts; those of one time are in one push."""
        times = self.events["ts"].to_numpy()
        begins = np.unique(np.searchsorted(times, times[::push])).tolist()
        return [with_own_texts(self.events.slice(begin, end - begin)) for begin, end in zip(begins, [*begins[1:], len(times)], strict=True)]


def asked_of(kind: Kind, events: int, keys: int, threads: int) -> PushedQuestion:
    """Return `kind` over so many events of so many keys, with windows that hold few enough of them."""
    most = max(2, int(_WINDOW * events / keys))
    if kind.keyed:
        kind = replace(kind, workload=replace(kind.workload, streams=-(-keys * DEFAULT_EVENTS // events)))
        kind = _with_window(kind, most)
    if not kind.within:
        ticks = str(kind.ticks(events))
        named = replace(kind, conditions=tuple(each.replace("{ticks}", ticks) for each in kind.conditions), within=True)
        kind = _with_window(named, most, _GAPS)
    made = through_parquet(make(kind.workload, kind.shape, events))
    return PushedQuestion(kind, keys if kind.keyed else 0, made, kind.text(events, items=True), threads)


def _with_window(kind: Kind, most: int, times: int = 1) -> Kind:
    """Return `kind` with a window of so many times its events, `most` of a key at most."""
    return replace(kind, workload=replace(kind.workload, window=min(times * kind.workload.window, most)))


def measured(asked: PushedQuestion, pushes: Sequence[int], repeats: int) -> Iterator[PushedKind]:
    """Yield what pushes of each size take; they take turns with one call over all events."""
    parts = {push: asked.parts(push) for push in pushes}
    calls: list[Callable[[], int]] = [asked.whole, *(partial(asked.pushed, parts[push]) for push in pushes)]
    taken: list[list[float]] = [[] for _ in calls]
    for _ in range(repeats):
        counts = [_timed(call, own) for call, own in zip(calls, taken, strict=True)]
        if len(set(counts)) > 1:
            raise Disagreement(f"{asked.kind.name}: match finds {counts[0]:,} matches, pushes of {pushes} events {counts[1:]}")
    whole, *seconds = map(min, taken)
    for push, own in zip(pushes, seconds, strict=True):
        kind, size = asked.kind, len(asked.events)
        yield PushedKind(kind.name, kind.asked, asked.text, asked.keys, push, len(parts[push]), size, counts[0], own, whole)


def _timed(call: Callable[[], int], taken: list[float]) -> int:
    """Return what a call returns, and add its processor time to `taken`."""
    begin = time.process_time()
    found = call()
    taken.append(time.process_time() - begin)
    return found


def measurements(options: argparse.Namespace) -> Iterator[PushedKind]:
    """Yield what each kind takes, with few keys and with many; what one has taken is given back before the next."""
    for name in options.kinds:
        kind = KINDS[name]
        keyed = [(options.many, (PUSH_OF_MANY,))] if kind.keyed else []
        for keys, pushes in [(options.keys, options.pushes), *keyed]:
            print(f"{name}, {options.events:,} events of {keys:,} keys", file=sys.stderr, flush=True)
            yield from measured(asked_of(kind, options.events, keys, options.threads), pushes, options.repeats)
            gc.collect()


def markdown(where: dict[str, str], found: Sequence[PushedKind], threads: int, repeats: int) -> str:
    """Return the page of a record."""
    queries = {(each.kind, each.keys): each.query for each in found}
    return "\n".join(
        [
            f"# Kinds of questions in streams, {where['machine']}, {where['day']}",
            "",
            f"Commit {where['commit']}; load average {where['load']} before the run; {threads} thread(s), {found[0].events:,} events",
            f"in the order of time, dictionaries of each chunk's own texts; processor time, the least of {repeats} runs in turns.",
            "Written by `python -m benchmarks.kinds.streams`.",
            "",
            "The first figure is the rate of pushes of so many events as a share of that of `match` over all events at once, the other the",
            "milliseconds of a push, as the mean of all. The end of the stream counts as a part of them.",
            "",
            table(found),
            "",
            "## Queries",
            "",
            *(f"- {kind}{f', {keys:,} keys' if keys else ''}: `{query}`" for (kind, keys), query in queries.items()),
            "",
        ]
    )


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kinds.streams", description="Push events of many kinds of questions.")
    parser.add_argument("--events", type=int, default=EVENTS, help="events of each kind")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=STREAMED, metavar="NAME", help="some kinds instead of a dozen")
    parser.add_argument("--pushes", type=int, nargs="+", default=PUSHES, metavar="N", help="events of a push")
    parser.add_argument("--keys", type=int, default=KEYS, help="keys of the events")
    parser.add_argument("--many", type=int, default=MANY_KEYS, help=f"keys beside pushes of {PUSH_OF_MANY:,} events in the last column")
    parser.add_argument("--repeats", type=int, default=REPEATS, help="the best of so many runs counts")
    parser.add_argument("--threads", type=int, default=1, help="threads of the engine")
    parser.add_argument("--folder", type=Path, default=RESULTS, help="where the record goes")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Print and record what pushes of many kinds take."""
    options = _arguments(argv)
    where = machine.environment(PACKAGES)
    found = list(measurements(options))
    record = {"environment": where, "threads": options.threads, "repeats": options.repeats, "pushes": [asdict(each) for each in found]}
    page = markdown(where, found, options.threads, options.repeats)
    pages.publish(page, options.folder, machine.name_on(where, "push-kinds"), record)
    return 0


if __name__ == "__main__":
    sys.exit(main())
