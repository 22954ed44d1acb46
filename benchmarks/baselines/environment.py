"""Where and with what the library was measured beside compiled loops."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date

from benchmarks.baselines.cpp_loops import FLAGS, compiler_version, has_compiler
from benchmarks.record.machine import commit, package_version, processor_name


@dataclass(frozen=True, slots=True)
class Environment:
    """The machine, the day and the commit, and the versions of Python, of the compiler and of packages."""

    machine: str
    processors: int
    day: str
    load: float
    commit: str
    python: str
    compiler: str
    packages: dict[str, str]


def environment(packages: Iterable[str]) -> Environment:
    """Return the environment of this process, with the versions of `packages`."""
    return Environment(
        machine=processor_name(),
        processors=len(os.sched_getaffinity(0)),
        day=date.today().isoformat(),
        load=round(os.getloadavg()[0], 1),
        commit=commit(),
        python=platform.python_version(),
        compiler=f"{compiler_version()}, {' '.join(FLAGS[:3])}" if has_compiler() else compiler_version(),
        packages={name: package_version(name) for name in packages},
    )
