"""A streaming query that is killed or stopped goes on where it was: its sink neither lacks nor repeats a match."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from random import Random
from signal import SIGKILL
from subprocess import DEVNULL, Popen
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import gpu_cep as cep
from tests.docs.blocks import BLOCK
from tests.spark.conftest import ROOT
from tests.spark.samples import as_set
from tests.spark.streaming.live_sources import INSTANT, OPEN, SECOND, START, end, events, run, source, write

pytestmark = pytest.mark.usefixtures("rocks")

# What grows in the course of a micro-batch, in this order, so that a process is killed behind each of its steps.
PLACES = ("checkpoint/offsets", "checkpoint/state", "found", "checkpoint/commits")


KILLS = 20


# the fast suite lets a micro-batch run again whose end was not written down, where it starts a stream anew
@pytest.mark.full
def test_a_process_that_is_killed_neither_loses_nor_repeats_a_match(spark: SparkSession, tmp_path: Path) -> None:
    chance, told = Random(KILLS), events(160, seed=8)
    write(tmp_path / "in", told, 4 * KILLS + 2)
    write(tmp_path / "in", end(), 1)
    for _ in range(KILLS):
        kill_behind(["-m", "tests.spark.streaming.live_sources", str(tmp_path)], tmp_path / chance.choice(PLACES), chance.random())
    run(cep.gpu_match(source(spark, tmp_path / "in"), OPEN, timeouts=True), tmp_path)
    expected = cep.gpu_match(spark.createDataFrame(told), OPEN, timeouts=True).toArrow()
    assert expected.num_rows > 30
    assert as_set(spark.read.parquet(str(tmp_path / "found")).toArrow()) == as_set(expected)


def kill_behind(command: list[str], place: Path, seconds: float) -> None:
    """Run a query in a process of its own, and kill it so long after something new came to a place."""
    before = files_in(place)
    process = Popen([sys.executable, *command], cwd=ROOT, start_new_session=True, stderr=DEVNULL)
    try:
        while files_in(place) == before:
            # however busy the machine is; a query that comes to nothing ends by itself
            assert process.poll() is None, "it ended by itself"
            time.sleep(0.005)
        time.sleep(seconds)
    finally:
        os.killpg(process.pid, SIGKILL)
        process.wait()


def files_in(folder: Path) -> set[str]:
    # folders may go while they are listed, which `rglob` takes for a fault
    return {os.path.join(place, name) for place, folders, names in os.walk(folder) for name in (*folders, *names)}


def test_the_recipe_in_the_docs_goes_on_where_it_was_stopped(spark: SparkSession, tmp_path: Path) -> None:
    blocks = BLOCK.findall((ROOT / "docs" / "streams.md").read_text(encoding="utf-8"))
    (recipe,) = (code for language, code in blocks if language == "python" and "readStream" in code)
    # its paths are relative, and Java does not follow Python into another folder
    names = {name: str(tmp_path / name) for name in ("payments", "alarms", "alarms-state")}
    for name, path in names.items():
        recipe = recipe.replace(f'"{name}"', repr(path))
    for told in (
        payments((0, "Small", 7, 1), (2, "Small", 8, 1)),
        payments((5, "Large", 7, 500), (6, "Large", 8, 500), (90, "Small", 8, 1)),
    ):
        write(tmp_path / "payments", told, 1)
        known: dict[str, Any] = {"spark": spark}
        exec(recipe, known)
        known["query"].processAllAvailable()
        known["query"].stop()
    found = spark.read.parquet(names["alarms"]).toArrow()
    assert sorted(found.column("card").to_pylist()) == [7, 8]
    assert found.column_names == ["match_start", "match_end", "card", "at"]


def payments(*given: tuple[int, str, int, int]) -> pa.Table:
    """Payments by second, type, card and amount."""
    seconds, kinds, cards, amounts = zip(*given, strict=True)
    times = pa.array([START + second * SECOND for second in seconds], INSTANT)
    return pa.table({"ts": times, "type": list(kinds), "card": list(cards), "amount": list(amounts)})
