"""Ask a rival's worker, in the rival's environment."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

WORKERS = Path(__file__).parent / "workers"
PATIENCE = 1_200  # seconds for one worker


def ask(rival: str, name: str, python: Path, job: dict[str, Any]) -> dict[str, Any]:
    """Return what the worker of the environment `name` measured; `job` has the fields of ``workers/contestant.py``'s Job.

    Raises
    ------
    RuntimeError
        The worker failed, or found other matches; `rival` says whose it is.
    """
    command = [str(python), str(WORKERS / f"on_{name}.py"), json.dumps(job)]
    # PYTHONPATH would let this process' packages into the rival's environment
    variables = {each: value for each, value in os.environ.items() if each not in ("PYTHONPATH", "PYSPARK_PYTHON")}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=variables, timeout=PATIENCE)
    if done.returncode:
        raise RuntimeError(f"{rival}, {job['question']}: {done.stderr[-2000:]}")
    measured: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return measured
