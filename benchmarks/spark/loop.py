"""The medical question as users of Spark without pattern matching write it: a Python loop over each patient's events."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
from pyspark.sql import DataFrame


def count_by_loop(events: DataFrame, window: int) -> DataFrame:
    """Return the number of matches of each patient, by ``applyInPandas``."""
    relevant = events.where("type IN ('C', 'P', 'D', 'B')").select("patient", "ts", "type")
    return relevant.groupBy("patient").applyInPandas(_counting(window), "matches long")


def _counting(window: int) -> Callable[[pd.DataFrame], pd.DataFrame]:
    def count(patient: pd.DataFrame) -> pd.DataFrame:  # local, so that it travels by value
        ordered = patient.sort_values("ts")
        times, types = ordered["ts"].tolist(), ordered["type"].tolist()
        found = 0
        for start, kind in enumerate(types):
            seen = set()
            later = start
            while kind != "B" and later < len(times) and times[later] - times[start] <= window:
                if types[later] != "B":
                    seen.add(types[later])
                elif len(seen) == 3:
                    found += 1
                    break
                later += 1
        return pd.DataFrame({"matches": [found]})

    return count
