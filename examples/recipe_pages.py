"""The cookbook's pages, each made of its recipe; ``make pages`` writes them.

A recipe is a script in percent format, as editors and notebooks open it: a
line ``# %% [markdown]`` begins prose, ``# %%`` code. Its page has both, and
under each piece of code what that prints.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RECIPES = sorted((ROOT / "examples" / "cookbook").glob("*.py"))
CELL = re.compile(r"^# %%( \[markdown\])?\n", re.MULTILINE)


def page(recipe: Path) -> str:
    """Return the page of `recipe`, which is run for it."""
    name = recipe.relative_to(ROOT).as_posix()
    return "\n\n".join([f"<!-- make pages writes this page from {name} -->", *_parts(recipe), f"Run it: `python {name}`"]) + "\n"


def page_path(recipe: Path) -> Path:
    """Return where the page stands."""
    return ROOT / "docs" / "cookbook" / f"{recipe.stem.replace('_', '-')}.md"


def _parts(recipe: Path) -> Iterator[str]:
    _, *cells = CELL.split(recipe.read_text(encoding="utf-8"))
    names: dict[str, Any] = {"__name__": "__main__"}
    for markdown, cell in zip(cells[::2], cells[1::2], strict=True):
        text = cell.strip()
        if markdown:
            yield re.sub(r"^# ?", "", text, flags=re.MULTILINE)
            continue
        yield f"```python\n{text}\n```"
        if printed := _printed(text, names):
            yield f"```text\n{printed}```"


def _printed(code: str, names: dict[str, Any]) -> str:
    """Return what `code` prints; `names` are those of the cells before it, and then its own, too."""
    output = StringIO()
    with redirect_stdout(output):
        exec(code, names)
    return output.getvalue()


def main() -> None:
    for recipe in RECIPES:
        page_path(recipe).write_text(page(recipe), encoding="utf-8")


if __name__ == "__main__":
    main()
