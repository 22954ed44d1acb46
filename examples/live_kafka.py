"""Watch payments that come from Kafka, and survive a crash: each fraud is written once, whenever the process dies.

``python examples/live_kafka.py`` needs no broker: `Log` stands for a topic, and `Consumer` for a consumer of confluent_kafka, of which
it has the methods that are used here. With a real one, only `main` changes.

What makes it exactly once: the state of the stream, the offsets of the messages that it has seen and the number of frauds that were
written are saved together, in one file that is replaced at once. After a crash the consumer seeks these offsets, and what was
written behind that number is dropped, since it will be found again.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

import gpu_cep as cep

SCHEMA = pa.schema({"ts": pa.timestamp("ms"), "card": pa.string(), "amount": pa.float64()})
FRAUD = """
PATTERN SEQ(small, large)
WHERE [card] AND small.amount < 2 AND large.amount > 400
WITHIN 10 minutes
RETURN large.card AS card, large.amount AS amount
"""


@dataclass(frozen=True, slots=True)
class Message:
    """A message as confluent_kafka gives it."""

    partition_of: int
    offset_of: int
    value_of: bytes

    def partition(self) -> int:
        """Return the number of the partition."""
        return self.partition_of

    def offset(self) -> int:
        """Return the place in the partition."""
        return self.offset_of

    def value(self) -> bytes:
        """Return the message's bytes."""
        return self.value_of


@dataclass
class Consumer:
    """Reads a topic of two partitions from some offsets on, a partition after the other."""

    log: Sequence[Sequence[bytes]]
    offsets: list[int] = field(default_factory=lambda: [0, 0])

    def seek(self, offsets: Iterable[int]) -> None:
        """Go on at these offsets."""
        self.offsets = list(offsets)

    def consume(self, num_messages: int) -> list[Message]:
        """Return the next messages; none if there are no more."""
        found = []
        for partition, values in enumerate(self.log):
            begin = self.offsets[partition]
            end = min(len(values), begin + num_messages // len(self.log))
            found += [Message(partition, offset, values[offset]) for offset in range(begin, end)]
            self.offsets[partition] = end
        return found


@dataclass
class Saved:
    """What survives a crash: the stream, the offsets that it has seen, and how many frauds were written."""

    live: cep.Stream
    offsets: list[int]
    written: int


def load(path: Path) -> Saved:
    """Return what was saved, or a new stream."""
    if not path.exists():
        return Saved(cep.stream(FRAUD, SCHEMA, lateness="1 minute"), [0, 0], 0)
    about, _, state = path.read_bytes().partition(b"\n")
    told = json.loads(about)
    return Saved(cep.stream.load(state), told["offsets"], told["written"])


def save(saved: Saved, path: Path) -> None:
    """Replace what was saved, at once: a crash leaves the old file or the new one."""
    about = json.dumps({"offsets": saved.offsets, "written": saved.written}).encode()
    beside = path.with_suffix(".new")
    with beside.open("wb") as file:
        file.write(about + b"\n" + saved.live.save())
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)


def run(consumer: Consumer, sink: Path, state: Path, *, each: int = 100, save_every: int = 3, crash_after: int | None = None) -> None:
    """Write the frauds among the messages of a consumer to `sink`, a line each; `crash_after` so many polls there is a crash."""
    saved = load(state)
    consumer.seek(saved.offsets)
    drop_lines_behind(sink, saved.written)
    polls = 0
    while messages := consumer.consume(each):
        payments = pa.Table.from_pylist([json.loads(message.value()) for message in messages]).cast(SCHEMA)
        write(saved.live.push(payments), sink, saved)
        for message in messages:
            saved.offsets[message.partition()] = message.offset() + 1
        polls += 1
        if polls == crash_after:
            raise KeyboardInterrupt("a crash")
        if polls % save_every == 0:
            save(saved, state)
    write(saved.live.finish(), sink, saved)


def write(frauds: pa.Table, sink: Path, saved: Saved) -> None:
    """Append frauds to a file, and count them."""
    with sink.open("a") as file:
        for fraud in frauds.to_pylist():
            file.write(f"{fraud['card']} {fraud['match_end']:%H:%M:%S} {fraud['amount']:.2f}\n")
    saved.written += frauds.num_rows


def drop_lines_behind(sink: Path, written: int) -> None:
    """Drop what was written behind the state that was saved."""
    lines = sink.read_text().splitlines(keepends=True) if sink.exists() else []
    sink.write_text("".join(lines[:written]))


def payments(count: int = 3_000) -> list[list[bytes]]:
    """Return the messages of two partitions; now and then a card pays little, and much a minute later."""
    log: list[list[bytes]] = [[], []]
    for number in range(count):
        amount = 1.5 if number % 97 == 0 else 500.0 if number % 97 == 60 else 20.0
        card = f"card {number // 97 % 7}" if amount != 20 else f"card {number % 50}"
        log[number % 2].append(json.dumps({"ts": number * 1_000, "card": card, "amount": amount}).encode())
    return log


def main() -> None:
    """Run until a crash, and then until the end."""
    log = payments()
    with tempfile.TemporaryDirectory() as folder:
        sink, state = Path(folder) / "frauds", Path(folder) / "state"
        try:
            run(Consumer(log), sink, state, crash_after=14)
        except KeyboardInterrupt:
            print(f"crashed; {len(sink.read_text().splitlines())} frauds were written")
        run(Consumer(log), sink, state)
        print(f"ended; {len(sink.read_text().splitlines())} frauds are written")


if __name__ == "__main__":
    main()
