"""Free memory, as the kernel's files tell it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gpu_cep.engine.accounting import host_memory
from gpu_cep.engine.accounting.host_memory import address_space, container_memory, free_memory, machine_memory

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
    ("own", "outer", "left"), [("5000", "max", 4100), ("max", "3000", 2100), ("5000", "3000", 2100), ("2000", "3000", 1100)]
)
def test_the_tightest_group_around_the_process_counts(own: str, outer: str, left: int, tmp_path: Path) -> None:
    proc = process(tmp_path / "proc", "0::/slurm/job_7/step_0\n")
    cgroups = tmp_path / "cgroup"
    files(cgroups / "slurm" / "job_7" / "step_0", VERSION_2 | {"memory.max": own})
    files(cgroups / "slurm" / "job_7", {"memory.stat": STAT})  # its controller is off
    files(cgroups / "slurm", VERSION_2 | {"memory.max": outer})
    assert container_memory(proc, cgroups) == left


def test_groups_of_version_1_may_have_several_controllers_and_limits_around_them(tmp_path: Path) -> None:
    proc = process(tmp_path / "proc", "0::/\n4:hugetlb,memory:/pods/one\n")
    files(tmp_path / "cgroup" / "memory" / "pods" / "one", VERSION_1 | {"memory.limit_in_bytes": "9223372036854771712\n"})
    files(tmp_path / "cgroup" / "memory" / "pods", VERSION_1)
    assert container_memory(proc, tmp_path / "cgroup") == 4150


@pytest.mark.skipif(sys.platform == "win32", reason="no limits of processes")
def test_a_limit_of_the_address_space_counts() -> None:
    program = (
        "import resource; from gpu_cep.engine.accounting import host_memory as memory;"
        "assert memory.address_space_left() is None, 'no limit yet';"
        "resource.setrlimit(resource.RLIMIT_AS, (memory.address_space() + (64 << 20),) * 2);"
        "assert 0 < memory.free_memory() == memory.address_space_left() <= 64 << 20"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


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
    for contained, mapped, free in ((None, None, 700), (900, 800, 700), (500, None, 500), (None, 400, 400), (500, 300, 300)):
        monkeypatch.setattr(host_memory, "container_memory", lambda contained=contained: contained)
        monkeypatch.setattr(host_memory, "address_space_left", lambda mapped=mapped: mapped)
        assert free_memory() == free


def test_the_address_space_of_a_process_holds_its_memory() -> None:
    before, block = address_space(), bytearray(1 << 28)
    assert address_space() - before >= len(block)
