"""Choose who reads the events: tasks by themselves from files, or Spark."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike, fspath
from os.path import isdir
from typing import Any

from pyspark.sql import DataFrame

from gpu_cep.choices import Scan
from gpu_cep.engine.input.device.gpu_files import GpuFiles
from gpu_cep.engine.input.event_files import shorten_name, split_suffix
from gpu_cep.errors import Diagnostic, EventError, PatternError, UnsupportedError, nearest
from gpu_cep_spark.file_matching import DividedFiles, ScanRequest, find_pieces
from gpu_cep_spark.files.card_reading import READ_BY_ARROW
from gpu_cep_spark.files.places import NoCardError, NoScanError
from gpu_cep_spark.jobs import Job
from gpu_cep_spark.slices.choice import AUTO

Paths = str | PathLike[str] | Sequence[str | PathLike[str]]

# How it is told that Spark reads the events.
BY_SPARK = "Spark reads the events"
SCANS: tuple[Scan, ...] = ("auto", "spark", "files", "gpu_files")
# Those by which tasks are asked to read files, and what to do instead where they cannot.
_BY_TASKS: tuple[Scan, ...] = ("files", "gpu_files")
_READ_BY_SPARK = "scan='auto' lets Spark read the events"
# The setting for the bytes of a batch that Spark hands over to Python, and the limit at which it does not add them up.
_BATCH_BYTES, _UNBOUNDED = "spark.sql.execution.arrow.maxBytesPerBatch", str((1 << 31) - 1)
# Suffixes of files that are not of Parquet, with the method of Spark's reader for them.
_OTHERS = {".csv": "csv", ".tsv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json", ".orc": "orc"}


def check_scan(scan: object, slices: float | str | None, engine: str) -> None:
    """Check the keyword `scan`, also beside `slices` and `engine`.

    Raises
    ------
    PatternError
        `scan` is none of :data:`SCANS`.
    UnsupportedError
        Files are to be read by tasks, but cut into slices of a given length, or to a card that the engine does not use.
    """
    if scan not in SCANS:
        raise PatternError([Diagnostic(f"scan={scan!r} is not one of {', '.join(SCANS)}", hint=nearest(str(scan), SCANS))])
    if scan in _BY_TASKS and slices is not None and slices != AUTO:
        message = f"scan={scan!r} cuts along row groups, not into slices={slices!r}"
        raise UnsupportedError([Diagnostic(message, hint="supported: slices='auto' or None")])
    if scan == "gpu_files" and engine == "cpu":
        message = "scan='gpu_files' reads to a card, which engine='cpu' does not use"
        raise UnsupportedError([Diagnostic(message, hint="supported: engine='auto' or 'gpu'; scan='files' has Arrow read to the host")])


def files_of_tasks(job: Job, request: ScanRequest) -> DividedFiles | None:
    """Return the files that tasks read by themselves; None if Spark reads the events.

    Raises
    ------
    UnsupportedError
        Tasks are asked to read files, but cannot, or not so; the message says why.
    EventError
        A file cannot be read.
    """
    if request.scan == "spark" or (request.slices is not None and request.slices != AUTO):
        _tell(job, f"{BY_SPARK}, as scan= or slices= asks")
        return None
    try:
        found = find_pieces(job, request)
    except NoScanError as reason:
        if request.scan in _BY_TASKS:
            hint = READ_BY_ARROW if isinstance(reason, NoCardError) else _READ_BY_SPARK
            raise UnsupportedError([Diagnostic(f"scan={request.scan!r} is not possible: {reason}", hint=hint)]) from None
        _tell(job, f"{BY_SPARK}: {reason}")
        return None
    _tell(job, f"tasks read files: {found.told}")
    return found


def batch_advice(session: Any) -> str:
    """Return which setting of the session spares time when Spark hands events over; empty if it is set."""
    if session.conf.get(_BATCH_BYTES) == _UNBOUNDED:
        return ""
    return f"Spark adds up the bytes of a batch anew for each row: {_BATCH_BYTES} = {_UNBOUNDED} spares that (docs/cluster.md, Batches)"


def _tell(job: Job, what: str) -> None:
    if job.report is not None:
        job.report.tell_scan(what)


def read_paths(session: Any, paths: object) -> DataFrame:
    """Return the DataFrame of Parquet files, folders or globs.

    Raises
    ------
    EventError
        `session` is no Spark session, or `paths` are no paths, or a name is that of a file of another format.
    """
    if not hasattr(session, "read"):
        raise EventError("events: gpu_match(spark, paths, pattern) takes a session of Spark first; of a DataFrame, gpu_match(df, pattern)")
    if isinstance(paths, GpuFiles):
        raise EventError("events: in place of gpu_files(path) give the path: gpu_match(spark, path, pattern, scan='gpu_files')")
    listed = [paths] if isinstance(paths, str | PathLike) else list(paths) if isinstance(paths, list | tuple) else []
    if not listed or not all(isinstance(path, str | PathLike) for path in listed):
        raise EventError(f"events: gpu_match(spark, paths, pattern) takes a path or a list of paths of Parquet files, not {paths!r}")
    names = [fspath(path) for path in listed]
    for path in names:
        # a folder may have any name
        reader = None if path.endswith("/") or isdir(path) else _OTHERS.get(split_suffix(path)[0])
        if reader is not None:
            told = "gpu_match(spark, paths, pattern) reads Parquet"
            raise EventError(f"events: {told}, and {shorten_name(path)} is another format; give the DataFrame spark.read.{reader}(…)")
    frame: DataFrame = session.read.parquet(*names)
    return frame
