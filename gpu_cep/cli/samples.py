"""Make sample events to try patterns on: the same name, size and seed give the same events."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

# Events in a chunk. Each chunk has its own random numbers, so that memory does not grow with the number of events.
CHUNK = 1 << 20

_START = np.datetime64("2026-01-01T00:00:00", "us")

Draw = np.random.Generator
Columns = dict[str, pa.Array]


@dataclass(frozen=True, slots=True)
class Sample:
    """A kind of events and a query over them.

    `key` is the column that splits them into streams, and `keys` the default number of these.
    `seconds` is the mean time between two events.
    """

    name: str
    about: str
    query: str
    key: str
    keys: int
    seconds: float
    columns: Callable[[Draw, int], Columns]

    def chunks(self, events: int, keys: int, seed: int) -> Iterator[pa.Table]:
        """Yield so many events in time order, chunk by chunk; each falls into one of `keys` streams at random."""
        now = _START
        for number in range(-(-events // CHUNK)):
            draw, size = np.random.default_rng((seed, number)), min(CHUNK, events - number * CHUNK)
            times = now + np.cumsum(draw.integers(1, int(2e6 * self.seconds), size)).astype("timedelta64[us]")
            now = times[-1]
            columns = {"ts": pa.array(times), self.key: pa.array(draw.integers(0, keys, size, np.int32)), **self.columns(draw, size)}
            yield pa.table(columns)


def _types(draw: Draw, size: int, shares: dict[str, float]) -> pa.Array:
    codes = draw.choice(len(shares), size, p=list(shares.values())).astype(np.int32)
    return pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(list(shares)))


def _hundredths(values: npt.NDArray[np.float64]) -> pa.Array:
    return pa.array(np.round(values, 2))


def _hospital(draw: Draw, size: int) -> Columns:
    shares = {"C": 0.04, "P": 0.08, "D": 0.04, "B": 0.04, "L": 0.3, "M": 0.3, "R": 0.2}
    return {"type": _types(draw, size, shares), "v": _hundredths(draw.random(size) * 100)}


def _stocks(draw: Draw, size: int) -> Columns:
    shares = {"Trade": 0.2, "Quote": 0.79, "Halt": 0.01}
    volumes = pa.array(draw.integers(1, 1_000, size))
    return {"type": _types(draw, size, shares), "price": _hundredths(100 + draw.standard_normal(size) * 5), "volume": volumes}


def _machines(draw: Draw, size: int) -> Columns:
    return {"celsius": _hundredths(60 + draw.standard_normal(size) * 12), "load": _hundredths(draw.random(size) * 100)}


SAMPLES = {
    sample.name: sample
    for sample in (
        Sample(
            name="hospital",
            about="treatments of patients, most of them of no interest",
            query="PATTERN SEQ(AND(C c, P p+, D d), B b)\nWHERE [patient] AND prev(p.v) < p.v\nWITHIN 15 days\n",
            key="patient",
            keys=1_000,
            seconds=60,
            columns=_hospital,
        ),
        Sample(
            name="stocks",
            about="trades and quotes of symbols",
            query="PATTERN SEQ(Halt h, Trade t+, Quote q)\n"
            "WHERE [symbol] AND t.price > h.price AND q.price < last(t.price)\nWITHIN 1 hour\n",
            key="symbol",
            keys=100,
            seconds=0.5,
            columns=_stocks,
        ),
        Sample(
            name="machines",
            about="readings of machines, for situations that last",
            query="PARTITION BY machine\nDEFINE hot AS celsius > 70, busy AS load > 60\nPATTERN hot overlaps busy; hot during busy\n"
            "WITHIN 10 minutes\n",
            key="machine",
            keys=20,
            seconds=0.5,
            columns=_machines,
        ),
    )
}
