"""Events in the shape of the papers' data, drawn at random: the same number and parameters give the same table.

The papers' own data is not at hand. Each generator says which of its properties a paper states; everything else is chosen.
Times rise strictly, so that every order of two events is one that a sequence can ask for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

SEED = 2026
# Ticks between an event and the next are multiples of this; its copies stand in between.
COPY_ROOM = 16

# Treatments: six types that the thesis names, and fourteen others; M is the one that is given often.
ONCO_SHARES = {"C": 0.04, "D": 0.04, "P": 0.04, "R": 0.04, "B": 0.04, "H": 0.04, "M": 0.11} | {f"X{n:02}": 0.05 for n in range(1, 14)}
ONCO_EVENTS_PER_DAY = 50
ONCO_TREATED_AT_ONCE = 10
ONCO_DAYS_BETWEEN_PATIENTS = 4

# Trades of twenty shares, three of which the thesis names.
NYSE_SHARES = dict.fromkeys(("AAPL", "GOOG", "IBM", "MSFT", *(f"S{n:02}" for n in range(1, 17))), 0.05)
NYSE_PAUSES = 0.05  # so many trades are followed by a pause: the others come in bursts
NYSE_GAP_US, NYSE_PAUSE_US = (48, 352), (20_000, 180_000)

# Companies of each region: Europe's and Africa's number are the lazy paper's, which also has over 2100 in all and ratios up to 1:700.
REGIONS = {
    "NorthAmerica": 1400,
    "Europe": 267,
    "Asia": 210,
    "MiddleEast": 90,
    "SouthAmerica": 70,
    "Caribbean": 60,
    "Africa": 8,
    "Pacific": 2,
}
REGION_EVENTS_PER_MINUTE = 50  # of about 2100 in the paper
HISTORY = 10
SECTORS = 24  # histories correlate inside a sector
HISTORY_NOISE = 0.4

TICKER_VALUES = 1_000  # prices and volumes are 1 to 1000
TICKER_SYMBOLS = 2


@lru_cache(maxsize=4)
def onco(events: int) -> pa.Table:
    """Return treatments of patients, of whom ten are treated at a time, each beginning four days after the one before."""
    rng = np.random.default_rng(SEED)
    mean_gap = 86_400 / ONCO_EVENTS_PER_DAY / COPY_ROOM
    seconds = COPY_ROOM * np.cumsum(rng.integers(1, int(2 * mean_gap), events))
    newest = seconds // (86_400 * ONCO_DAYS_BETWEEN_PATIENTS)
    patients = newest + rng.integers(0, ONCO_TREATED_AT_ONCE, events)
    columns = {"ts": pa.array(seconds, pa.timestamp("s")), "patient": patients, "type": drawn(rng, ONCO_SHARES, events)}
    return pa.table(columns)


@lru_cache(maxsize=4)
def nyse(events: int) -> pa.Table:
    """Return trades in bursts; the price of a share walks at random."""
    rng = np.random.default_rng(SEED)
    pausing = rng.random(events) < NYSE_PAUSES
    gaps = np.where(pausing, rng.integers(*NYSE_PAUSE_US, events), rng.integers(*NYSE_GAP_US, events))
    times = COPY_ROOM * np.cumsum(gaps // COPY_ROOM)
    kinds = drawn(rng, NYSE_SHARES, events)
    prices = np.empty(events, np.int64)
    for code in range(len(NYSE_SHARES)):
        own = np.flatnonzero(kinds.indices.to_numpy() == code)
        prices[own] = 50_000 + np.cumsum(rng.integers(-10, 11, len(own)))
    return pa.table({"ts": pa.array(times, pa.timestamp("us")), "type": kinds, "price": prices})


def copied(events: pa.Table, types: Sequence[str], times: int) -> pa.Table:
    """Return the events, cut to the same number, with those of some types `times` times, each copy a tick later (thesis table 4.1)."""
    marked = pc.is_in(events["type"].cast(pa.string()), value_set=pa.array(types)).to_numpy()
    counts = np.where(marked, times, 1)
    rows = np.repeat(np.arange(len(counts)), counts)[: len(counts)]
    ticks = np.arange(len(rows)) - np.concatenate([[0], np.cumsum(counts)])[rows]
    shifted = events["ts"].cast(pa.int64()).to_numpy()[rows] + ticks
    return events.take(pa.array(rows)).set_column(0, "ts", pa.array(shifted).cast(events.schema.field("ts").type))


@lru_cache(maxsize=8)
def tickers(events: int, rising: float) -> pa.Table:
    """Return events of two symbols (SASE+ section 6).

    A price goes up by one with probability `rising`, else down or nowhere; 1000 is followed by 1.
    """
    rng = np.random.default_rng(SEED)
    symbols = rng.integers(1, TICKER_SYMBOLS + 1, events)
    falling = (1 - rising) / 2
    steps = rng.choice([1, -1, 0], events, p=[rising, falling, falling])
    prices = np.empty(events, np.int64)
    for symbol in range(1, TICKER_SYMBOLS + 1):
        own = symbols == symbol
        prices[own] = np.cumsum(steps[own]) % TICKER_VALUES + 1
    volumes = rng.integers(1, TICKER_VALUES + 1, events)
    kinds = pa.DictionaryArray.from_arrays(np.zeros(events, np.int32), ["Stock"])
    return pa.table({"ts": np.arange(events), "type": kinds, "symbol": symbols, "price": prices, "volume": volumes})


@lru_cache(maxsize=4)
def regions(events: int) -> pa.Table:
    """Return prices of companies, whose type is their region; each carries a history of older prices, like those of its sector."""
    rng = np.random.default_rng(SEED)
    return _with_histories(rng, drawn(rng, REGIONS, events))


@lru_cache(maxsize=4)
def shifting(events: int, phase: int) -> pa.Table:
    """Return events of A, B and C, of which another one is rare after each `phase` events."""
    rng = np.random.default_rng(SEED)
    rare = np.arange(events) // phase % 3
    codes = (rare + np.where(rng.random(events) < 0.01, 0, rng.integers(1, 3, events))) % 3
    return _with_histories(rng, pa.DictionaryArray.from_arrays(codes.astype(np.int32), list("ABC")))


def _with_histories(rng: np.random.Generator, kinds: pa.DictionaryArray) -> pa.Table:
    events = len(kinds)
    milliseconds = np.cumsum(rng.integers(1, 2 * 60_000 // REGION_EVENTS_PER_MINUTE, events))
    courses = rng.normal(size=(SECTORS, HISTORY))[rng.integers(0, SECTORS, events)]
    prices = courses + HISTORY_NOISE * rng.normal(size=(events, HISTORY))
    histories = pa.FixedSizeListArray.from_arrays(pa.array(prices.reshape(-1)), HISTORY)
    return pa.table({"ts": pa.array(milliseconds, pa.timestamp("ms")), "type": kinds, "history": histories})


def drawn(rng: np.random.Generator, shares: Mapping[str, float], events: int) -> pa.DictionaryArray:
    """Return types drawn independently of one another, in proportion to `shares`."""
    weights = np.array(list(shares.values()), float)
    codes = rng.choice(len(weights), events, p=weights / weights.sum())
    return pa.DictionaryArray.from_arrays(codes.astype(np.int32), list(shares))
