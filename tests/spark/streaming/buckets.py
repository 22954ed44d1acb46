"""Spark's stateful operator in one process: state variables and timers for each bucket, and a watermark that lags a batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep_spark.streaming.buckets import match_bucket
from gpu_cep_spark.streaming.frames import packing_of
from gpu_cep_spark.streaming.packing import OWNER, Figures, pack_partition, unpack_partition
from gpu_cep_spark.streaming.state import TICKS
from gpu_cep_spark.streaming.work import LiveWork
from gpu_cep_spark.tasks.spill import stream_hashes


@dataclass
class Variable:
    """A state variable, of a value or a list."""

    values: list[Any] = field(default_factory=list)

    def get(self) -> Any:
        return iter(self.values)

    def appendList(self, values: list[Any]) -> None:  # noqa: N802
        self.values += values

    def put(self, values: list[Any]) -> None:
        self.values = list(values)

    def clear(self) -> None:
        self.values = []


@dataclass
class Value(Variable):
    def exists(self) -> bool:
        return bool(self.values)

    def get(self) -> Any:
        return self.values[0]

    def update(self, value: Any) -> None:
        self.values = [value]


@dataclass
class Bucket:
    about: Value = field(default_factory=Value)
    chunks: Variable = field(default_factory=Variable)
    marks: Value = field(default_factory=Value)
    timers: set[int] = field(default_factory=set)

    def is_empty(self) -> bool:
        return not (self.about.values or self.chunks.values or self.marks.values or self.timers)

    def registerTimer(self, at: int) -> None:  # noqa: N802
        self.timers.add(at)

    def deleteTimer(self, at: int) -> None:  # noqa: N802
        self.timers.discard(at)


@dataclass
class Operator:
    """The operator; `frames` are what it gave. Of its buckets, `owner` has no events."""

    work: LiveWork
    delay: int = 0
    watermark: int = 0
    buckets: dict[int, Bucket] = field(default_factory=dict)
    owner: Bucket = field(default_factory=Bucket)
    frames: list[Any] = field(default_factory=list)
    latest: int = 0

    def batch(self, *tasks: pa.Table) -> np.ndarray:
        """One micro-batch of the events that each task packs; which of them are late."""
        arrived: dict[int, list[bytes]] = {}
        for table in tasks:
            for packed in self._packed(table):
                for bucket, chunk in zip(*(column.to_pylist() for column in packed.columns), strict=True):
                    arrived.setdefault(bucket, []).append(chunk)
        for number, given in sorted(arrived.items()):
            self._call(number, given)
        for number in sorted(self.buckets):
            for timer in sorted(self.buckets[number].timers):
                if timer <= self.watermark:
                    self._call(number, None)
                    self.buckets[number].deleteTimer(timer)
        times = np.concatenate([_times(self.work, table) for table in tasks]) if tasks else np.zeros(0, np.int64)
        late = times <= self.watermark * TICKS
        self.latest = max(self.latest, int(times.max(initial=0)))
        self.watermark = max(self.watermark, self.latest // TICKS - self.delay)
        return late

    def is_empty(self) -> bool:
        return all(bucket.is_empty() for bucket in self.buckets.values())

    def idle(self, watermark: int) -> None:
        """Micro-batches without events, once the watermark is so far."""
        self.watermark = watermark
        self.batch()

    @property
    def found(self) -> pa.Table:
        packed = pa.array([piece for frame in self.frames for piece in frame["found"] if piece is not None], pa.binary())
        return pa.Table.from_batches(unpack_partition([pa.record_batch({"found": packed})]), schema=self.work.result)

    def total(self, figure: str) -> int:
        return sum(getattr(Figures(*frame["figures"][0]), figure) for frame in self.frames)

    def _packed(self, table: pa.Table) -> Iterator[pa.RecordBatch]:
        work, whole = self.work, table
        named = whole.select(work.columns).rename_columns([f"c{number}" for number in range(len(work.columns))])
        if work.whole is not None:
            fields = whole.rename_columns([f"c{number}" for number in range(whole.num_columns)])
            named = named.append_column("whole", fields.to_struct_array())
        for number, group in enumerate(work.groups):
            if group.keys:
                own, live = whole.select(group.schema.names), group.first.live
                read = own.select(live.schema.names)
                keys = [read.schema.names.index(group.schema.names[key]) for key in group.keys]
                hashes = stream_hashes(EventColumns(read, live.plan.query, threads=1), keys).astype(np.uint32).view(np.int32)
                named = named.append_column(f"keys{number}", pa.array(hashes))
        for number, constants in work.groups[0].codes.items():
            codes = pc.index_in(named.column(number), pa.array(constants)).cast(pa.int8())
            named = named.set_column(number, f"c{number}", codes)
        return pack_partition(packing_of(work, named.schema), named.to_batches())

    def _call(self, number: int, given: Any) -> None:
        bucket = self.owner if number == OWNER else self.buckets.setdefault(number, Bucket())
        self.frames += match_bucket(self.work, number, (bucket.about, bucket.chunks, bucket, bucket.marks), given, self.watermark)


def _times(work: LiveWork, table: pa.Table) -> np.ndarray:
    times: np.ndarray = table.column(work.live.schema.names[work.live.plan.query.timestamp]).cast(pa.int64()).to_numpy()
    return times
