"""The outputs of the notebook ``tour.ipynb``, made by running it in Jupyter's kernel; ``make pages`` writes them."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).with_name("tour.ipynb")


def executed(folder: Path) -> nbformat.NotebookNode:
    """Return the notebook with the outputs of its cells, run one after the other in `folder`."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    client = NotebookClient(notebook, timeout=300, record_timing=False, resources={"metadata": {"path": str(folder)}})
    # the kernel finds the modules that this process finds
    client.execute(env=os.environ | {"GPU_CEP_QUIET": "1", "PYTHONPATH": os.pathsep.join(sys.path)})
    notebook.metadata.language_info = {"name": "python"}
    return notebook


def main() -> None:
    with TemporaryDirectory() as folder:
        nbformat.write(executed(Path(folder)), NOTEBOOK)


if __name__ == "__main__":
    main()
