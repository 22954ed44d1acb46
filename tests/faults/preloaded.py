"""Import, for processes that are forked from one that has imported this, what a plan's first explanation loads."""

import tempfile
from pathlib import Path

from tests.faults.operations import save_plan

with tempfile.TemporaryDirectory() as folder:
    save_plan(Path(folder) / "plan.mmd")
