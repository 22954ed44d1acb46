"""Commands that are ended, with all that they started, when their time is up."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence

from benchmarks.record.folders import ROOT

LAST_LINES = 15


def finished(command: Sequence[str], seconds: float, environment: Mapping[str, str] | None = None) -> tuple[int | None, str]:
    """Return what a command in the project's folder ended with and printed; None: it was out of time, and ended with all it had started.

    It has `environment` (None: that of this process).
    """
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, start_new_session=True, cwd=ROOT, env=environment)
        try:
            status: int | None = process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            status = None
        output.seek(0)
        return status, output.read()


def last_lines(output: str) -> str:
    """Return the end of what a command printed, for a report; empty if it printed nothing."""
    lines = output.splitlines()[-LAST_LINES:]
    return "\n\n```\n" + "\n".join(lines) + "\n```" if lines else ""
