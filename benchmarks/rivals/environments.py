"""A virtual environment for each rival, made on first use under ``benchmarks/rivals/.environments/``; they share nothing."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / ".environments"
REQUIREMENTS = {
    "duckdb": ("duckdb==2.0.0", "pyarrow==26.0.1"),
    "spark": ("pyspark==4.3.0", "pyarrow==26.0.1", "pandas==3.0.6"),
    "flink": ("apache-flink==2.3.0",),
    "pandas": ("pandas_match_recognize==0.2.5", "pyarrow==26.0.1"),
}
TOOLS = {"spark": ("java",), "flink": ("java", "javac")}


@dataclass(frozen=True, slots=True)
class Environment:
    """An environment's Python, or why there is none."""

    python: Path
    missing: str = ""


def environment(name: str, folder: Path = FOLDER) -> Environment:
    """Return the environment with the requirements of `name`, installed if it is not there yet."""
    requirements = REQUIREMENTS[name]
    digest = hashlib.sha256(" ".join((sys.version, *requirements)).encode()).hexdigest()[:12]
    home = folder / f"{name}-{digest}"
    python = home / "bin" / "python"
    absent = [tool for tool in TOOLS.get(name, ()) if shutil.which(tool) is None]
    if absent:
        return Environment(python, f"needs {' and '.join(absent)}")
    stamp = home / "complete"
    if stamp.exists():
        return Environment(python)
    missing = _install(home, requirements)
    if not missing:
        stamp.touch()
    return Environment(python, missing)


def _install(home: Path, requirements: tuple[str, ...]) -> str:
    """Make the environment; the answer is the end of what pip had to say if it could not, else empty."""
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(home)], check=True)
    command = [str(home / "bin" / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check", *requirements]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else f"pip: {_last_line(done.stderr)}"


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no reason given"
