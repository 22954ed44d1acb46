"""Flink: the Java program in ``flink/``, compiled against the jars of PyPI's apache-flink, in a JVM with a local cluster.

Of PyFlink only the jars are used: no event and no match passes through Python but those that are compared.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
import pyflink
from contestant import Job, serve

SOURCES = Path(__file__).parent / "flink"
JARS = Path(pyflink.__file__).parent / "lib"
ROW = np.dtype([("ts", "<i8"), ("value", "<f8"), ("key", "<i4"), ("type", "<i4")])
OPTIONS = ("-Xmx6g", "--add-opens=java.base/java.util=ALL-UNNAMED", "--add-opens=java.base/java.lang=ALL-UNNAMED")


class Flink:
    def __init__(self, job: Job) -> None:
        folder = Path(tempfile.mkdtemp(dir=Path(job.events).parent))
        self.found = folder / "matches.csv"
        self.columns = pq.read_schema(job.expected).names
        _write_rows(job, folder / "events")
        arguments = [folder / "events", ",".join(job.types), job.question, job.window, self.found, job.mode, job.threads]
        command = ["java", *OPTIONS, "-cp", f"{JARS}/*:{_classes(folder)}", "FlinkRival", *map(str, arguments)]
        if job.text:  # else the pattern API answers
            command.append(job.text)
        with (folder / "errors").open("w") as errors:
            self.java = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True)
        self.process = self.java.pid
        self._wait()

    def matches(self) -> pa.Table:
        options = pyarrow.csv.ReadOptions(column_names=self.columns)
        return pyarrow.csv.read_csv(self.found, read_options=options)

    def run(self) -> None:
        print("again", file=self.java.stdin, flush=True)
        self._wait()

    def _wait(self) -> None:
        if self.java.stdout.readline() != "done\n":
            raise RuntimeError(Path(self.found.parent / "errors").read_text()[-2000:])


def _classes(folder: Path) -> Path:
    classes = folder / "classes"
    sources = [str(path) for path in sorted(SOURCES.glob("*.java"))]
    subprocess.run(["javac", "-nowarn", "-cp", f"{JARS}/*", "-d", str(classes), *sources], check=True)
    return classes


def _write_rows(job: Job, path: Path) -> None:
    events = pq.read_table(job.events)
    rows = np.zeros(events.num_rows, dtype=ROW)
    rows["ts"], rows["value"] = events["ts"].to_numpy(), events[job.value].to_numpy()
    rows["type"] = pc.index_in(events["type"].cast(pa.string()), value_set=pa.array(job.types)).to_numpy()
    if job.key is not None:
        rows["key"] = _codes(events[job.key])
    rows.tofile(path)


def _codes(keys: pa.ChunkedArray) -> np.ndarray:
    encoded = keys if pa.types.is_dictionary(keys.type) else keys.dictionary_encode()
    return encoded.combine_chunks().indices.to_numpy()


if __name__ == "__main__":
    serve(Flink)
