"""Events come from one file or several, in any format, compressed or not, from a path, a glob or a URI."""

from __future__ import annotations

import gzip
import io
import os
import re
import threading
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet
import pytest

import gpu_cep as cep
from gpu_cep.engine.input.read_tables import read_events
from gpu_cep.engine.input.sources import source_of
from tests.cli.forms import parquet_of

EVENTS = pa.table({"ts": [1, 2, 3], "type": ["A", "B;x", "C"], "v": [0.5, None, 2.25]})
QUERY = "PATTERN SEQ(A a, C c)"


def csv_of(table: pa.Table, delimiter: str = ",") -> bytes:
    sink = io.BytesIO()
    pa.csv.write_csv(table, sink, pa.csv.WriteOptions(delimiter=delimiter))
    return sink.getvalue()


def jsonl_of(table: pa.Table) -> bytes:
    import json

    return b"".join(json.dumps(row).encode() + b"\n" for row in table.to_pylist())


def ipc_of(table: pa.Table, writer: Callable[..., pa.ipc.RecordBatchStreamWriter]) -> bytes:
    sink = io.BytesIO()
    with writer(sink, table.schema) as target:
        target.write_table(table)
    return sink.getvalue()


FORMATS: dict[str, Callable[[pa.Table], bytes]] = {
    ".csv": csv_of,
    ".tsv": lambda table: csv_of(table, "\t"),
    ".jsonl": jsonl_of,
    ".ndjson": jsonl_of,
    ".arrow": lambda table: ipc_of(table, pa.ipc.new_file),
    ".arrows": lambda table: ipc_of(table, pa.ipc.new_stream),
    ".parquet": parquet_of,
}
COMPRESSED = {"": bytes, ".gz": gzip.compress, ".zst": lambda held: pa.compress(held, "zstd", asbytes=True)}


@pytest.fixture
def put(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, bytes], str]:
    """A function that writes a file in the working directory and returns its name."""
    monkeypatch.chdir(tmp_path)

    def written(name: str, held: bytes) -> str:
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_bytes(held)
        return name

    return written


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("compression", COMPRESSED)
def test_every_format_in_every_compression(put, suffix, compression):
    if suffix == ".parquet" and compression:
        name = put(f"events{suffix}{compression}", b"")
        with pytest.raises(cep.EventError, match="no known suffix"):
            read_events(name)
        return
    name = put(f"events{suffix}{compression}", COMPRESSED[compression](FORMATS[suffix](EVENTS)))
    assert read_events(name).equals(EVENTS)
    assert read_events(Path(name)).equals(EVENTS)
    assert read_events(f"file://{Path(name).resolve()}").equals(EVENTS)
    assert cep.match(name, QUERY, output="count")["count"].to_pylist() == [1]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_header_tells_what_separates_columns(put, delimiter):
    assert read_events(put("events.csv", csv_of(EVENTS, delimiter))).equals(EVENTS)


@pytest.mark.parametrize(
    ("held", "names"),
    [
        (b'"a;b",c\n1,2\n', ["a;b", "c"]),
        (b'"a,b";c\n1;2\n', ["a,b", "c"]),
        (b"a\n1\n", ["a"]),
        (b"a;b\r\n1;2,5\r\n", ["a", "b"]),
    ],
)
def test_quotes_hide_what_separates_no_columns(put, held, names):
    assert read_events(put("events.csv", held)).column_names == names


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_glob_reads_all_files_in_order(put, suffix):
    # the last file has another type of v, and a column of its own
    parts = [EVENTS.slice(1, 1), EVENTS.slice(0, 1), EVENTS.slice(2).set_column(2, "v", [[7]]).append_column("w", [["new"]])]
    for name, part in zip(("b", "a", "c"), parts, strict=True):
        put(f"parts/{name}{suffix}", FORMATS[suffix](part))
    put("parts/other.txt", b"no events")
    expected = {"ts": [1, 2, 3], "type": ["A", "B;x", "C"], "v": [0.5, None, 7.0], "w": [None, None, "new"]}
    for name in (f"parts/*{suffix}", f"*/?{suffix}", f"parts/[a-c]{suffix}", f"file://{Path('parts').resolve()}/*{suffix}"):
        assert read_events(name).to_pydict() == expected
    assert cep.match(f"parts/*{suffix}", QUERY, output="count")["count"].to_pylist() == [1]


def test_a_glob_of_parquet_reads_only_what_is_asked(put):
    for name in ("a.parquet", "b.parquet"):
        put(name, parquet_of(EVENTS))
    source = source_of("*.parquet")
    assert source is not None
    assert source.read(["v", "ts"]).column_names == ["v", "ts"]


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_list_reads_its_files_globs_and_folders_in_the_order_given(put, suffix):
    for name, part in zip(("b", "a"), (EVENTS.slice(0, 1), EVENTS.slice(1, 1)), strict=True):
        put(f"first/{name}{suffix}", FORMATS[suffix](part))
    put(f"last{suffix}", FORMATS[suffix](EVENTS.slice(2).set_column(2, "v", [[7]]).append_column("w", [["new"]])))
    listed = [Path(f"last{suffix}"), f"first/*{suffix}"]
    expected = {"ts": [3, 2, 1], "type": ["C", "B;x", "A"], "v": [7.0, None, 0.5], "w": ["new", None, None]}
    assert read_events(listed).to_pydict() == expected
    assert read_events(tuple(listed)).to_pydict() == expected
    assert cep.match(listed, QUERY, output="indices").to_pylist() == [{"a": 2, "c": 0}]
    assert cep.events(listed).count(QUERY) == 1


def test_a_list_of_folders_has_the_columns_of_their_subfolders(put):
    for day, part in enumerate((EVENTS.slice(0, 2), EVENTS.slice(2))):
        put(f"days {day}/x", b"")
        Path(f"days {day}/x").unlink()
        pyarrow.parquet.write_to_dataset(part.append_column("day", [[day] * len(part)]), f"days {day}", partition_cols=["day"])
    expected = EVENTS.append_column("day", [[0, 0, 1]]).to_pydict()
    for listed in (["days 0", "days 1"], ["days *"], "days *", ["days 0", "days 1/day=1/*", "days 1"][::2]):
        assert read_events(listed).to_pydict() == expected


def test_a_list_may_lie_on_several_file_systems(put):
    import fsspec

    put("a.parquet", parquet_of(EVENTS.slice(0, 2)))
    fsspec.filesystem("memory").pipe("/listed/b.parquet", parquet_of(EVENTS.slice(2)))
    assert read_events(["a.parquet", "memory://listed/b.parquet"]).equals(EVENTS)
    assert read_events(["memory://listed/b.parquet", "a.parquet"])["ts"].to_pylist() == [3, 1, 2]


def test_a_list_is_of_parquet_or_not(put):
    for suffix in (".parquet", ".csv"):
        put(f"a{suffix}", FORMATS[suffix](EVENTS))
    put("broken.parquet", b"PAR1 no events PAR1")
    put("a.txt", b"")
    for listed, message in (
        (["a.parquet", "a.csv"], "cannot read a.csv: in a list, all are of Parquet (files or folders), or none is"),
        (["a.parquet", "missing.parquet"], "missing.parquet"),
        (["a.parquet", "broken.parquet"], "broken.parquet"),
        (["a.csv", "missing.csv"], "cannot read missing.csv: there is no such file or folder"),
        (["a.csv", "a.txt"], "a.txt: it has no known suffix"),
    ):
        with pytest.raises(cep.EventError, match=re.escape(message)):
            read_events(listed)


def test_a_name_with_brackets_is_a_file_if_there_is_one(put):
    assert read_events(put("events[1].csv", csv_of(EVENTS))).equals(EVENTS)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing.csv.gz", "cannot read missing.csv.gz: there is no such file or folder"),
        ("missing.jsonl", "cannot read missing.jsonl: there is no such file or folder"),
        ("missing", "cannot read missing: there is no such file or folder"),
        ("event.txt", "cannot read event.txt: there is no such file or folder; did you mean 'events.txt'?"),
        ("missing-*.csv", "cannot read missing-*.csv: no file fits it"),
        ("memory://nowhere/events.csv", "cannot read memory://nowhere/events.csv: there is no such file or folder"),
        ("memory://nowhere/events.parquet", "cannot read memory://nowhere/events.parquet: there is no such file or folder"),
        ("memory://nowhere/*.csv", "cannot read memory://nowhere/*.csv: there is no such file or folder"),
        ("sftp://host/events.csv", 'cannot read sftp://host/events.csv: SFTPFileSystem requires "paramiko" to be installed'),
        (Path("s3://bucket/events.csv"), "Path() drops a slash of a URI; give it as text: 's3://bucket/events.csv'"),
        ("file:///missing/*.csv", "cannot read file:///missing/*.csv: there is no such file or folder"),
        ("odd://bucket/events.csv", "cannot read odd://bucket/events.csv: neither Arrow nor fsspec has a file system for odd://"),
        ("events.txt", "events.txt: it has no known suffix; expected one of .parquet, .pq, .csv, .tsv, .jsonl"),
        ("events.json", "behind it; lines of JSON are read by the name .jsonl, and an array of JSON by pandas.read_json()"),
        ("bad.csv.gz", "cannot read bad.csv.gz: "),
        ("bad.jsonl", "cannot read bad.jsonl: "),
    ],
)
def test_what_cannot_be_read_is_named(put, name, message):
    for bad in ("events.txt", "events.json", "bad.csv.gz", "bad.jsonl"):
        put(bad, b"{no events")
    with pytest.raises(cep.EventError) as caught:
        read_events(name)
    assert message in str(caught.value)


def test_a_folder_that_may_not_be_listed_does_not_hide_the_fault(put):
    put("events.txt", b"{}")
    with patch.object(Path, "iterdir", side_effect=PermissionError("no")), pytest.raises(cep.EventError) as caught:
        read_events("event.csv")
    assert str(caught.value).endswith("cannot read event.csv: there is no such file or folder")


def test_files_whose_columns_do_not_meet_are_no_events(put):
    put("a.csv", b"ts,v\n1,2\n")
    put("b.csv", b"ts,v\n1,x\n")
    with pytest.raises(cep.EventError, match=r"cannot read \*\.csv: .*v"):
        read_events("*.csv")


@pytest.mark.parametrize("suffix", [".arrow", ".parquet"])
@pytest.mark.parametrize("kinds", [("u", "e"), ("e", "u"), ("u", "l"), ("l", "e"), ("e", "s"), ("s", "u", "e"), ("e", "d")])
def test_texts_of_several_encodings_meet(put, suffix, kinds):
    """A program that writes categories in one file may write plain text in the next."""
    encodings = {"u": pa.string(), "l": pa.large_string(), "e": pa.dictionary(pa.int32(), pa.string())}
    encodings |= {"s": pa.dictionary(pa.int8(), pa.string()), "d": pa.dictionary(pa.int32(), pa.large_string())}
    for number, kind in enumerate(kinds):
        texts = EVENTS.column("type").cast(encodings[kind])
        put(f"part{number}/events{suffix}", FORMATS[suffix](EVENTS.set_column(1, "type", texts)))
    names = [f"part{number}/events{suffix}" for number in range(len(kinds))]
    named = (names, "part*/events*", *([[f"part{number}" for number in range(len(kinds))]] if suffix == ".parquet" else []))
    expected, query = pa.concat_tables([EVENTS] * len(kinds)), f"{QUERY} WITHIN 2 RETURN a.type AS t, c.ts AS at"
    whole = cep.match(expected, query).to_pydict()
    for location in named:
        assert read_events(location).to_pydict() == expected.to_pydict()
        assert cep.match(location, query).to_pydict() == whole
    if suffix == ".parquet":
        assert cep.match(names, query, memory="100kB").to_pydict() == whole


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_a_named_pipe_is_read(put, tmp_path, suffix):
    path = tmp_path / f"events{suffix}"
    os.mkfifo(path)
    feeder = threading.Thread(target=path.write_bytes, args=(FORMATS[suffix](EVENTS),))
    feeder.start()
    assert read_events(path).equals(EVENTS)
    feeder.join()
