"""Values that Python or a library cannot hold: text that is no UTF-8, years beyond 9999, unknown time zones."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gpu_cep as cep
from gpu_cep.display.cells import json_lines, tab_lines, texts
from gpu_cep.engine.input.readable import readable_texts, readable_value
from gpu_cep.errors import EventError, MatchLimitExceeded

BROKEN = pa.StringArray.from_buffers(3, pa.py_buffer(struct.pack("<4i", 0, 2, 3, 5)), pa.py_buffer(b"ab\xffcd"))
TEXTS = pa.table({"ts": [1, 2, 3], "b": BROKEN})
FAR = pa.table({"ts": pa.array([10**12, 10**12 + 5], pa.timestamp("s"))})
MARS = pa.table({"ts": pa.array([1, 5], pa.timestamp("s", "Mars/X"))})
UNKNOWN = "column '(ts|match_start)' has times of zone 'Mars/X', which is unknown here"


@pytest.fixture(params=["table", "codes", "file"])
def broken(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    if request.param == "file":
        pq.write_table(TEXTS, tmp_path / "broken.parquet")
        return str(tmp_path / "broken.parquet")
    return TEXTS if request.param == "table" else TEXTS.set_column(1, "b", BROKEN.dictionary_encode())


@pytest.mark.parametrize("condition", ["a.b = 'x'", "a.b IN ('x', 'y')"])
def test_a_warning_shows_text_that_is_no_utf_8(broken: Any, condition: str) -> None:
    with pytest.warns(cep.AbsentValueWarning, match="there are 'ab', '�', 'cd'"):
        assert cep.match(broken, f"PATTERN a WHERE {condition}").num_rows == 0


@pytest.mark.parametrize("call", ["upper(a.b) = 'x'", "lower(a.b) = 'x'", "trim(a.b) = 'x'", "substring(a.b, 1, 1) = 'x'"])
def test_a_function_that_must_read_text_names_its_column(broken: Any, call: str) -> None:
    with pytest.raises(EventError, match=rf"column 'b' cannot be read by {call[: call.index('(')]}\(\): Invalid UTF8"):
        cep.match(broken, f"PATTERN a WHERE {call}")


def test_reports_and_pictures_show_text_that_is_no_utf_8(broken: Any) -> None:
    html = cep.report(broken, "PATTERN a WHERE a.b <> 'x'", timelines=0).html
    assert "�" in html
    assert "b = �" in cep.plot(broken, "PATTERN a", partition_by="b", match=2)._repr_svg_()
    assert cep.plot(broken, "PATTERN a WHERE a.b <> 'x'").figure is not None


def test_cells_hold_text_that_is_no_utf_8() -> None:
    nested = pa.table({"x": pa.StructArray.from_arrays([BROKEN], ["b"])})
    assert b"".join(json_lines(nested)).decode() == '{"x": {"b": "ab"}}\n{"x": {"b": "�"}}\n{"x": {"b": "cd"}}\n'
    assert b"".join(tab_lines(TEXTS)).decode() == "ts\tb\n1\tab\n2\t�\n3\tcd\n"
    assert texts(BROKEN.cast(pa.large_string(), safe=False)).to_pylist() == ["ab", "�", "cd"]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
def test_readable_texts_keep_their_type_and_nulls(kind: pa.DataType) -> None:
    assert readable_texts(pa.array(["a", None], kind)).equals(pa.array(["a", None], kind))
    assert readable_texts(pa.concat_arrays([BROKEN, pa.nulls(1, pa.string())]).cast(kind)).equals(pa.array(["ab", "�", "cd", None], kind))


def test_a_limit_names_a_stream_by_text_that_is_no_utf_8() -> None:
    with pytest.raises(MatchLimitExceeded, match="stream b='�'"):
        cep.match(TEXTS.slice(1, 1), "PATTERN a", partition_by="b", max_matches=0)


@pytest.mark.parametrize(
    ("ticks", "kind", "shown"),
    [
        (10**12, pa.timestamp("s"), "33658-09-27 01:46:40"),
        (10**12, pa.timestamp("s", "UTC"), "33658-09-27 01:46:40Z"),
        (1, pa.timestamp("s", "Mars/X"), "1970-01-01 00:00:01Z"),
        (2**31 - 1, pa.date32(), "5881580-07-11"),
        (86_400_000 * 10**9, pa.date64(), "2739877-01-03 00:00:00.000"),
    ],
)
def test_a_limit_names_times_that_python_cannot_hold(ticks: int, kind: pa.DataType, shown: str) -> None:
    times = pa.array([ticks, ticks], pa.int32() if kind == pa.date32() else pa.int64()).cast(kind)
    assert readable_value(times[0]) == shown
    with pytest.raises(MatchLimitExceeded, match=f"the window that starts at ts={shown} .input row 1."):
        cep.match(pa.table({"ts": times}), "PATTERN a", max_matches=1)


@pytest.mark.parametrize(
    "ask",
    [
        lambda: cep.match(MARS, "PATTERN a", result="pandas"),
        lambda: cep.match(MARS, "PATTERN a", result="polars"),
        lambda: cep.plot(MARS, "PATTERN a"),
        lambda: cep.report(MARS, "PATTERN a"),
        lambda: list(tab_lines(MARS)),
        lambda: list(json_lines(MARS)),
    ],
)
def test_an_unknown_zone_is_named_where_a_clock_is_read(ask: Callable[[], object]) -> None:
    with pytest.raises(EventError, match=UNKNOWN):
        ask()


@pytest.mark.parametrize("query", ["PATTERN a RETURN hour(a.ts) AS h", "PATTERN a WHERE hour(a.ts) = 1"])
def test_a_function_of_an_unknown_zone_names_column_and_zone(query: str) -> None:
    with pytest.raises(EventError, match=r"column 'ts' cannot be read by hour\(\): .*Mars/X"):
        cep.match(MARS, query)


def test_matches_need_no_known_zone() -> None:
    assert cep.match(MARS, "PATTERN a").num_rows == 2


@pytest.mark.parametrize("events", [TEXTS.slice(1), FAR, MARS], ids=["text", "far", "zone"])
def test_compressed_matches_say_that_python_cannot_hold_an_event(events: pa.Table) -> None:
    found = cep.match(events, "PATTERN a", output="compressed")
    with pytest.raises(EventError, match=r"an event has a value that Python cannot hold .*; read row numbers by indices\(\)"):
        list(found)
    assert list(found.indices()) == [{"a": (0,)}, {"a": (1,)}]
