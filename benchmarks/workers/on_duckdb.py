"""DuckDB: hand-written SQL over a table of its own in memory, event types as ENUM; the matches leave as an Arrow table."""

from __future__ import annotations

import os

import duckdb
import pyarrow as pa
from contestant import Job, serve


class DuckDb:
    process = os.getpid()

    def __init__(self, job: Job) -> None:
        self.text = job.text
        self.connection = duckdb.connect()
        self.connection.execute(f"SET threads = {job.threads}")
        kinds = ", ".join(f"'{kind}'" for kind in job.types)
        self.connection.execute(f"CREATE TYPE kind AS ENUM ({kinds})")
        self.connection.execute(f"CREATE TABLE events AS SELECT * REPLACE (type::kind AS type) FROM read_parquet('{job.events}')")

    def matches(self) -> pa.Table:
        return self.connection.sql(self.text).to_arrow_table()

    def run(self) -> None:
        self.matches()


if __name__ == "__main__":
    serve(DuckDb)
