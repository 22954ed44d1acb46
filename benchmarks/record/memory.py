"""The most memory that a process has taken."""

from __future__ import annotations

from pathlib import Path


def peak_bytes(process: int | str = "self") -> int:
    """Return the peak of resident bytes of the process of that number; getrusage's would include its parent's at the time of the fork."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024
