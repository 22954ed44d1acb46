"""The cookbook's recipes: each query finds the same under Spark."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import gpu_cep as cep
from tests.spark.samples import as_set

RECIPES = sorted((Path(__file__).resolve().parents[2] / "examples" / "cookbook").glob("*.py"))


# the fast suite runs all of them without Spark
FAST = 2


@pytest.mark.parametrize(
    "recipe",
    [pytest.param(recipe, id=recipe.stem, marks=() if number < FAST else pytest.mark.full) for number, recipe in enumerate(RECIPES)],
)
def test_a_recipe(recipe: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    match = cep.match

    def in_both_places(events: Any, pattern: str, **options: Any) -> pa.Table:
        frame = spark.createDataFrame(events)
        assert as_set(cep.gpu_match(frame, pattern, **options).toArrow()) == as_set(match(frame.toArrow(), pattern, **options))
        asked.append(pattern)
        return match(events, pattern, **options)

    monkeypatch.setattr(cep, "match", in_both_places)
    runpy.run_path(str(recipe))
    assert asked
