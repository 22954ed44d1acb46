"""The record of a day: what a run of some questions adds to it, what it may not take from it, and which run measured what."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.record import pages

# What a record says of each question, since its questions may be of several runs.
OF_RUN = ("commit", "load", "repeats")
# The parts of a record that have something of each question.
OF_QUESTIONS = ("questions", "measured", "failed")

Record = dict[str, Any]


class RecordError(Exception):
    """A run does not fit the record of its day, or would leave less in it; the message says what to do."""


def new_record(where: Mapping[str, str], repeats: int, questions: Mapping[str, Any], **of_all: object) -> Record:
    """Return the record of a run: what it found of each question, how that was measured, and what holds `of_all` questions."""
    measured = {"commit": where["commit"], "load": where["load"], "repeats": repeats}
    return {"environment": dict(where), **of_all, "questions": dict(questions), "measured": {name: dict(measured) for name in questions}}


def earlier(path: Path, where: Mapping[str, str], alike: Collection[str]) -> Record | None:
    """Return the record that a run adds to; None if it is the first of its day.

    Raises
    ------
    RecordError
        The record was made in another environment: something in `alike` differs.
    """
    if not path.exists():
        return None
    record: Record = pages.read(path)
    known = record["environment"]
    # older records do not tell what has become a choice since
    other = [f"{each} {known.get(each, 0)}" for each in alike if known.get(each) != where[each]]
    if other:
        raise RecordError(f"today's record was made with {', '.join(other)}; move it away, or add --no-record")
    return record


def merged(before: Record | None, run: Record, order: Sequence[str]) -> Record:
    """Return the record with the questions of a further run, which take the place of earlier ones; questions come in an `order`."""
    if before is None:
        return run
    kept = {part: {name: each for name, each in before.get(part, {}).items() if name not in run["questions"]} for part in OF_QUESTIONS}
    both = {part: {**kept[part], **run.get(part, {})} for part in OF_QUESTIONS if part in before or part in run}
    return {**run, **{part: _ordered(each, order) for part, each in both.items()}}


def _ordered(named: Mapping[str, Any], order: Sequence[str]) -> dict[str, Any]:
    listed = [*(name for name in order if name in named), *(name for name in named if name not in order)]
    return {name: named[name] for name in listed}


def run_lines(record: Record) -> list[str]:
    """Return a line for each run: commit, load and repeats, and its questions if there are several runs."""
    runs: dict[tuple[Any, ...], list[str]] = {}
    for name, told in record["measured"].items():
        runs.setdefault(tuple(told[each] for each in OF_RUN), []).append(name)
    lines = []
    for (commit, load, repeats), names in runs.items():
        which = f" {', '.join(names)}." if len(runs) > 1 else ""
        others = "above 0 where others were at work"
        lines.append(f"- Commit {commit}; load average {load} before the first run, {others}; best of {repeats}.{which}")
    return lines
