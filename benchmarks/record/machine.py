"""Which machine, commit and versions figures were measured with."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

# The packages whose versions are recorded where the library runs by itself, and where it runs under Spark.
LIBRARY = ("numba", "numpy", "pyarrow")
ON_SPARK = ("pyspark", "pyarrow", "numpy")


def processor_name() -> str:
    path = Path("/proc/cpuinfo")
    names = re.findall(r"^model name\s*:\s*(.+)$", path.read_text(), re.MULTILINE) if path.exists() else []
    return names[0] if names else platform.machine()


def commit() -> str:
    """Return the commit that is checked out, or ``unknown``."""
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return "unknown"
    return found.stdout.strip() or "unknown"


def package_version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def environment(packages: Iterable[str] = ()) -> dict[str, str]:
    """Return the machine, the day, the load and the commit of a measurement, and the versions of `packages`."""
    where = {"machine": processor_name(), "cores": str(len(os.sched_getaffinity(0))), "day": date.today().isoformat()}
    where |= {"load": f"{os.getloadavg()[0]:.1f}", "commit": commit()}
    return where | {package: package_version(package) for package in packages}


def versions(where: Mapping[str, str], packages: Iterable[str]) -> str:
    """Return the versions of `packages` in an environment, in words."""
    return ", ".join(f"{package} {where[package]}" for package in packages)


def described(where: Mapping[str, str], packages: Sequence[str] = ()) -> str:
    """Return the environment of a measurement in words, with the versions of `packages`."""
    told = [where["machine"], f"{where['cores']} cores", where["day"], f"commit {where['commit']}"]
    return ", ".join([*told, *([versions(where, packages)] if packages else [])])


def name_on(where: Mapping[str, str], what: str) -> str:
    """Return the name of a record of `what` in the environment `where`."""
    return f"{what}-{slug(where['machine'])}-{where['day']}"


def slug(text: str) -> str:
    """`text` as a part of a file's name."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
