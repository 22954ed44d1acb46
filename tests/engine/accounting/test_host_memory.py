"""Free memory, as the kernel's files tell it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpu_cep.engine.accounting import host_memory
from gpu_cep.engine.accounting.host_memory import container_memory, free_memory, machine_memory

STAT = "anon 900\ninactive_file 100\ntotal_inactive_file 150\n"
VERSION_1 = {"memory.limit_in_bytes": "5000\n", "memory.usage_in_bytes": "1000\n", "memory.stat": STAT}
VERSION_2 = {"memory.max": "5000\n", "memory.current": "1000\n", "memory.stat": STAT}


def files(root: Path, contents: dict[str, str]) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    for name, text in contents.items():
        (root / name).write_text(text)
    return root


def process(root: Path, membership: str) -> Path:
    """A /proc whose process is in these control groups."""
    files(root / "self", {"cgroup": membership})
    return root


def test_of_the_machine(tmp_path: Path) -> None:
    proc = files(tmp_path, {"meminfo": "MemTotal:  900 kB\nMemFree:  100 kB\nMemAvailable:  300 kB\nHugePages_Total:  0\n"})
    assert machine_memory(proc) == 300 * 1024
    assert machine_memory(tmp_path / "another system") > 0


def test_of_a_container_of_version_2(tmp_path: Path) -> None:
    proc = process(tmp_path / "proc", "0::/pods/one\n")
    cgroups = tmp_path / "cgroup"
    files(cgroups / "pods" / "one", VERSION_2)
    assert container_memory(proc, cgroups) == 4100


def test_of_a_container_of_version_1_that_sees_itself_at_the_root(tmp_path: Path) -> None:
    proc = process(tmp_path / "proc", "0::/\n9:cpu,cpuacct:/pods/one\n4:memory:/pods/one\n")
    files(tmp_path / "cgroup" / "memory", VERSION_1)
    assert container_memory(proc, tmp_path / "cgroup") == 4150


@pytest.mark.parametrize(
    ("membership", "folder", "contents"),
    [
        ("0::/\n", ".", VERSION_2 | {"memory.max": "max\n"}),
        ("4:memory:/\n", "memory", VERSION_1 | {"memory.limit_in_bytes": "9223372036854771712\n"}),
        ("0::/\n", ".", {}),
        ("4:cpu:/\n", ".", {}),
    ],
)
def test_of_none(membership: str, folder: str, contents: dict[str, str], tmp_path: Path) -> None:
    files(tmp_path / "cgroup" / folder, contents)
    assert container_memory(process(tmp_path / "proc", membership), tmp_path / "cgroup") is None
    assert container_memory(tmp_path / "another system", tmp_path / "cgroup") is None


def test_the_smaller_one_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_memory, "machine_memory", lambda: 700)
    for contained, free in ((None, 700), (900, 700), (500, 500)):
        monkeypatch.setattr(host_memory, "container_memory", lambda contained=contained: contained)
        assert free_memory() == free
