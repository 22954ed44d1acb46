"""Records of single parts of the GPU check, which were run one by one, put together into one record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.gpu.findings import Finding
from benchmarks.gpu.parts import PARTS
from benchmarks.gpu.report import GpuReport, PartResult
from benchmarks.record import pages

# Facts that the records must share: without these, figures of one table would be of different things.
SHARED = ("device", "compute capability", "CUDA, driver", "driver", "processor", "commit", "Python", "numba-cuda", "cupy-cuda13x", "numpy")


class Unlike(Exception):
    """Records that do not belong together; the message says why."""


def joined(paths: Sequence[Path]) -> GpuReport:
    """Return the record with the parts of all; the facts are those of the first.

    Raises
    ------
    Unlike
        The records are of different machines, commits or versions, or two have the same part.
    """
    records = [pages.read(path) for path in paths]
    for path, record in zip(paths, records, strict=True):
        _compare(paths[0], records[0], path, record)
    parts: dict[str, PartResult] = {}
    for path, record in zip(paths, records, strict=True):
        for part in map(part_of, record["parts"]):
            if part.name in parts and part.name != "device":
                raise Unlike(f"{path}: the part {part.name} is in an earlier record, too")
            parts.setdefault(part.name, part)
    ordered = [parts[name] for name in PARTS if name in parts]
    day, seconds = max(record["day"] for record in records), sum(record["seconds"] for record in records)
    return GpuReport(records[0]["device"], records[0]["simulated"], day, seconds, ordered)


def part_of(record: Mapping[str, Any]) -> PartResult:
    """Return a part as it stands in a record."""
    return PartResult(record["name"], record["title"], record["seconds"], [Finding(**found) for found in record["findings"]])


def _compare(first: Path, expected: Mapping[str, Any], path: Path, record: Mapping[str, Any]) -> None:
    """Raise Unlike if two records are not of one machine, commit and installation."""
    one, other = facts_of(expected), facts_of(record)
    differing = [f"{fact} ({one.get(fact)}, {other.get(fact)})" for fact in SHARED if one.get(fact) != other.get(fact)]
    if differing or expected["simulated"] != record["simulated"]:
        raise Unlike(f"{first} and {path} differ in: {', '.join(differing) or 'simulated'}")


def facts_of(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts of a record's first part."""
    findings = [found for part in record["parts"] if part["name"] == "device" for found in part["findings"]]
    return {found["record"]["what"]: found["record"]["value"] for found in findings if found["table"] == "Facts"}
