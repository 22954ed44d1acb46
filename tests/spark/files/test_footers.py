"""Footers leave out row groups without an event that bears on a match, and are judged only by conditions that rule some out."""

from __future__ import annotations

from functools import reduce
from operator import or_
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.dataset import Expression, field
from pyspark.sql.types import LongType, StructField, StructType

from gpu_cep.engine.input import judged_groups
from gpu_cep.engine.input.judged_groups import FIRST, SAMPLED
from gpu_cep.engine.input.wanted_events import Near, Wanted
from gpu_cep_spark.files.footers import read_footers
from gpu_cep_spark.files.scans import FileScan
from gpu_cep_spark.schemas import arrow_schema

GROUPS, ROWS = 400, 4
TYPES = StructType([StructField("ts", LongType()), StructField("n", LongType())])


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of row groups of each judgement."""
    found: list[int] = []
    judge = judged_groups.not_ruled_out
    monkeypatch.setattr(judged_groups, "not_ruled_out", lambda part, *told: found.append(part.num_row_groups) or judge(part, *told))
    return found


def scan_of(path: Path) -> FileScan:
    """A file in the order of time, whose `n` begins anew in each row group."""
    times = np.arange(GROUPS * ROWS)
    pq.write_table(pa.table({"ts": times, "n": times % ROWS}), path, row_group_size=ROWS)
    return FileScan((str(path),), ("ts", "n"), arrow_schema(TYPES, "UTC"), TYPES, {}, None)


def wanted(*conditions: Expression, length: int = 3, complete: bool = False) -> Wanted:
    near = Near("ts", length, dict(enumerate(conditions)), (tuple(range(len(conditions))),), complete)
    return Wanted(reduce(or_, conditions), "ts", {}, near)


@pytest.mark.parametrize("complete", [False, True])
def test_conditions_that_rule_out_no_row_group_are_judged_by_a_sample(tmp_path: Path, complete: bool, judged: list[int]) -> None:
    conditions = [field("n") == number for number in range(3)]
    found = read_footers(None, scan_of(tmp_path / "a.parquet"), "ts", (), wanted(*conditions, complete=complete))
    assert len(found.groups) == GROUPS
    # the condition of all events is judged only where others do not tell as much
    assert judged == [FIRST, SAMPLED - FIRST] * (3 if complete else 4)


def test_equal_conditions_are_judged_once(tmp_path: Path, judged: list[int]) -> None:
    read_footers(None, scan_of(tmp_path / "a.parquet"), "ts", (), wanted(field("n") == 1, field("n") == 1, field("n") == 1))
    assert judged == [FIRST, SAMPLED - FIRST] * 2


def test_a_few_row_groups_tell_that_all_must_be_judged(tmp_path: Path, judged: list[int]) -> None:
    found = read_footers(None, scan_of(tmp_path / "a.parquet"), "ts", (), Wanted(field("ts") < 9, "ts", {}))
    assert len(found.groups) == 3
    assert judged == [FIRST, GROUPS]


@pytest.mark.parametrize("complete", [False, True])
@pytest.mark.parametrize("low", [0, 800, 1200, 1590])
def test_what_is_left_out_is_exact_where_conditions_rule_out_some(tmp_path: Path, low: int, complete: bool) -> None:
    asked = wanted(field("n") == 1, field("ts") >= low, complete=complete)
    found = read_footers(None, scan_of(tmp_path / "a.parquet"), "ts", (), asked)
    # near the first one, so is the row group before
    assert found.groups.group.tolist() == list(range(max(0, (low - 3) // ROWS), GROUPS))
    alone = read_footers(None, scan_of(tmp_path / "a.parquet"), "ts", (), Wanted(field("ts") >= low, "ts", {}))
    assert alone.groups.group.tolist() == list(range(low // ROWS, GROUPS))
