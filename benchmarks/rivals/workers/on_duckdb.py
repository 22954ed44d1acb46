"""DuckDB: hand-written SQL over a table of its own in memory, text as ENUM; the matches leave as an Arrow table."""

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
        self.connection.execute(f"CREATE VIEW rows AS SELECT * FROM read_parquet('{job.events}')")
        described = self.connection.execute("DESCRIBE rows").fetchall()
        texts = [name for name, kind, *_ in described if kind == "VARCHAR"]
        for name in texts:
            self.connection.execute(f"CREATE TYPE {name}_kind AS ENUM (SELECT DISTINCT {name} FROM rows ORDER BY 1)")
        columns = ", ".join(f"{name}::{name}_kind AS {name}" if name in texts else name for name, *_ in described)
        self.connection.execute(f"CREATE TABLE events AS SELECT {columns} FROM rows")

    def matches(self) -> pa.Table:
        return self.connection.sql(self.text).to_arrow_table()

    def run(self) -> None:
        self.matches()


if __name__ == "__main__":
    serve(DuckDb)
