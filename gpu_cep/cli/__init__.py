"""Run the command ``gpu-cep``, which matches, explains and draws patterns over files and pipes.

Exit codes are 0 for done, 1 for an error in the query, 2 in the command line, 3 in the events, and
4 for any other error (:mod:`gpu_cep.cli.outcome`).
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command with `argv` (default: the process's own arguments) and return its exit code."""
    from gpu_cep.cli.commands import app

    try:
        app(None if argv is None else list(argv), prog_name="gpu-cep")
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 0
    return 0
