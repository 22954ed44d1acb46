"""Choose into how many tasks a shuffle sends its rows.

Adaptive execution joins small partitions until about one is left for each core. One too many of
these makes a second round of tasks, in which most cores wait. It leaves alone a number of partitions
that a query asks for.
"""

from __future__ import annotations

import re
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession

from gpu_cep.identity import while_alive

# Tasks for each core, so that cores that are done early take over from others.
TASKS_PER_CORE = 4
# The bytes of a task by Spark's estimate: as many if there are more of them than cores need, and never fewer.
TASK_BYTES, FEWEST_BYTES = 64 << 20, 1 << 20
# Spark estimates what it knows nothing of as the largest long integer.
_UNKNOWN = 1 << 62
# More cores than these are not sure to be worth a task each.
FEW_CORES = 32
# The settings that tell how many cores a server has, and what each is where nobody sets it.
_CORES = {"spark.master": "", "spark.executor.instances": None, "spark.executor.cores": None}
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def tasks_of_shuffle(size: int | None, cores: int | None, partitions: int) -> int | None:
    """Return the number of tasks behind a shuffle, None to leave it to adaptive execution.

    Parameters
    ----------
    size
        The bytes of the rows by Spark's estimate, None if it has none.
    cores
        The tasks that run at a time, None if that is not known.
    partitions
        The setting ``spark.sql.shuffle.partitions``; the number is never greater if that is enough for all cores.
    """
    if cores is None:
        return None
    most = max(partitions, cores)
    if size is None:
        # so few cost little even if they are empty
        return most if most <= TASKS_PER_CORE * cores else None
    if size < cores * FEWEST_BYTES:
        return None
    return min(max(TASKS_PER_CORE * cores, -(-size // TASK_BYTES)), size // FEWEST_BYTES, most)


def tasks_of_sums(cores: int | None, partitions: int) -> int | None:
    """Return the number of tasks behind a shuffle of rows that are added up, None to leave it to adaptive execution.

    Such rows are small, and mostly few. A task that sends them writes a file for each task behind it, 200 by Spark's own setting
    `partitions`. So there are as many as cores, if these are few.

    Examples
    --------
    >>> tasks_of_sums(2, 200), tasks_of_sums(16, 8), tasks_of_sums(400, 200), tasks_of_sums(None, 200)
    (2, 8, None, None)
    """
    return None if cores is None or cores > FEW_CORES else min(cores, partitions)


def tasks_of_numbers(session: SparkSession) -> int:
    """Return the number of tasks that number the matches of one stream, each of which is told of all slices."""
    return min(cores_of(session) or FEW_CORES, shuffle_partitions(session))


def shuffle_sums(df: DataFrame, keys: list[str]) -> DataFrame:
    """Return rows that are added up, with those of equal keys in one partition where that is known to pay."""
    tasks = tasks_of_sums(cores_of(df.sparkSession), shuffle_partitions(df.sparkSession))
    return df if tasks is None else df.repartition(tasks, *keys)


def shuffle(df: DataFrame, keys: list[Column]) -> DataFrame:
    """Return the rows with those of equal keys in one partition; without keys all in one."""
    if not keys:
        return df.repartition(1)
    tasks = _tasks_of(df)
    return df.repartition(*keys) if tasks is None else df.repartition(tasks, *keys)


def tasks_behind(df: DataFrame) -> int:
    """Return about how many tasks a shuffle of `df` has."""
    return _tasks_of(df) or shuffle_partitions(df.sparkSession)


def _tasks_of(df: DataFrame) -> int | None:
    return tasks_of_shuffle(estimated_bytes(df), cores_of(df.sparkSession), shuffle_partitions(df.sparkSession))


def shuffle_partitions(session: SparkSession) -> int:
    """Return the number of partitions over which a session shuffles rows, unless a query asks for another."""
    return int(str(session.conf.get("spark.sql.shuffle.partitions")))


def cores_of(session: object) -> int | None:
    """Return how many tasks run at a time; None if a Connect session does not tell."""
    return int(session.sparkContext.defaultParallelism) if isinstance(session, SparkSession) else _cores_of_server(session)


@while_alive
def _cores_of_server(session: Any) -> int | None:
    """Return how many tasks the server of a Connect session runs at a time, as it was started; None if its settings do not tell."""
    master, executors, cores = session.client.get_config_with_defaults(*_CORES.items())
    local = re.fullmatch(r"local\[(\d+)(,.*)?\]", str(master))
    if local is not None:
        return int(local[1])
    return int(executors) * int(cores) if executors and cores else None


def estimated_bytes(df: DataFrame) -> int | None:
    """Return Spark's estimate of the bytes of `df`, which it makes without a job; None if there is none."""
    try:
        size = _told_bytes(df) if isinstance(df.sparkSession, SparkSession) else bytes_in(_explained(df))
    except PySparkException:
        # the action will tell what is wrong with the plan
        return None
    return size if size is not None and size < _UNKNOWN else None


def _told_bytes(df: DataFrame) -> int:
    return int(str(df._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))


def _explained(df: Any) -> str:
    """Return the plan of a Connect DataFrame with its statistics, in words: clients get them in no other form."""
    return str(df._explain_string(mode="cost"))


def bytes_in(explained: str) -> int | None:
    """Return the bytes that the first statistics of a plan in words tell of, rounded as these are; None if there are none.

    Examples
    --------
    >>> bytes_in("Filter (a#1 = A), Statistics(sizeInBytes=1.5 KiB, rowCount=3)")
    1536
    """
    found = re.search(r"Statistics\(sizeInBytes=([\d.E+]+) (\w+)", explained)
    return int(float(found[1]) * 1024 ** _UNITS.index(found[2])) if found is not None and found[2] in _UNITS else None
