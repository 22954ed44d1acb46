"""Lines of JSON: texts that are times have the type that they have in CSV, and keep their zones."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

import gpu_cep as cep
from gpu_cep.engine.input.formats import read_csv, read_files
from gpu_cep.engine.input.json_lines import read_json
from gpu_cep.errors import EventError, PatternError

ZONED = ["2026-03-01T10:00:00+02:00", "2026-03-01T11:30:00Z"]
PLAIN = ["2026-03-01T10:00:00", "2026-03-01T11:30:00"]
QUERY = "PATTERN SEQ(A a, B b) WHERE a.at >= TIMESTAMP '2026-03-01 00:00:00Z' WITHIN 4 hours"


def lines(rows):
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()


def read(rows, text=()):
    return read_json(pa.py_buffer(lines(rows)), "events.jsonl", text)


def events(times):
    return [{"at": time, "type": kind} for time, kind in zip(times, "AB", strict=True)]


@pytest.mark.parametrize(
    "texts",
    [
        ZONED,
        PLAIN,
        [ZONED[0], PLAIN[1]],
        [PLAIN[0], ZONED[1]],
        [ZONED[0], "2026-03-01"],
        ["2026-03-01", "2026-03-02"],
        ["2026-03-01", PLAIN[0]],
        ["2026-03-01T10:00:00.25", PLAIN[0]],
        ["2026-03-01T10:00:00.25Z", ZONED[0]],
        ["2026-03-01 10:00+0200", "2026-03-01T10-05"],
        ["2026-02-30T10:00:00", PLAIN[0]],
        ["0001-01-01T00:00:00", "9999-12-31T23:59:59"],
        ["A", PLAIN[0]],
    ],
)
def test_texts_have_the_type_that_they_have_in_csv(texts):
    found, expected = read([{"at": text} for text in texts]), read_csv(pa.py_buffer("\n".join(["at", *texts]).encode()), "events.csv")
    assert found.schema == expected.schema
    assert found.to_pylist() == expected.to_pylist()


def test_what_is_no_text_and_the_order_of_columns_stay():
    rows = [{"v": 20260301, "w": True, "at": ZONED[0], "n": None, "x": 1}, {"x": 2.5, "late": 1, "at": None}]
    found = read(rows)
    assert found.schema.names == ["v", "w", "at", "n", "x", "late"]
    types = [pa.int64(), pa.bool_(), pa.timestamp("s", "UTC"), pa.null(), pa.float64(), pa.int64()]
    assert found.schema.types == types


def test_text_that_is_asked_for_stays():
    found = read([{"at": text, "until": text} for text in PLAIN], ["at"])
    assert found.column("at").to_pylist() == PLAIN
    assert found.schema.field("until").type == pa.timestamp("s")


def test_texts_inside_of_objects_and_lists_stay():
    rows = [{"o": {"at": ZONED[0], "all": [{"at": PLAIN[0]}]}, "all": ZONED, "v": 1}]
    assert read(rows).to_pylist() == rows


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_zones_reach_the_query(tmp_path, suffix):
    path = tmp_path / f"events{suffix}"
    rows = events(ZONED)
    path.write_bytes(
        lines(rows)
        if suffix == ".jsonl"
        else "".join(f"{row['at']},{row['type']}\n" for row in ({"at": "at", "type": "type"}, *rows)).encode()
    )
    assert cep.match(path, QUERY, timestamp="at", output="indices").to_pylist() == [{"a": 0, "b": 1}]
    with pytest.raises(PatternError, match="only one of them has a time zone"):
        cep.match(path, QUERY.replace("Z'", "'"), timestamp="at")


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_times_with_and_without_a_zone_are_not_mixed(tmp_path, suffix):
    path = tmp_path / f"events{suffix}"
    path.write_bytes(lines(events([PLAIN[0], ZONED[1]])) if suffix == ".jsonl" else f"at,type\n{PLAIN[0]},A\n{ZONED[1]},B\n".encode())
    with pytest.raises(PatternError, match="the timestamp 'at' is of type string"):
        cep.match(path, QUERY, timestamp="at")


def test_files_of_both_formats_meet(tmp_path):
    (tmp_path / "1.csv").write_text(f"at,type\n{ZONED[0]},A\n")
    (tmp_path / "2.jsonl").write_bytes(lines([{"at": ZONED[1], "type": "B"}]))
    assert cep.match(f"{tmp_path}/*", QUERY, timestamp="at", output="indices").to_pylist() == [{"a": 0, "b": 1}]
    (tmp_path / "2.jsonl").write_bytes(lines([{"at": PLAIN[1], "type": "B"}]))
    with pytest.raises(EventError, match="with timezone and timestamp without"):
        read_files(f"{tmp_path}/*")
