"""The record and the page of who should read Parquet under Spark; what a run of some questions adds to the record of its day."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict
from typing import Any

from benchmarks.record import pages
from benchmarks.spark.keys import PACKAGES, Taken

FILES, SHUFFLED, BARE, SQL, PATH = "tasks read files", "Spark's scan and shuffle", "bare hand-over", "SQL", "match(path)"
WAYS = (FILES, SHUFFLED, BARE, SQL, PATH)
# What gpu_match does by itself, of files in no order.
AUTO = "scan='auto'"
# What a record says of each question, since its questions may be of several runs.
OF_QUESTION = ("commit", "load", "repeats")

Record = dict[str, Any]


class RecordError(Exception):
    """A run would leave less in the record than there is; the message says what to do."""


def new_record(where: Mapping[str, str], events: int, repeats: int, found: Mapping[str, Mapping[str, Taken]]) -> Record:
    """Return the record of a run: for each question, the least that each way took."""
    return {
        "environment": dict(where),
        "events": events,
        "questions": {name: {way: asdict(spent) for way, spent in best.items()} for name, best in found.items()},
        "measured": {name: {**{each: where[each] for each in OF_QUESTION[:2]}, "repeats": repeats} for name in found},
    }


def refuse_losses(before: Record, where: Mapping[str, str], asked: Collection[str], ways: Collection[str]) -> None:
    """Check that a run whose questions are `asked` in some `ways` may be added to the record of its day and machine.

    Raises
    ------
    RecordError
        The record was made with other packages or cores, or has ways of these questions that the run leaves out.
    """
    known = before["environment"]
    other = [f"{each} {known[each]}" for each in (*PACKAGES, "cores") if known[each] != where[each]]
    if other:
        raise RecordError(f"today's record was made with {', '.join(other)}; move it away, or add --no-record")
    for name in asked:
        lost = [way for way in WAYS if way in before["questions"].get(name, {}) and way not in ways]
        if lost:
            raise RecordError(f"today's record has {name} by {', '.join(lost)}, which this run leaves out; ask it too, or add --no-record")


def merged(before: Record, run: Record, order: Collection[str]) -> Record:
    """Return the record with the questions of a further run, which take the place of earlier ones; questions come in an `order`."""
    both = {name: {**before[name], **run[name]} for name in ("questions", "measured")}
    listed = [*(name for name in order if name in both["questions"]), *(name for name in both["questions"] if name not in order)]
    return {**run, **{part: {name: each[name] for name in listed} for part, each in both.items()}}


def page_of(record: Record, group: int) -> str:
    """Return the page of a record whose files have row groups of `group` rows."""
    where = record["environment"]
    head = ["question", *WAYS, *(f"{way} / files" for way in WAYS[1:])]
    questions: dict[str, dict[str, Taken]] = {
        name: {way: Taken(**spent) for way, spent in ways.items()} for name, ways in record["questions"].items()
    }
    versions = ", ".join(f"{package} {where[package]}" for package in PACKAGES)
    sections = [
        f"# Who reads Parquet under Spark, on {where['machine']}, {where['day']}",
        f"{versions}. {record['events']:,} events in Parquet in the order of time, in row groups of at most {group:,}; "
        f"local[{where['cores']}]; matches are counted; seconds of the best of some warm runs, turn by turn. Ratios are times over those "
        "of tasks that read files: by the clock / in the CPU time of all processes, which suffers less from what else the machine does. "
        "The bare hand-over shuffles all rows by key to Python, which counts them. A way without a figure cannot answer the question, or "
        "was not asked. Written by `python -m benchmarks.rivals.spark_files`.",
        "\n".join(_runs(record["measured"])),
    ]
    ordered = [row(name, best) for name, best in questions.items() if AUTO not in best]
    if ordered:
        sections.append(pages.table([head, *ordered], figures=len(head) - 1))
    unordered = [_unordered(name, best) for name, best in questions.items() if AUTO in best]
    if unordered:
        title = ["events in random order", AUTO, SHUFFLED, f"{AUTO} / {SHUFFLED}"]
        sections.append(pages.table([title, *unordered], figures=3))
    return "\n\n".join(sections) + "\n"


def row(name: str, best: Mapping[str, Taken]) -> list[str]:
    """Return a question's seconds, and how many times as long as the files' road the other ways take, by the clock and of cores."""
    known = [f"{best[way].clock:.2f}" if way in best else "" for way in WAYS]
    return [name, *known, *(_ratio(best, way, FILES) for way in WAYS[1:])]


def _unordered(name: str, best: Mapping[str, Taken]) -> list[str]:
    seconds = [f"{best[way].clock:.2f}" if way in best else "" for way in (AUTO, SHUFFLED)]
    return [name, *seconds, _ratio(best, AUTO, SHUFFLED)]


def _ratio(best: Mapping[str, Taken], way: str, other: str) -> str:
    if other not in best or way not in best:
        return ""
    return f"{best[way].clock / best[other].clock:.1f} / {best[way].cores / best[other].cores:.1f}"


def _runs(measured: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return a line for each run: commit, load and repeats, and its questions if there are several runs."""
    runs: dict[tuple[Any, ...], list[str]] = {}
    for name, said in measured.items():
        runs.setdefault(tuple(said[each] for each in OF_QUESTION), []).append(name)
    lines = []
    for (commit, load, repeats), names in runs.items():
        which = f" {', '.join(names)}." if len(runs) > 1 else ""
        others = "above 0 where others were at work"
        lines.append(f"- Commit {commit}; load average {load} before the first run, {others}; best of {repeats}.{which}")
    return lines
