"""Measure the memory that is left to the process: of the machine, of the containers around it, and of its own address space."""

from __future__ import annotations

import os
from pathlib import Path

try:
    import resource
except ImportError:  # not on Windows
    resource = None  # type: ignore[assignment]

PROC, CGROUPS = Path("/proc"), Path("/sys/fs/cgroup")
# Version 1 of control groups writes no limit as the largest multiple of a page.
_UNLIMITED = 1 << 62


def free_memory() -> int:
    """Return the bytes that can be allocated without swapping or exceeding a limit of the container or the process."""
    known = (machine_memory(), container_memory(), address_space_left())
    return min(each for each in known if each is not None)


def machine_memory(proc: Path = PROC) -> int:
    """Return the free bytes of the machine; caches count as free."""
    meminfo = proc / "meminfo"
    if meminfo.exists():
        return _entries(meminfo)["MemAvailable:"] * 1024
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def container_memory(proc: Path = PROC, cgroups: Path = CGROUPS) -> int | None:
    """Return the free bytes of the process's control group, or of one around it that has fewer; None if nothing limits them.

    Caches count as free.
    """
    membership = proc / "self" / "cgroup"
    if not membership.exists():
        return None
    # hierarchy:controllers:path; version 2 names no controllers, and may be there beside version 1
    listed = (line.split(":", 2) for line in membership.read_text().splitlines())
    paths = {controller: path for _, controllers, path in listed for controller in controllers.split(",")}
    if "memory" in paths:
        return _least_left(cgroups / "memory", paths["memory"], ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"))
    return _least_left(cgroups, paths[""], ("memory.max", "memory.current", "inactive_file")) if "" in paths else None


def address_space(proc: Path = PROC) -> int:
    """Return the bytes of address space that this process has mapped, 0 if the system does not say."""
    statm = proc / "self" / "statm"
    return int(statm.read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE") if statm.exists() else 0


def address_space_left() -> int | None:
    """Return the bytes of address space that this process may still map (``ulimit -v``); None if nothing limits them."""
    if resource is None:
        return None
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if limit == resource.RLIM_INFINITY else max(0, limit - address_space())


def _least_left(root: Path, path: str, names: tuple[str, str, str]) -> int | None:
    """Return the fewest free bytes of the control group at `path` and of those around it; None if nothing limits them.

    Inside a container the group may be mounted as `root` itself; then `path` leads nowhere.
    """
    group = root / path.lstrip("/")
    groups = (each for each in (group, *group.parents) if each.is_relative_to(root))
    left = [bytes_left for each in groups if (bytes_left := _left(each, names)) is not None]
    return min(left, default=None)


def _left(group: Path, names: tuple[str, str, str]) -> int | None:
    """Return the free bytes of one control group; None if it is not there, or nothing limits it."""
    limit, used, cache = names
    bound = (group / limit).read_text().strip() if (group / limit).exists() else "max"
    if bound == "max" or int(bound) >= _UNLIMITED:
        return None
    return max(0, int(bound) - int((group / used).read_text()) + _entries(group / "memory.stat").get(cache, 0))


def _entries(path: Path) -> dict[str, int]:
    """Return the numbers by name of a file of lines ``name number …``."""
    return {name: int(number) for name, number, *_ in (line.split() for line in path.read_text().splitlines())}
