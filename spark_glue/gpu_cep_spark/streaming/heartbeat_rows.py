"""Let Spark's watermark move with the clock where no event comes, by rows that are no events."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import TimestampType

from gpu_cep.analysis.windows import length_of
from gpu_cep.errors import Diagnostic, PatternError, UnsupportedError, nearest
from gpu_cep.lang.ast import UNITS
from gpu_cep_spark.narrowing.pushdown import behind_watermark, column
from gpu_cep_spark.streaming.checks import DELAY

# The column that tells heartbeats from events.
HEARTBEAT = "gpu_cep heartbeat"
_MICROSECOND = 1_000


def heartbeats(df: DataFrame, *, idle: str, timestamp: str = "ts") -> DataFrame:
    """Return a streaming DataFrame to which a heartbeat comes each second, so that an idle source does not stop time.

    A heartbeat is a row whose time is the clock's, less `idle`. Call ``withWatermark()`` on
    the result, and give that to :func:`gpu_cep.gpu_match`, which leaves the heartbeats out.
    As long as events come with the times of now, they are ahead of heartbeats, and change
    nothing. Once none has come for `idle`, the watermark moves with the clock, and the last
    matches come out. An event that comes later than that, also one that waited while the
    query was down, is late.

    Parameters
    ----------
    df
        A streaming DataFrame without a watermark.
    idle
        How long the source may give no event before time goes on without it: text such as
        ``"30 seconds"``.
    timestamp
        The column of times, a TIMESTAMP.

    Raises
    ------
    PatternError
        `idle` is no length of time, or there is no column `timestamp`.
    UnsupportedError
        The DataFrame is no stream, has a watermark already, or its times are no TIMESTAMP.
    """
    micros = _micros(idle)
    _check(df, timestamp)
    clock = df.sparkSession.readStream.format("rate").option("rowsPerSecond", 1).option("numPartitions", 1).load()
    time = F.timestamp_micros(F.unix_micros(F.col("timestamp")) - F.lit(micros))
    values = [time if field.name == timestamp else F.lit(None).cast(field.dataType) for field in df.schema.fields]
    beats = clock.select(*(value.alias(field.name) for value, field in zip(values, df.schema.fields, strict=True)), _told(True))
    return df.select("*", _told(False)).union(beats)


def without_heartbeats(df: DataFrame, timestamp: str) -> DataFrame:
    """Return the events of a DataFrame, without its heartbeats if it has any; the watermark still moves with these."""
    if HEARTBEAT not in df.columns:
        return df
    return df.filter(behind_watermark(~column(HEARTBEAT), timestamp)).drop(HEARTBEAT)


def _told(beats: bool) -> Any:
    return F.lit(beats).alias(HEARTBEAT)


def _micros(idle: str) -> int:
    """Return a length of time in microseconds."""
    length = length_of(idle)
    if length is None or length.unit is None or not length.amount:
        hint = "write it with a unit, such as idle='30 seconds'"
        raise PatternError([Diagnostic(f"idle={idle!r} is no length of time that a clock tells", hint=hint)])
    return int(length.amount * UNITS[length.unit]) // _MICROSECOND


def _check(df: DataFrame, timestamp: str) -> None:
    """Refuse DataFrames that no heartbeats can come to."""
    if timestamp not in df.columns:
        raise PatternError([Diagnostic(f"there is no column {timestamp!r}", hint=nearest(timestamp, df.columns))])
    faults = []
    if not df.isStreaming:
        faults.append(Diagnostic("heartbeats are for a streaming DataFrame, and this one is not", hint="leave them out"))
    if any(DELAY in field.metadata for field in df.schema.fields):
        message = "the DataFrame has a watermark already, which would not move with heartbeats"
        faults.append(Diagnostic(message, hint="call heartbeats() first, and withWatermark() on what it returns"))
    if not isinstance(df.schema[timestamp].dataType, TimestampType):
        faults.append(Diagnostic(f"column {timestamp!r} is no TIMESTAMP, of which alone Spark keeps a watermark"))
    if faults:
        raise UnsupportedError(faults)
