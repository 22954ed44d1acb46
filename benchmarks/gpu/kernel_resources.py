"""What each kernel takes of a GPU: registers, stack and spilled bytes of one thread, told by the compiler; no device is needed.

``python -m benchmarks.gpu.kernel_resources`` writes results/kernel-resources.md
and .json, and the docs' page on cards anew, which tells of them. Each set of
argument types in the table of cases is compiled once, unless the record has it
from the same sources, types and versions; with ``--all`` all are compiled.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from benchmarks.gpu import versus_cpu
from benchmarks.gpu.device_code import CAPABILITIES, WHEELS, Capability, Resources, distinct_cases, forbidden, machine_code, ptx, types_of
from benchmarks.record import pages
from benchmarks.record.folders import RESULTS
from benchmarks.record.machine import package_version
from gpu_cep_kernels.compile import entries
from tests.kernel_cases import KernelCase

PACKAGES = ("numba", *WHEELS)
NAME = "kernel-resources"
# The modules that say what code is generated.
COMPILERS = ("bundles", "cuda_pipelines", "elements", "entries", "indexes", "known_calls", "operations", "pipelines")


@dataclass(frozen=True, slots=True)
class Row:
    """One kernel with arguments of certain types, on each architecture (``sm_90``); `key` is of what it was compiled from."""

    kernel: str
    variant: str
    key: str
    parallel: bool
    resources: dict[str, Resources]


def recorded() -> dict[str, dict[str, Resources]]:
    """Return what the record has of each kernel, by the key of the row."""
    rows = json.loads((RESULTS / f"{NAME}.json").read_text(encoding="utf-8"))["kernels"]
    return {row["key"]: {name: Resources(**found) for name, found in row["resources"].items()} for row in rows}


def measured(case: KernelCase, known: Mapping[str, dict[str, Resources]]) -> Row:
    """Return the case with what is known of it, or else compiled for all architectures."""
    key = key_of(case)
    found = known.get(key, {})
    resources = {
        name: found.get(name) or _compiled(case, capability)
        for name, capability in ((f"sm_{10 * major + minor}", (major, minor)) for major, minor in CAPABILITIES)
    }
    return Row(case.kernel.__name__, case.variant, key, case.kernel.parallel, resources)


def _compiled(case: KernelCase, capability: Capability) -> Resources:
    """Compile a case; tests take it that what the record has holds nothing forbidden."""
    text = ptx(case, capability)
    if faults := forbidden(text):
        raise AssertionError(f"the PTX of {case.name} has {', '.join(sorted(faults))}")
    return machine_code(text, capability).resources


def key_of(case: KernelCase) -> str:
    """Return the digest of a kernel's sources, its arguments' types, and of what compiles it for CUDA."""
    return hashlib.sha256(repr((case.kernel.sources, str(types_of(case)), *_compiled_by())).encode()).hexdigest()[:32]


@cache
def _compiled_by() -> tuple[list[str], list[str]]:
    """Return the versions of packages, and the sources, that compile kernels for CUDA."""
    versions = [package_version(package) for package in PACKAGES]
    return versions, [Path(entries.__file__).with_name(f"{name}.py").read_text(encoding="utf-8") for name in COMPILERS]


def markdown(rows: Sequence[Row], versions: dict[str, str]) -> str:
    """Return the rows as a page: parallel kernels first."""
    architectures = [*rows[0].resources]
    named = ", ".join(f"{name} {version}" for name, version in versions.items())
    head = [
        "kernel",
        "arguments",
        *(f"{name} registers" for name in architectures),
        *(f"{name} stack" for name in architectures),
        "spilled",
    ]
    parts = [
        "# What kernels take of a GPU",
        "As the compiler tells, for one thread; nothing here was run on a card. Registers count those of library functions that a kernel "
        "calls. Stack and spilled are bytes; spilled is the most of stores and loads on any architecture.",
        f"Written by `python -m benchmarks.gpu.kernel_resources` with {named}.",
    ]
    for title, parallel in (("Parallel kernels, one thread per index", True), ("Sequential kernels, one thread in all", False)):
        lines = [_line(row) for row in rows if row.parallel is parallel]
        parts += [f"## {title}", pages.table([head, *lines], figures=len(head) - 2)]
    return "\n\n".join(parts) + "\n"


def _line(row: Row) -> list[str]:
    found = row.resources.values()
    spilled = max(max(each.spill_stores, each.spill_loads) for each in found)
    figures = [*(each.registers for each in found), *(each.stack for each in found), spilled]
    return [f"`{row.kernel}`", row.variant, *map(str, figures)]


def main() -> None:
    """Compile cases, write both files and the page made of them, print the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true", help="compile also what the record has as it is")
    known = {} if parser.parse_args().all else recorded()
    rows = [measured(case, known) for case in distinct_cases()]
    versions = {package: package_version(package) for package in PACKAGES}
    page = markdown(rows, versions)
    record = {"versions": versions, "kernels": [asdict(row) for row in rows]}
    pages.write(RESULTS, NAME, page, record)
    versus_cpu.main()
    print(page)


if __name__ == "__main__":
    main()
