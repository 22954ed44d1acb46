"""Files are cut into the slices that cores read soonest, and not where Spark's scan is quicker."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import StructType

from gpu_cep.engine.input.row_groups import RowGroups
from gpu_cep.engine.input.time_cut import SliceReach
from gpu_cep.keywords import read_keywords
from gpu_cep.queries.plans import make_plan
from gpu_cep_spark.files import pieces as file_pieces
from gpu_cep_spark.files.footers import Footers
from gpu_cep_spark.files.pieces import Workers, choose_cut, divide, wanted_pieces
from gpu_cep_spark.files.places import NoScanError
from gpu_cep_spark.files.scans import FileScan
from tests.effort import examples

RISES = "PATTERN SEQ(a, b+) WHERE partition_contiguity { b[1].x > a.x AND b[i].x > b[i-1].x }"
MILLION, WIDTH = 1_000_000, 20


def in_order(number: int, rows: int = MILLION, width: int = WIDTH) -> RowGroups:
    """Row groups in the order of time, one event a tick."""
    begins = np.arange(number) * rows
    held = np.full(number, rows)
    return RowGroups(np.zeros_like(begins), np.arange(number), held, width * held, begins, begins + rows - 1, held > 0, np.zeros_like(held))


@pytest.mark.parametrize(
    ("rows", "cores", "pieces"),
    [(0, 2, 1), (399_999, 2, 1), (400_000, 2, 2), (2_999_999, 2, 2), (3_000_000, 2, 3), (10**9, 2, 8), (3_000_000, 16, 15)],
)
def test_there_are_more_pieces_than_cores_only_of_many_rows(rows: int, cores: int, pieces: int) -> None:
    assert wanted_pieces(rows, cores) == pieces


@pytest.mark.parametrize(
    ("groups", "window", "cores", "slices", "turn"),
    [
        (40, 80_000, 2, 8, 24),  # little is read twice
        (40, 4_500_000, 2, 2, 23),  # of four slices, a core would read 28
        (40, 10_000_000, 2, 2, 25),
        (40, 24_000_000, 2, 2, 32),  # matches begin in 8 groups and in 32
        (40, 4_000_000, 4, 4, 13),
        (10, 20_000, 2, 2, 6),
        (9, 20_000, 8, 8, 2),  # each core reads two groups
    ],
)
def test_fewer_slices_read_less_twice(groups: int, window: int, cores: int, slices: int, turn: int) -> None:
    given, bytes_of_all = in_order(groups), 1 << 40
    cut = choose_cut(given, SliceReach(window), wanted_pieces(groups * MILLION, cores), cores, bytes_of_all)
    assert (len(cut.slices), cut.longest_turn(cores)) == (slices, turn * MILLION)


def test_slices_are_larger_where_small_ones_read_too_much_twice() -> None:
    groups, most = in_order(40), 300 * MILLION
    long = choose_cut(groups, SliceReach(10_000_000), 8, 2, most)
    assert len(long.slices) == 2
    assert most < long.largest <= file_pieces.LARGER * most
    short = choose_cut(groups, SliceReach(1_000_000), 8, 2, 100 * MILLION)
    assert short.largest <= 100 * MILLION


@pytest.mark.parametrize(
    ("groups", "window", "most", "message"),
    [
        (in_order(40), 35_000_000, 1 << 40, "times overlap so much that cores would read 1.9 × their share"),
        (in_order(1), 10, 1 << 40, "cut into 1 slices of time only"),
        (in_order(40), 12_000_000, 100 * MILLION, "a slice of time would hold 520,000,000 bytes, and a worker may hold 100,000,000"),
    ],
)
def test_what_takes_longer_than_the_scan_is_refused(groups: RowGroups, window: int, most: int, message: str) -> None:
    with pytest.raises(NoScanError, match=message):
        choose_cut(groups, SliceReach(window), 8, 2, most)


@pytest.mark.parametrize(
    ("groups", "text", "cores", "told", "output"),
    [
        (10, "PATTERN SEQ(A a, B b) WITHIN 6000000", 2, "one piece, since 2 slices of time would take 0.80 × its time", "count"),
        (10, "PATTERN SEQ(A a, B b) WITHIN 4000000", 2, "2 slices of time, which read 1.40 × the rows", "count"),
        (10, RISES, 2, "one piece, since 2 by a hash of keys would take 0.86 × its time", "count"),
        (10, f"{RISES[:-2].replace('b+)', 'b+, c)')} AND c.x > 0 }}", 2, "2 pieces by a hash of keys, which each read all rows", "count"),
        (10, RISES, 8, "8 pieces by a hash of keys, which each read all rows", "count"),
        (10, RISES, 2, "2 pieces by a hash of keys, which each read all rows", "matches"),
        (20, RISES, 2, "2 pieces by a hash of keys, which each read all rows", "count"),  # a worker may not hold all
        (10, "PATTERN SEQ(A a, B b)", 2, "2 pieces by a hash of keys, which each read all rows", "count"),
    ],
)
def test_one_task_reads_all_where_several_take_hardly_less_time(groups: int, text: str, cores: int, told: str, output: str) -> None:
    schema = pa.schema({"ts": pa.int64(), "type": pa.string(), "x": pa.float64(), "key": pa.int64()})
    plan = make_plan(text, schema, *read_keywords({"partition_by": "key", "output": output}))
    held = in_order(groups)
    footers = Footers(held, (replace(held, earliest=0 * held.rows, latest=held.rows),), (), groups, int(held.rows.sum()))
    scan = FileScan(("a.parquet",), tuple(schema.names), schema, StructType(), {}, None)
    assert divide(plan, scan, footers, ("key",), Workers(cores, None), lambda: 1.0, whole=False).told == told


@pytest.mark.parametrize(
    ("text", "ordered", "share", "told"),
    [
        ("PATTERN SEQ(A a, B b) WITHIN 9500000", True, 0.1, "one piece, since times overlap so much"),
        ("PATTERN SEQ(A a, B b) WITHIN 2600000", False, 0.1, "one piece, since its row groups can be cut into 1 slices of time only"),
        ("PATTERN SEQ(A a, B b) WITHIN 9 EVENTS", True, 0.1, "one piece, since a window of events cannot be cut by times, and"),
        ("PATTERN SEQ(A a, B b)", True, 0.1, "one piece, since a query without a window cannot be cut by times, and the query has no keys"),
        # Spark cuts the stream
        ("PATTERN SEQ(A a, B b) WITHIN 2400000", False, 1.0, None),
        # and spreads its scan
        ("PATTERN SEQ(A a, B b)", True, 0.05, None),
    ],
)
def test_one_task_reads_a_stream_that_spark_would_not_cut_either(text: str, ordered: bool, share: float, told: str | None) -> None:
    schema = pa.schema({"ts": pa.int64(), "type": pa.string()})
    plan = make_plan(text, schema, *read_keywords({}))
    held = in_order(10) if ordered else replace(in_order(10), earliest=np.zeros(10, np.int64), latest=np.full(10, 10 * MILLION - 1))
    footers = Footers(held, (), (), len(held), int(held.rows.sum()))
    scan = FileScan(("a.parquet",), tuple(schema.names), schema, StructType(), {}, None)
    if told is not None:
        assert divide(plan, scan, footers, (), Workers(3, None), lambda: share, whole=False).told.startswith(told)
        with pytest.raises(NoScanError, match="one task would hold 200,000,000 bytes, and may hold 4,000"):
            divide(plan, scan, footers, (), Workers(3, 1_000), lambda: share, whole=False)
        return
    with pytest.raises(NoScanError, match="the query has no keys"):
        divide(plan, scan, footers, (), Workers(3, None), lambda: share, whole=False)


@examples(60, full=600)
@given(st.integers(1, 30), st.integers(0, 40), st.booleans(), st.integers(1, 9), st.integers(1, 900))
def test_slices_fit_and_are_read_sooner_than_by_the_scan(number: int, window: int, back: bool, cores: int, most: int) -> None:
    groups = in_order(number, 3, 10)
    try:
        cut = choose_cut(groups, SliceReach(window, back), wanted := 4 * cores, cores, most)
    except NoScanError:
        return
    assert len(cut.slices) <= wanted or cut.largest <= most
    assert cut.largest <= file_pieces.LARGER * most
    assert cut.longest_turn(cores) * cores <= file_pieces.DEAREST * groups.rows.sum()
