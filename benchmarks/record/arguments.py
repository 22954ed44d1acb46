"""The options that commands share which measure something and write a record of it."""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.record.folders import RESULTS


def measuring(about: str, events: int, repeats: int) -> argparse.ArgumentParser:
    """Return a parser with ``--events`` and ``--repeats``, and with ``--folder`` for the page and its record.

    By ``--no-record`` a command writes nothing: its `folder` is None.
    """
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--events", type=int, default=events)
    parser.add_argument("--repeats", type=int, default=repeats)
    parser.add_argument("--folder", type=Path, default=RESULTS, help="where the page and its record go")
    parser.add_argument(
        "--no-record", dest="folder", action="store_const", const=None, help="print the page, and write nothing"
    )  # fmt: skip
    return parser
