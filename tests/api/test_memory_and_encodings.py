"""A lack of memory, and files that are not UTF-8, end in errors of this library that name the remedy."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

import gpu_cep as cep
from gpu_cep import api
from gpu_cep.engine import answers, run
from gpu_cep.engine.input import formats, read_tables
from gpu_cep.errors import EventError, MatchLimitExceeded

EVENTS = pa.table({"ts": [1, 2], "n": [1, 2]})


def no_memory(*arguments, **keywords):
    raise MemoryError


@pytest.mark.parametrize(
    ("module", "name", "error", "message"),
    [
        (read_tables, "read_events", EventError, "out of memory while reading the events; give Parquet"),
        (answers, "event_columns", EventError, "out of memory while preparing the events; give Parquet"),
        (answers, "match_events", MatchLimitExceeded, "out of memory while matching; use output='count'"),
        (run, "match_table", MatchLimitExceeded, "out of memory while building the result of 2 matches; use output='count'"),
    ],
)
def test_a_lack_of_memory(monkeypatch, module, name, error, message):
    monkeypatch.setattr(module, name, no_memory)
    # a frame of pandas is read, a table is there
    with pytest.raises(error, match=message):
        cep.match(EVENTS.to_pandas(), "PATTERN a")


def test_a_lack_of_memory_for_the_result(monkeypatch):
    monkeypatch.setattr(api, "result_form", lambda result, output: no_memory)
    with pytest.raises(MatchLimitExceeded, match="out of memory while handing over the result of 2 rows; use output='count'"):
        cep.match(EVENTS, "PATTERN a")


def test_a_lack_of_memory_for_a_file(monkeypatch, tmp_path):
    path = tmp_path / "events.csv"
    path.write_text("ts,n\n1,1\n")
    monkeypatch.setattr(formats, "read_csv", no_memory)
    with pytest.raises(EventError, match=f"cannot read {re.escape(str(path))}: out of memory; give Parquet"):
        cep.match(path, "PATTERN a")


@pytest.mark.parametrize(
    ("text", "encoding", "told"),
    [
        ("ts,n\n1,x\n2,Zürich\n", "cp1252", "line 3 is not UTF-8; convert the file, as by iconv -f WINDOWS-1252 -t UTF-8"),
        ("ts,größe\n1,1\n", "latin-1", "line 1 is not UTF-8; convert the file, as by iconv -f WINDOWS-1252 -t UTF-8"),
        ("ts,n\n1,1\n", "utf-16", "line 1 is not UTF-8; convert the file, as by iconv -f UTF-16 -t UTF-8"),
    ],
)
def test_a_file_of_another_encoding(tmp_path, text, encoding, told):
    path = tmp_path / "events.csv"
    path.write_text(text, encoding=encoding)
    with pytest.raises(EventError, match=f"cannot read {re.escape(str(path))}: {re.escape(told)}"):
        cep.match(path, "PATTERN a")


@pytest.mark.parametrize("text", ["ts,n\n1,Zürich\n", "\ufeffts,n\n1,株価\n"])
def test_utf_8_is_read(tmp_path, text):
    path = tmp_path / "events.csv"
    path.write_text(text, encoding="utf-8")
    assert cep.match(path, "PATTERN a", output="count").to_pydict() == {"count": [1]}


def test_a_file_of_no_bytes_is_in_any_encoding(tmp_path):
    path = tmp_path / "events.csv"
    path.touch()
    with pytest.raises(EventError, match="Empty CSV file"):
        cep.match(path, "PATTERN a")
