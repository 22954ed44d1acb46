"""What is installed and whether it can be imported: the first thing to know of a machine that nobody prepared."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Sequence

from benchmarks.record.machine import package_version

# What must be there beside CuPy and numba-cuda, of which the device itself tells.
REQUIRED = ("hypothesis", "lark", "numba", "numpy", "pyarrow")
PACKAGES = (*REQUIRED, "cupy-cuda13x", "numba-cuda", "nvidia-nvvm", "nvidia-cuda-nvrtc", "cudf-cu13")
# Where the compiler's libraries are looked for, and what changes how kernels run.
SETTINGS = ("CUDA_HOME", "CUDA_PATH", "CUDA_VISIBLE_DEVICES", "CUDA_LAUNCH_BLOCKING", "NUMBA_ENABLE_CUDASIM", "NUMBA_CACHE_DIR")
_IMPORT = "import importlib, sys; importlib.import_module(sys.argv[1])"


def versions() -> list[str]:
    """Return Python, packages, and settings that are set, as lines."""
    found = [f"Python {platform.python_version()} at {sys.executable}"]
    found += [f"{package} {package_version(package)}" for package in PACKAGES]
    return found + [f"{name}={os.environ[name]}" for name in SETTINGS if name in os.environ]


def unusable(packages: Sequence[str]) -> dict[str, str]:
    """Return the packages that cannot be imported, with the reason: they are missing, or do not fit another's version."""
    running = {package: _importing(package) for package in packages}
    return {package: reason for package, process in running.items() if (reason := _reason(process))}


def _importing(package: str) -> subprocess.Popen[str]:
    """Return a process that imports the package, since a failed import may leave parts of it behind."""
    return subprocess.Popen([sys.executable, "-c", _IMPORT, package], stderr=subprocess.PIPE, text=True)


def _reason(process: subprocess.Popen[str]) -> str:
    """Return the last line that a failed import printed; empty if it succeeded."""
    _, errors = process.communicate()
    return (errors.strip().splitlines() or ["no reason given"])[-1] if process.returncode else ""
