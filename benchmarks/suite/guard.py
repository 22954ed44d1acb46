"""The guard: no stage may be slower than its recorded ratio to the floor, which is a copy of the columns in the same run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.baselines.floors import COPY, Floor
from benchmarks.baselines.measure import Stages
from benchmarks.record.folders import RESULTS

RECORDED = RESULTS / "stage-ratios.json"
# Machines differ in what a copy costs beside other work, and noise is large where stages are short.
LIMIT, ALLOWANCE = 2.0, 0.2


@dataclass(frozen=True, slots=True)
class Ratio:
    """How many times as long as a copy of the columns a stage takes; `recorded` is what it took when that was written down."""

    workload: str
    output: str
    stage: str
    copies: float
    recorded: float | None

    @property
    def exceeds(self) -> bool:
        return self.recorded is not None and self.copies > LIMIT * self.recorded + ALLOWANCE


def ratios(stages: Iterable[Stages], floors: Iterable[Floor], recorded: Mapping[str, float]) -> list[Ratio]:
    """Return the ratio of every stage; those of stages that are not in `recorded` have nothing to exceed."""
    copy = {floor.workload: floor.seconds for floor in floors if floor.operation == COPY}
    return [
        Ratio(each.workload, each.output, stage, seconds / copy[each.workload], recorded.get(f"{each.workload}/{each.output}/{stage}"))
        for each in stages
        for stage, seconds in each.seconds.items()
    ]


def read(events: int) -> dict[str, float]:
    """Return the recorded ratios; none if they are of another number of events, for which caches matter more or less."""
    if not RECORDED.exists():
        return {}
    found = json.loads(RECORDED.read_text())
    return found["ratios"] if found["events"] == events else {}


def record(found: Sequence[Ratio], events: int, where: str) -> Path:
    """Write down the ratios that later runs must keep; those of other stages stay if the number of events is the same."""
    kept = read(events) | {f"{each.workload}/{each.output}/{each.stage}": round(each.copies, 3) for each in found}
    RECORDED.write_text(json.dumps({"measured": where, "events": events, "ratios": kept}, indent=1) + "\n")
    return RECORDED
