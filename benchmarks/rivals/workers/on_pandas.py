"""pandas-match-recognize: a row pattern over a DataFrame in memory; the matches are a DataFrame."""

from __future__ import annotations

import os

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from contestant import Job, plain_columns, serve
from pandas_match_recognize import match_recognize


class PandasMatchRecognize:
    process = os.getpid()

    def __init__(self, job: Job) -> None:
        self.text = job.text
        self.events: pd.DataFrame = pa.table(plain_columns(pq.read_table(job.events))).to_pandas()

    def matches(self) -> pa.Table:
        return pa.Table.from_pandas(self._answer(), preserve_index=False)

    def run(self) -> None:
        self._answer()

    def _answer(self) -> pd.DataFrame:
        return match_recognize(self.text, relevant(self.events) if "FROM relevant" in self.text else self.events)


def relevant(events: pd.DataFrame) -> pd.DataFrame:
    """Return the C, P, D and B, with a column for each of the first three that has the time of its events."""
    kept = events[events["type"].isin(["C", "P", "D", "B"])]
    return kept.assign(**{kind.lower(): kept["ts"].where(kept["type"] == kind) for kind in "CPD"})


if __name__ == "__main__":
    serve(PandasMatchRecognize)
