"""Make the long description of a package index from README.md, whose links lead to files of a checkout."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

# Elsewhere there is nothing that they could lead to.
LINK_TO_A_FILE = re.compile(r"\[([^\]]*)\]\((?!https?://|#)[^)]*\)")


class LongDescription(MetadataHookInterface):
    """Give the package the text of README.md, with the names of files and pages in place of links to them."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the field ``readme`` of the project's metadata."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": LINK_TO_A_FILE.sub(r"\1", text)}
