"""The README and the first steps, Spark's included: their code prints what they show."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.docs.blocks import printed_and_shown

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("page", ["README.md", "docs/get-started.md"])
def test_a_page_prints_what_it_shows(spark: SparkSession, page: str) -> None:
    found = list(printed_and_shown(ROOT / page, spark=spark))
    assert any(shown for _, shown in found)
    for printed, shown in found:
        assert printed == shown
