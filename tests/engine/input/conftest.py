"""Settings that several modules of tests of the input share."""

from __future__ import annotations

from collections.abc import Iterator
from unittest.mock import patch

import pytest

from gpu_cep.engine.input import parquet_files


@pytest.fixture(scope="module")
def short_files_have_dictionaries() -> Iterator[None]:
    """Let short files have dictionaries, too."""
    with patch.object(parquet_files, "_SOME_ROWS", 1):
        yield
