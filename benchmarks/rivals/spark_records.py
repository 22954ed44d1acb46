"""The record and the page of who should read Parquet under Spark."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict

from benchmarks.record import day_records, pages
from benchmarks.record.day_records import Record, RecordError
from benchmarks.record.machine import ON_SPARK, versions
from benchmarks.spark.times import SparkSeconds

FILES, SHUFFLED, BARE, SQL, PATH = "tasks read files", "Spark's scan and shuffle", "bare hand-over", "SQL", "match(path)"
# The same where Spark does not add up the bytes of batches.
UNBOUNDED = "shuffle, unbounded batches"
# Spark reads and filters what the query needs, and hands it over to Python where it is read.
HANDED = "scan and hand-over"
# A job whose tasks read nothing: what Spark takes for itself.
EMPTY = "empty job"
WAYS = (FILES, SHUFFLED, UNBOUNDED, HANDED, BARE, SQL, PATH, EMPTY)
_COMPARED = (SHUFFLED, UNBOUNDED, HANDED, BARE, SQL, PATH)
# The part of a record that says how often each way answers a question over few events before.
WARM = "warm runs"
# What gpu_match does by itself, of files in no order.
AUTO = "scan='auto'"


def new_record(
    where: Mapping[str, str],
    events: int,
    repeats: int,
    found: Mapping[str, Mapping[str, SparkSeconds]],
    failed: Mapping[str, Mapping[str, str]],
) -> Record:
    """Return the record of a run: for each question, the least that each way took, and why a way `failed` that was asked."""
    questions = {name: {way: asdict(spent) for way, spent in best.items()} for name, best in found.items()}
    return day_records.new_record(where, repeats, questions, events=events, failed={name: dict(why) for name, why in failed.items() if why})


def refuse_losses(before: Record | None, asked: Collection[str], ways: Collection[str]) -> None:
    """Check that a run whose questions are `asked` in some `ways` may be added to the record of its day.

    Raises
    ------
    RecordError
        The record has ways of these questions that the run leaves out.
    """
    known = {} if before is None else before["questions"]
    for name in asked:
        lost = [way for way in WAYS if way in known.get(name, {}) and way not in ways]
        if lost:
            raise RecordError(f"today's record has {name} by {', '.join(lost)}, which this run leaves out; ask it too, or add --no-record")


def page_of(record: Record, group: int) -> str:
    """Return the page of a record whose files have row groups of `group` rows."""
    where = record["environment"]
    head = ["question", *WAYS, *(f"{way} / files" for way in _COMPARED), f"{PATH} and {EMPTY} / files"]
    questions: dict[str, dict[str, SparkSeconds]] = {
        name: {way: SparkSeconds(**spent) for way, spent in ways.items()} for name, ways in record["questions"].items()
    }
    warm = f" after {where[WARM]} runs over a small share of the events, in which Java compiles" if WARM in where else ""
    sections = [
        f"# Who reads Parquet under Spark, on {where['machine']}, {where['day']}",
        f"{versions(where, ON_SPARK)}. {record['events']:,} events in Parquet in the order of time, in row groups of at most {group:,}; "
        f"local[{where['cores']}]; matches are counted; seconds of the best of some warm runs, turn by turn{warm}. "
        "Ratios are times over those "
        "of tasks that read files: by the clock / in the CPU time of all processes, which suffers less from what else the machine does. "
        "Unbounded batches are those that a session sends whose spark.sql.execution.arrow.maxBytesPerBatch is 2147483647. "
        "Scan and hand-over is Spark's scan of the rows and columns that the query needs, and Python counts them without a shuffle. "
        "The bare hand-over shuffles all rows by key to Python, which counts them. The empty job has as many tasks as cores, "
        "whose Python reads nothing; it is what Spark takes for itself, and beside match(path) the least that tasks could take. "
        "A way without a figure failed, as is told below, or was not asked. Written by `python -m benchmarks.rivals.spark_files`.",
        "\n".join([*day_records.run_lines(record), *_failures(record)]),
    ]
    ordered = [row(name, best) for name, best in questions.items() if AUTO not in best]
    if ordered:
        sections.append(pages.table([head, *ordered], figures=len(head) - 1))
    unordered = [_unordered(name, best) for name, best in questions.items() if AUTO in best]
    if unordered:
        title = ["events in random order", AUTO, SHUFFLED, f"{AUTO} / {SHUFFLED}"]
        sections.append(pages.table([title, *unordered], figures=3))
    return "\n\n".join(sections) + "\n"


def row(name: str, best: Mapping[str, SparkSeconds]) -> list[str]:
    """Return a question's seconds, and how many times as long as the files' road the other ways take, by the clock and of cores."""
    known = [f"{best[way].clock:.2f}" if way in best else "" for way in WAYS]
    least = {FILES: best[FILES], PATH: _sum(best[PATH], best[EMPTY])} if {FILES, PATH, EMPTY} <= best.keys() else {}
    return [name, *known, *(_ratio(best, way, FILES) for way in _COMPARED), _ratio(least, PATH, FILES)]


def _sum(one: SparkSeconds, other: SparkSeconds) -> SparkSeconds:
    return SparkSeconds(one.clock + other.clock, one.cores + other.cores)


def _unordered(name: str, best: Mapping[str, SparkSeconds]) -> list[str]:
    seconds = [f"{best[way].clock:.2f}" if way in best else "" for way in (AUTO, SHUFFLED)]
    return [name, *seconds, _ratio(best, AUTO, SHUFFLED)]


def _ratio(best: Mapping[str, SparkSeconds], way: str, other: str) -> str:
    if other not in best or way not in best:
        return ""
    return f"{best[way].clock / best[other].clock:.1f} / {best[way].cores / best[other].cores:.1f}"


def _failures(record: Record) -> list[str]:
    """Return a line for each way that was asked and failed, with its error."""
    return [f"- {name} by {way} failed: {why}" for name, ways in record.get("failed", {}).items() for way, why in ways.items()]
