"""The records that ``make gpu-check`` wrote on cards."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.gpu.crossover import CALLS, TURNS, Turn
from benchmarks.gpu.end_to_end import WHOLE_CALLS, EndToEnd
from benchmarks.gpu.findings import FAULT, ROW
from benchmarks.gpu.first_queries import FIRST, FirstAnswer
from benchmarks.record import pages

# What every record of the check has, and what only a card's facts have.
FIELDS = frozenset(("device", "simulated", "day", "parts"))
CARD_FACTS = ("compute capability", "CUDA, driver", "driver", "processor", "commit")


class NoCard(Exception):
    """A record of the check that was not written on a card."""


@dataclass(frozen=True, slots=True)
class CardRecord:
    """One card's calls by size, at full size, too, where it begins to win, and first queries; `facts` are those of the first part."""

    path: Path
    device: str
    day: str
    facts: Mapping[str, Any]
    faults: int
    calls: tuple[EndToEnd, ...]
    turns: tuple[Turn, ...]
    first: tuple[FirstAnswer, ...]


def newest_records(folder: Path) -> list[CardRecord]:
    """Return for each card its newest record in `folder` that has calls by size; of one day's, that of the most calls.

    Raises
    ------
    NoCard
        There is a record of the check in it that is no card's.
    """
    newest: dict[str, CardRecord] = {}
    for found in sorted(_records(folder), key=lambda record: (record.day, len(record.calls))):
        newest[found.device] = found
    return [newest[device] for device in sorted(newest)]


def _records(folder: Path) -> Iterator[CardRecord]:
    for path in sorted(folder.glob("*.json")):
        record = pages.read(path)
        if isinstance(record, dict) and record.keys() >= FIELDS:
            found = measured(path, record)
            if found.calls:
                yield found


def measured(path: Path, record: Mapping[str, Any]) -> CardRecord:
    """Return what a record of the check, which lies at `path`, says.

    Raises
    ------
    NoCard
        It is of the simulator, or does not say which card, driver and host it is of.
    """
    if record["simulated"]:
        raise NoCard(f"{path}: written on the CUDA simulator, whose times mean nothing; take it out of {path.parent}")
    findings = [found for part in record["parts"] for found in part["findings"]]
    rows: dict[str, list[Any]] = {"Facts": [], CALLS: [], WHOLE_CALLS: [], TURNS: [], FIRST: []}
    for found in findings:
        if found["kind"] == ROW and found["table"] in rows:
            rows[found["table"]].append(found["record"])
    facts = {fact["what"]: fact["value"] for fact in rows["Facts"]}
    if missing := [fact for fact in CARD_FACTS if fact not in facts]:
        raise NoCard(f"{path}: no card's record, for it does not tell: {', '.join(missing)}")
    faults = sum(found["kind"] == FAULT for found in findings)
    calls = tuple(EndToEnd(**row) for row in rows[CALLS] + rows[WHOLE_CALLS])
    turns = tuple(Turn(**row) for row in rows[TURNS])
    first = tuple(FirstAnswer(**row) for row in rows[FIRST])
    return CardRecord(path, record["device"], record["day"], facts, faults, calls, turns, first)
