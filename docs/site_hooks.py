"""What the site does besides: its first page is the README, and roles in docstrings are code."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
ROLE = re.compile(r":(?:func|class|mod):<code>~?(?:\w+\.)*(\w+)</code>")


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the README as ``index.md``; what it links to in ``docs/`` is beside it."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    files.append(File.generated(config, "index.md", content=readme.replace("](docs/", "](")))
    return files


def on_page_content(html: str, **_: Any) -> str:
    """Show ``:func:`gpu_cep.match``` as the name alone."""
    return ROLE.sub(r"<code>\1</code>", html)
