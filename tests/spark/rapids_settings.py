"""What the RAPIDS Accelerator's documentation says of settings, and of the types that its mapInArrow takes.

`python -m tests.spark.rapids_settings CHECKOUT/docs` writes it to a file beside this one, by which tests
go. (The checkout is of https://github.com/NVIDIA/spark-rapids.)
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

TOLD = Path(__file__).with_suffix(".json")
PAGES = ("configs.md", "additional-functionality/advanced_configs.md")
_SETTING = re.compile(r"^<a name=.*></a>(spark\.rapids\.[\w.]+)\|.*\|([^|]*)\|(?:Startup|Runtime)$", re.MULTILINE)
_OF_MEMORY = re.compile(r"spark\.rapids\.(memory\.gpu|python|sql\.python|sql\.concurrentGpuTasks|sql\.enabled)")
_VERSION = re.compile(r"rapids-4-spark_2\.1\d-(\d+\.\d+\.\d+)")


def told_by(docs: Path) -> dict[str, object]:
    """The settings of memory and of Python workers with their defaults, and what of each type mapInArrow takes."""
    pages = "\n".join((docs / page).read_text(encoding="utf-8") for page in PAGES)
    settings = {name: default for name, default in _SETTING.findall(pages) if _OF_MEMORY.match(name)}
    return {"version": _VERSION.findall(pages)[0], "settings": settings, "types": _types((docs / "supported_ops.md").read_text())}


def _types(text: str) -> dict[str, str]:
    """S (taken), PS (in part) or NS for each type, with the words beside it."""
    kinds = re.findall(r"<th>([A-Z]+)</th>", text.partition("<th>Param(s)</th>")[2].partition("</tr>")[0])
    row = text.partition('<td rowspan="1">PythonMapInArrowExec</td>')[2].partition("</tr>")[0]
    cells = re.findall(r"<td>(.*?)</td>", row.partition("Input/Output</td>")[2])
    return {kind: re.sub(r"<br/>", " ", re.sub(r"</?(?:b|em)>", "", cell)) for kind, cell in zip(kinds, cells, strict=True)}


if __name__ == "__main__":
    TOLD.write_text(json.dumps(told_by(Path(sys.argv[1])), indent=1) + "\n", encoding="utf-8")
