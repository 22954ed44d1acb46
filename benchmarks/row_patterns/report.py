"""The page and the record of a run over questions about row patterns: one table, the worst multiple of copying first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.record import pages
from benchmarks.record.machine import LIBRARY, versions

PACKAGES = ("gpu-cep", *LIBRARY, "duckdb")
# What label-only patterns are to reach with ONE ROW PER MATCH on two threads, in rows a second.
AIM = 40e6


@dataclass(frozen=True, slots=True)
class RowPatternTimes:
    """A question of some partitions: seconds by the clock and of all processors, and what others take for the same rows.

    `aimed`: whether the aim is for it: labels decide, and a match is one row.
    `copying`: the processor time of copying the columns. `loop`: that of a C++ loop on one thread. `duckdb`: DuckDB's, and
    by the clock `duckdb_clock`; None where there is none.
    """

    question: str
    partitions: str
    rows: int
    result: int
    aimed: bool
    seconds: float
    cpu_seconds: float
    copying: float
    loop: float | None
    duckdb_clock: float | None
    duckdb: float | None

    @property
    def multiple(self) -> float:
        """Return the processor time as a multiple of copying the columns."""
        return self.cpu_seconds / self.copying


def markdown(where: dict[str, str], found: Sequence[RowPatternTimes], threads: int, repeats: int) -> str:
    return "\n".join(
        [
            f"# MATCH_RECOGNIZE, {where['machine']}, {where['cores']} cores, {where['day']}",
            "",
            f"Commit {where['commit']}; {versions(where, PACKAGES)}.",
            f"Load average {where['load']} before the run. {threads} threads, best of {repeats} runs. "
            "Written by `python -m benchmarks.row_patterns.run`.",
            "",
            *lines(found),
            "",
        ]
    )


def lines(found: Sequence[RowPatternTimes]) -> list[str]:
    """Return what the figures mean, and their table with the worst multiple of copying first."""
    aimed = [each for each in found if each.aimed]
    met = sum(each.rows / each.seconds >= AIM for each in aimed)
    return [
        f"{met} of {len(aimed)} questions that labels decide, with one row per match, reach {AIM / 1e6:.0f} million rows a second.",
        "× is the processor time as a multiple of copying the columns. C++ and DuckDB are the multiples of our processor time that a loop",
        "written for the one question takes on one thread, and DuckDB with window functions, by processor time and by the clock.",
        "",
        pages.table([HEAD, *map(_row, sorted(found, key=lambda each: -each.multiple))], figures=len(HEAD) - 2),
    ]


HEAD = ("question", "partitions", "result", "M rows/s", "M rows per CPU s", "×", "C++", "DuckDB")


def _row(each: RowPatternTimes) -> tuple[str, ...]:
    rates = (each.rows / seconds / 1e6 for seconds in (each.seconds, each.cpu_seconds))
    duckdb = "—"
    if each.duckdb is not None and each.duckdb_clock is not None:
        duckdb = f"{each.duckdb / each.cpu_seconds:.1f} / {each.duckdb_clock / each.seconds:.1f}"
    return (
        each.question,
        each.partitions,
        f"{each.result:,}",
        *(f"{rate:.1f}" for rate in rates),
        f"{each.multiple:.1f}",
        "—" if each.loop is None else f"{each.loop / each.cpu_seconds:.2f}",
        duckdb,
    )
