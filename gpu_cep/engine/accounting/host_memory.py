"""Measure the free memory of the machine, and of the container in which the process runs."""

from __future__ import annotations

import os
from pathlib import Path

PROC, CGROUPS = Path("/proc"), Path("/sys/fs/cgroup")
# Version 1 of control groups writes no limit as the largest multiple of a page.
_UNLIMITED = 1 << 62


def free_memory() -> int:
    """Return the bytes that can be allocated without swapping or exceeding the container's limit."""
    contained = container_memory()
    return machine_memory() if contained is None else min(contained, machine_memory())


def machine_memory(proc: Path = PROC) -> int:
    """Return the free bytes of the machine; caches count as free."""
    meminfo = proc / "meminfo"
    if meminfo.exists():
        return _entries(meminfo)["MemAvailable:"] * 1024
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def container_memory(proc: Path = PROC, cgroups: Path = CGROUPS) -> int | None:
    """Return the free bytes of the process's control group; None if nothing limits it.

    Caches count as free.
    """
    membership = proc / "self" / "cgroup"
    if not membership.exists():
        return None
    # hierarchy:controllers:path; version 2 names no controllers, and may be there beside version 1
    paths = {controllers: path for _, controllers, path in (line.split(":", 2) for line in membership.read_text().splitlines())}
    if "memory" in paths:
        return _left(cgroups / "memory", paths["memory"], ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"))
    return _left(cgroups, paths[""], ("memory.max", "memory.current", "inactive_file")) if "" in paths else None


def _left(root: Path, path: str, names: tuple[str, str, str]) -> int | None:
    """Return the free bytes of the control group at `path`; None if nothing limits it.

    Inside a container the group may be mounted as `root` itself; that is then read.
    """
    limit, used, cache = names
    group = root / path.lstrip("/")
    group = group if (group / limit).exists() else root
    bound = (group / limit).read_text().strip() if (group / limit).exists() else "max"
    if bound == "max" or int(bound) >= _UNLIMITED:
        return None
    return max(0, int(bound) - int((group / used).read_text()) + _entries(group / "memory.stat").get(cache, 0))


def _entries(path: Path) -> dict[str, int]:
    """Return the numbers by name of a file of lines ``name number …``."""
    return {name: int(number) for name, number, *_ in (line.split() for line in path.read_text().splitlines())}
