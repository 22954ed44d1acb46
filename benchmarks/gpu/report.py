"""The GPU check's record: what each part found, as Markdown and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.gpu.findings import FAULT, NOTE, ROW, Finding
from benchmarks.record import pages
from benchmarks.record.machine import slug


@dataclass(frozen=True, slots=True)
class PartResult:
    """What one part found, and how long it took."""

    name: str
    title: str
    seconds: float
    findings: Sequence[Finding]

    @property
    def faults(self) -> list[str]:
        return [found.text for found in self.findings if found.kind == FAULT]


@dataclass(frozen=True, slots=True)
class GpuReport:
    device: str
    simulated: bool
    day: str
    seconds: float
    parts: Sequence[PartResult]


def part_markdown(part: PartResult) -> str:
    """Return a part's tables, notes and faults under its title."""
    notes = [found.text for found in part.findings if found.kind == NOTE]
    lines = [f"## {part.title} ({part.seconds:.0f} s)", "", *_tables(part.findings)]
    for text in (*notes, *(f"**FAULT** {text}" for text in part.faults)):
        lines += [text, ""]
    return "\n".join(lines)


def markdown(report: GpuReport) -> str:
    return "\n".join([_heading(report), *map(part_markdown, report.parts)])


def _heading(report: GpuReport) -> str:
    warning = "CUDA simulator: times mean nothing.\n\n" if report.simulated else ""
    faults = sum(len(part.faults) for part in report.parts)
    verdict = f"{faults} faults" if faults else "no faults"
    return f"# GPU check on {report.device}, {report.day}\n\n{warning}{verdict}, {report.seconds:.0f} s.\n"


def _tables(findings: Sequence[Finding]) -> Iterator[str]:
    rows = [found for found in findings if found.kind == ROW]
    for table in dict.fromkeys(found.table for found in rows):
        cells = [found.cells for found in rows if found.table == table]
        heads = list(dict.fromkeys(head for line in cells for head in line))
        lines = [heads, *([line.get(head, "") for head in heads] for line in cells)]
        yield f"### {table}\n\n{pages.table(lines)}\n"


def write(report: GpuReport, folder: Path, only: Sequence[str] = ()) -> tuple[Path, Path]:
    """Write `report` as ``<device>-<day>.json`` and ``.md`` into `folder`; if it has some parts `only`, with their names behind the day."""
    return pages.write(folder, slug("-".join([report.device, report.day, *only])), markdown(report), asdict(report))
