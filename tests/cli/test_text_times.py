"""Timestamps that are text: in ISO 8601 or a format that is said, with zones, and missing ones."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet
import pytest

from gpu_cep.cli import main
from tests.cli.forms import csv_of, lines_of, parquet_of, put_in, unquoted_csv_of

TEXTS = ["2026-01-31 10:00:00.25", "2026-01-31T10:00:01", "2026-01-31"]


@pytest.mark.parametrize(
    ("texts", "form", "start"),
    [
        (TEXTS, None, "2026-01-31 00:00:00.000000"),
        ([f"{text}+02:00" for text in TEXTS[:2]], None, "2026-01-31 08:00:00.250000Z"),
        (["2026-01-31 10:00:00.123456789", None], None, "2026-01-31 10:00:00.123456789"),
        (["01022026 1005", "02022026 1005"], "%d%m%Y %H%M", "2026-02-01 10:05:00.000000"),
        (["01022026", "02022026"], "%d%m%Y", "2026-02-01 00:00:00.000000"),
        (["31.01.2026 10:00 +0200", "31.01.2026 10:00 +0100"], "%d.%m.%Y %H:%M %z", "2026-01-31 08:00:00.000000Z"),
    ],
)
@pytest.mark.parametrize("suffix", [".parquet", ".jsonl", ".csv"])
def test_timestamps_may_be_text(tmp_path, capsys, texts, form, start, suffix):
    path = tmp_path / f"events{suffix}"
    table = pa.table({"at": pa.array(texts)}).filter(pa.array([text is not None for text in texts]))
    path.write_bytes({".parquet": parquet_of, ".jsonl": lines_of, ".csv": unquoted_csv_of}[suffix](table))
    asked = [] if form is None else ["--timestamp-format", form]
    assert main(["match", "PATTERN x RETURN x.at AS at", str(path), "--timestamp", "at", "--json", *asked]) == 0
    first = json.loads(capsys.readouterr().out.splitlines()[0])["at"]
    # what CSV and JSON hold may be read in another unit
    assert first == start if suffix == ".parquet" else first.rstrip("0.Z") == start.rstrip("0.Z")
    assert first.endswith("Z") == start.endswith("Z")
    assert main(["validate", "PATTERN SEQ(x, y) WITHIN 1 day", str(path), "--timestamp", "at", *asked]) == 0


@pytest.mark.parametrize(
    ("held", "asked", "code", "told"),
    [
        ({"ts": ["2026-01-01", "31.1.2026"]}, [], 3, "timestamp column 'ts': '31.1.2026' is no time in ISO 8601; say its format by"),
        ({"ts": ["2026-01-01", "2026-01-01T00:00Z"]}, [], 3, "all or none must have a zone\n"),
        ({"ts": ["2026-01-01", "2026-01-01T00:00Z"]}, [], 3, "'2026-01-01T00:00Z' has a zone and '2026-01-01' has none;"),
        ({"ts": ["2026-02-20T09:00Z"] * 9 + ["2026-02-30T09:00:00Z", "x"]}, [], 3, "'ts': '2026-02-30T09:00:00Z' is no time\n"),
        ({"ts": ["2026-02-20T24:00:00Z", "2026-01-01", None]}, [], 3, "'ts': '2026-02-20T24:00:00Z' is no time\n"),
        ({"ts": [None, "2026-01-01T09:00:60"]}, [], 3, "'ts': '2026-01-01T09:00:60' is no time\n"),
        ({"ts": ["1600-01-01", "2026-01-01", "2026-01-01T00:00:00.000000001"]}, [], 3, "up to '2026-01-01T00:00:00.000000001' are too far"),
        ({"ts": ["01.01.2026", "2026"]}, ["--timestamp-format", "%d.%m.%Y"], 3, "'2026' is not of the form '%d.%m.%Y'"),
        ({"ts": [1, 2]}, ["--timestamp-format", "%d.%m.%Y"], 2, "the timestamp 'ts' is of type int64: leave it out"),
        ({"at": ["x"]}, ["--timestamp-format", "%d.%m.%Y"], 1, "unknown timestamp column 'ts'"),
        ({"ts": [None, "2026-01-01"]}, [], 3, "timestamp column 'ts' holds 1 NULL, of 2 events"),
        ({"ts": [None, None]}, [], 3, "timestamp column 'ts' holds 2 NULLs, of 2 events"),
        ({"ts": [None, None]}, ["--timestamp-format", "%d.%m.%Y"], 3, "timestamp column 'ts' holds 2 NULLs, of 2 events"),
    ],
)
def test_texts_that_are_no_timestamps(tmp_path, capsys, held, asked, code, told):
    path = tmp_path / "events.parquet"
    pa.parquet.write_table(pa.table(held), path)
    assert main(["match", "PATTERN x", str(path), *asked]) == code
    assert told in capsys.readouterr().err


def test_times_of_json_keep_their_zones(tmp_path, monkeypatch, capsys):
    mixed = b'{"at":"2026-03-01T10:00:00","type":"A"}\n{"at":"2026-03-01T11:30:00+02:00","type":"B"}\n'
    (tmp_path / "mixed.jsonl").write_bytes(mixed)
    put_in(monkeypatch, mixed)
    for events in (str(tmp_path / "mixed.jsonl"), "-"):
        assert main(["match", "PATTERN SEQ(B b, A a) WITHIN 1 hour", events, "--timestamp", "at"]) == 3
        assert "'2026-03-01T11:30:00+02:00' has a zone and '2026-03-01T10:00:00' has none" in capsys.readouterr().err
    put_in(monkeypatch, mixed.replace(b'T10:00:00"', b'T10:00:00Z"'))
    assert main(["match", "PATTERN x RETURN x.at AS at", "-", "--timestamp", "at", "--json"]) == 0
    assert [json.loads(line)["at"] for line in capsys.readouterr().out.splitlines()] == ["2026-03-01 09:30:00Z", "2026-03-01 10:00:00Z"]


@pytest.mark.parametrize("name", ["dates.csv", "dates.jsonl"])
def test_a_format_is_for_texts_that_look_like_times_too(tmp_path, capsys, name):
    path = tmp_path / name
    path.write_text('{"at": "2026-01-02"}\n' if name.endswith("l") else "at\n2026-01-02\n")
    asked = ["--timestamp", "at", "--timestamp-format", "%Y-%d-%m", "--json"]
    assert main(["match", "PATTERN x RETURN x.at AS at", str(path), *asked]) == 0
    assert json.loads(capsys.readouterr().out)["at"] == "2026-02-01 00:00:00.000000"


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_timestamp_that_stands_twice_is_an_error(tmp_path, capsys, suffix):
    path = tmp_path / f"events{suffix}"
    table = pa.Table.from_arrays([pa.array(["2026-03-01T09:00:00Z"]), pa.array(["A"]), pa.array([1])], names=["at", "type", "at"])
    path.write_bytes(csv_of(table) if suffix == ".csv" else parquet_of(table))
    assert main(["match", "PATTERN A a", str(path), "--timestamp", "at"]) == 1
    assert capsys.readouterr().err == "gpu-cep: the events have more than one column 'at'\n"


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_events_none_of_which_has_a_time(tmp_path, capsys, suffix):
    path = tmp_path / f"events{suffix}"
    table = pa.table({"at": pa.nulls(2), "type": ["A", "B"]})
    path.write_bytes(csv_of(table) if suffix == ".csv" else parquet_of(table))
    command = ["match", "PATTERN SEQ(A a, B b) WITHIN 1 hour", str(path), "--timestamp", "at", "--json"]
    assert main(command) == 3
    assert "timestamp column 'at' holds 2 NULLs, of 2 events; nulls='drop'" in capsys.readouterr().err
    assert main([*command, "--nulls", "drop"]) == 0
    assert capsys.readouterr().out == ""
    assert main(["validate", *command[1:]]) == 0


def test_events_without_a_time_may_be_left_out(tmp_path, capsys):
    path = tmp_path / "events.csv"
    path.write_text("ts,type\n2026-01-01T00:00:01,A\n,A\n2026-01-01T00:00:02,B\n")
    assert main(["match", "PATTERN SEQ(A a, B b) WITHIN 1 hour", str(path), "--output", "indices", "--nulls", "drop", "--json"]) == 0
    assert capsys.readouterr().out == '{"a": 0, "b": 2}\n'
    path.write_text("ts,type\n01.02.2026,A\n,A\n02.02.2026,B\n")
    assert main(["match", "PATTERN SEQ(A a, B b) WITHIN 2 days", str(path), "--timestamp-format", "%d.%m.%Y", "--output", "count"]) == 3
    assert "holds 1 NULL, of 3 events; nulls='drop'" in capsys.readouterr().err
    asked = ["--timestamp-format", "%d.%m.%Y", "--output", "indices", "--nulls", "drop", "--json"]
    assert main(["match", "PATTERN SEQ(A a, B b) WITHIN 2 days", str(path), *asked]) == 0
    assert capsys.readouterr().out == '{"a": 0, "b": 2}\n'
