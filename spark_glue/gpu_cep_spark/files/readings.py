"""Compare tasks that each read all rows of files with Spark's scan and shuffle, by time."""

from __future__ import annotations

from gpu_cep_spark.files.places import NoScanError

# What Spark takes to scan and filter a row, and what more to shuffle it and hand it to Python, in rows that a task reads and drops at once;
# rounded down, since tasks that read at a time wait for the same memory.
SCANNED, SHUFFLED = 2, 16


def readings_of_shuffle(share: float) -> float:
    """Return the time of Spark's scan and of the shuffle of a `share` of rows, in readings of all rows."""
    return SCANNED + SHUFFLED * share


def refuse_readings(most: float, cores: int, share: float, told: str) -> None:
    """Raise NoScanError if Spark is done before the core that reads all rows `most` times; `told` says in words why it does.

    `share` is that of the rows which Spark shuffles, and `cores` share its work.
    """
    readings = readings_of_shuffle(share)
    if most * cores > readings:
        shuffled = f"Spark's scan of all rows and shuffle of {share:.0%} take {cores} cores as long as {readings / cores:.1f} readings"
        raise NoScanError(f"{told}, and {shuffled}")
