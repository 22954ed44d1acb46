"""Figures on disk: tables in Markdown, a page beside its record in JSON, and how plots look."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.typing import RcKeyType

# matplotlib's: the same figures give the same file; text stays text.
PLOT_SETTINGS: dict[RcKeyType, Any] = {
    "svg.hashsalt": "gpu_cep",
    "svg.fonttype": "none",
    "font.size": 8,
    "axes.spines.right": False,
    "axes.spines.top": False,
}


def table(rows: Sequence[Sequence[str]], figures: int = 0) -> str:
    """Return the rows as a Markdown table with the first for its head; the last `figures` columns stand to the right."""
    head = rows[0]
    ruler = ["---"] * (len(head) - figures) + ["---:"] * figures
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ruler, *rows[1:]))


def write(folder: Path, name: str, page: str, record: dict[str, Any]) -> tuple[Path, Path]:
    """Write `record` as ``<name>.json`` and `page` as ``<name>.md`` into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = folder / f"{name}.json", folder / f"{name}.md"
    paths[0].write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    paths[1].write_text(page, encoding="utf-8")
    return paths


def publish(page: str, folder: Path | None, name: str, record: dict[str, Any]) -> None:
    """Print `page`, and write it with its record into `folder`; None writes nothing."""
    print(page)
    if folder is not None:
        print(*write(folder, name, page, record), sep="\n")


def read(path: Path) -> Any:
    """Return the record that :func:`write` wrote to `path`."""
    return json.loads(path.read_text(encoding="utf-8"))
