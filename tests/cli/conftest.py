"""A file of events that commands read."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.cli.forms import EVENTS


@pytest.fixture
def events(tmp_path: Path) -> str:
    path = tmp_path / "events.parquet"
    pq.write_table(EVENTS, path)
    return str(path)
