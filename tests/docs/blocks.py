"""Pages whose Python is in blocks to be copied, each followed by a block of text where it prints something."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def printed_and_shown(page: Path, **names: Any) -> Iterator[tuple[str, str]]:
    """What each block of Python prints, run in order with `names`, and the text that the page shows for it."""
    blocks = BLOCK.findall(page.read_text(encoding="utf-8"))
    for (language, code), (shown_as, shown) in zip(blocks, [*blocks[1:], ("", "")], strict=True):
        if language == "python":
            output = StringIO()
            with redirect_stdout(output):
                exec(code, names)
            yield output.getvalue(), shown if shown_as == "text" else ""
