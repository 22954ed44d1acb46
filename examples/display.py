"""Tables as text, at most 100 columns wide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import pyarrow as pa

WIDTH = 100


def table_text(rows: Sequence[Sequence[str]], indent: int = 2) -> str:
    """`rows`, the first being the head, in columns; numbers stand to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    right = [all(_is_number(row[i]) for row in rows[1:]) for i in range(len(widths))]
    lines = [_line(row, widths, right) for row in rows]
    lines.insert(1, "  ".join("─" * width for width in widths))
    return "\n".join((" " * indent + line.rstrip())[:WIDTH] for line in lines)


def matches_text(matches: pa.Table, limit: int) -> str:
    """Return the first `limit` matches, and how many are left out."""
    shown = matches.slice(0, limit)
    rows = [matches.column_names, *([_cell(value) for value in row.values()] for row in shown.to_pylist())]
    more = matches.num_rows - shown.num_rows
    return table_text(rows) + (f"\n  … and {more:,} more" if more else "")


def waterfall_text(counts: Mapping[str, int], seconds: Mapping[str, float]) -> str:
    """Return how the events grew fewer from step to step, and where the time went."""
    most = max(counts.values(), default=0) or 1
    steps = [["step", "left", ""], *([name, f"{count:,}", "█" * -(-40 * count // most)] for name, count in counts.items())]
    times = [["stage", "ms"], *([name, f"{1000 * value:.1f}"] for name, value in seconds.items())]
    return f"{table_text(steps)}\n\n{table_text(times)}"


def _line(row: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    cells = zip(row, widths, right, strict=True)
    return "  ".join(cell.rjust(width) if to_right else cell.ljust(width) for cell, width, to_right in cells)


def _is_number(cell: str) -> bool:
    return cell.replace(",", "").replace(".", "", 1).lstrip("-+").isdigit()


def _cell(value: object) -> str:
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M")
    if isinstance(value, float):
        return f"{value:g}"
    if value is None:
        return "NULL"
    return str(value)
