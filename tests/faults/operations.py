"""Operations that a test kills at their n-th step, each in a process of its own: they leave a file in a folder."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

import gpu_cep as cep
from gpu_cep.cli import main
from gpu_cep.cli.files import WRITERS, table_target
from gpu_cep_kernels.compile import kernel_cache
from gpu_cep_spark.tasks.spill import Room, whole_streams
from tests.faults.steps import Steps, failing_writes

EVENTS = pa.table({"ts": [1, 2, 3, 4], "type": list("ABAB"), "v": [1.0, 2.0, 3.0, 4.5]})
QUERY = "PATTERN SEQ(A a, B b) WITHIN 5 RETURN a.v AS low, b.v AS high"


def write_table(target: Path) -> None:
    """Write a table as ``-o`` does."""
    table_target(str(target)).write(EVENTS)


def run_command(target: Path) -> None:
    assert main(["gen", "hospital", "-n", "50", "-o", str(target)]) == 0


def save_plan(target: Path) -> None:
    cep.explain(EVENTS, QUERY).save(target)


def save_report(target: Path) -> None:
    cep.report(EVENTS, QUERY, timelines=0, threads=1).save(target)


def keep_kernel(target: Path) -> None:
    kernel_cache._write(target, {"code": bytes(1_000)})


def spill_events(target: Path) -> None:
    """Spill events to the folder, whose files have no names, and write then how many came back."""
    events = pa.table({"ts": np.arange(200), "k": np.arange(200) % 3})
    room = Room(1_000, str(target.parent), lambda table: table["k"].to_numpy().astype(np.uint64) << np.uint64(3))
    came = sum(part.num_rows for part in whole_streams(events.to_batches(), room))
    target.with_suffix(".new").write_text(f"{came}")
    os.replace(target.with_suffix(".new"), target)


# By the name of the file that is left.
OPERATIONS: dict[str, Callable[[Path], None]] = {
    **{f"table{suffix}": write_table for suffix in WRITERS},
    "gen.csv": run_command,
    "plan.mmd": save_plan,
    "run.html": save_report,
    "a.kernel": keep_kernel,
    "spilled.txt": spill_events,
}


def run_killed(target: Path, at: int) -> None:
    """Run the operation that writes the file `target`; at step `at` the process ends as by ``kill -9``."""
    with failing_writes(target.parent, Steps(at, lambda: os.kill(os.getpid(), signal.SIGKILL))):
        OPERATIONS[target.name](target)
