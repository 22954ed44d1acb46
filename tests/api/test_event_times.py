"""Timestamps of events: which columns can be some, what is missing or no time, and windows of any length."""

from __future__ import annotations

import math
import re
from datetime import datetime

import numpy as np
import pandas
import pyarrow as pa
import pytest
from pyarrow import parquet

import gpu_cep as cep
from gpu_cep.errors import EventError, PatternError
from tests.api.test_input import PATTERN, indices


@pytest.mark.parametrize(
    ("times", "message"),
    [
        (pa.array([1, None, None, 4]), "'ts' holds 2 NULLs"),
        (pa.array([1, 2, 3, None]), "'ts' holds 1 NULL, of 4 events; nulls='drop' .* leaves these events out"),
        (pa.array([None] * 4, pa.timestamp("us")), "'ts' holds 4 NULLs"),
        (pa.nulls(4), "'ts' holds 4 NULLs"),
        (pa.array([1.0, math.nan, 2.0, math.nan]), "'ts' holds 2 NaNs, of 4 events"),
        (pa.array([1, 2, 3, 2**63], pa.uint64()), "column 'ts'.*9223372036854775808"),
    ],
)
def test_timestamps_at_fault(times, message):
    with pytest.raises(EventError, match=message):
        indices(pa.table({"ts": times, "type": ["A", "B", "A", "B"]}), time_unit="s")


@pytest.mark.parametrize(
    "pattern", [PATTERN, f"{PATTERN} seconds", "DEFINE X AS type = 'A', Y AS type = 'B' PATTERN X meets Y WITHIN 1 hour"]
)
def test_timestamps_without_any_value_may_be_left_out(tmp_path, pattern):
    untimed = pa.table({"ts": pa.nulls(2), "type": ["A", "B"]})
    parquet.write_table(untimed, tmp_path / "events.parquet")
    for given in (untimed, tmp_path / "events.parquet"):
        assert cep.match(given, pattern, nulls="drop").num_rows == 0
        with pytest.raises(EventError, match="'ts' holds 2 NULLs, of 2 events"):
            cep.match(given, pattern)


@pytest.mark.parametrize("times", [["x"] * 4, [True] * 4, [[1]] * 4])
def test_timestamps_of_a_type_that_is_none(times):
    with pytest.raises(PatternError, match=r"timestamp 'ts' is of type .*must be an integer, a float, a date or a timestamp"):
        indices(pa.table({"ts": times, "type": ["A", "B", "A", "B"]}))


def test_only_columns_of_times_are_offered_as_timestamps():
    with pytest.raises(PatternError) as caught:
        indices(pa.table({"tipe": ["A"], "when": pa.array([1], pa.timestamp("s"))}), timestamp="time")
    assert [(each.message, each.hint) for each in caught.value.diagnostics] == [
        ("unknown timestamp column 'time'", "there are when; timestamp= says which of them it is"),
        (
            "event types are read from the column that type_column= names, and there is no 'type'",
            "did you mean 'tipe'? columns of text are tipe",
        ),
    ]


def test_where_no_column_has_times_none_is_offered():
    with pytest.raises(PatternError) as caught:
        indices(pa.table({"type": ["A"]}), timestamp="time")
    assert "timestamp=" not in str(caught.value.diagnostics[0].hint)


def test_text_is_no_time_and_nothing_else_is_said_of_it():
    with pytest.raises(PatternError) as caught:
        indices(pa.table({"ts": ["2026-01-01"], "type": ["A"]}), "PATTERN SEQ(A a, B b) WITHIN 1 hour")
    assert len(caught.value.diagnostics) == 1
    assert "--timestamp-format" in caught.value.diagnostics[0].hint


@pytest.mark.parametrize(
    ("texts", "zone"),
    [(["2026-01-01", "2026-01-02 10:00:00"], None), (["2026-04-01T08:00:00+02:00", "2026-11-01T08:00:00+01:00"], "UTC")],
)
def test_the_lines_that_cast_text_to_timestamps_do_so(texts, zone):
    table = pa.table({"type": ["A", "B"], "at": texts})
    with pytest.raises(PatternError) as caught:
        indices(table, timestamp="at")
    hint = caught.value.diagnostics[0].hint
    arrow, frame = re.search(r"cast it: (table\..*\)), (df\['at'\] = .*\)) or df", hint).groups()
    if zone is not None:
        zoned, plain, told = re.search(r"with a zone write (.*\)) in place of ('.*'), and (.*); gpu-cep", hint).groups()
        arrow, frame = arrow.replace(plain, zoned), frame.replace("format='ISO8601'", told)
    df = (table.slice(0, 1) if zone is None else table).to_pandas()
    exec(frame, {"df": df, "pandas": pandas})
    for cast in (eval(arrow, {"table": table, "pyarrow": pa}), pa.table(df)):
        assert cast.schema.field("at").type.tz == zone


ENDS = [-(2**63), 2**63 - 1]


@pytest.mark.parametrize(
    ("times", "window", "found"),
    [
        ([1, 1], "0", 0),
        ([1, 2], "0", 0),
        (ENDS, f"{2**63 - 1}", 0),
        (ENDS, f"{2**64 - 1}", 1),
        (ENDS, f"{10**30}", 1),
        ([0, 2**63 - 1], f"{2**63 - 1}", 1),
        ([-1, 2**63 - 1], f"{2**63 - 1}", 0),
        ([0.0, 1e308], f"{10**400}", 1),
        ([datetime(1, 1, 1), datetime(9999, 12, 31)], f"{10**30} days", 1),
        ([1, 2], f"{10**30} EVENTS", 1),
        ([1, 2], "1 EVENTS", 0),
    ],
)
def test_windows_of_absurd_length(times, window, found):
    table = pa.table({"ts": times, "type": ["A", "B"]})
    assert len(indices(table, f"PATTERN SEQ(A a, B b) WITHIN {window}")) == found


def test_a_window_of_nothing_takes_ties_by_position():
    table = pa.table({"ts": [1, 1], "type": ["A", "B"]})
    assert indices(table, "PATTERN SEQ(A a, B b) WITHIN 0", ties="position") == [{"a": 0, "b": 1}]


@pytest.mark.parametrize("column", ["ts", "day"])
@pytest.mark.parametrize(
    ("time", "told"),
    [
        (86_400_001, "a time that is not midnight"),
        ((1 << 31) * 86_400_000, "a day that date32 does not reach"),
        (-((1 << 31) + 1) * 86_400_000, "a day that date32 does not reach"),
        ((1 << 31) * 86_400_000 + 1, "a time that is not midnight"),
    ],
)
def test_days_that_no_day_of_32_bits_is(column, time, told):
    off = pa.Array.from_buffers(pa.date64(), 2, [None, pa.py_buffer(np.array([0, time]))])
    table = pa.table({"ts": [1, 2], "type": ["A", "B"], "day": off}).drop_columns(["ts"] if column == "ts" else [])
    table = table.rename_columns({"day": column}) if column == "ts" else table
    with pytest.raises(EventError, match=f"column '{column}' of type date64 holds {told}: cast it to timestamps"):
        indices(table, f"PATTERN a WHERE a.{column} > DATE '1970-01-01'")
