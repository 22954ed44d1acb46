"""What comes in: tables of every make, files, and events that are at fault."""

from __future__ import annotations

import io
import os
import threading
import time

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, feather, parquet

import gpu_cep as cep
from gpu_cep.cli.files import WRITERS
from gpu_cep.engine.input import parquet_files
from gpu_cep.errors import EventError, PatternError

PATTERN = "PATTERN SEQ(A a, B b) WITHIN 10"
FOUND = [{"a": 0, "b": 1}, {"a": 2, "b": 3}]


def events(times=(1, 2, 3, 4)):
    return pa.table({"ts": list(times), "type": ["A", "B"] * (len(times) // 2)})


def indices(table, pattern=PATTERN, **options):
    return cep.match(table, pattern, output="indices", **options).to_pylist()


class Frame:
    """A data frame that only speaks the Arrow C stream interface."""

    def __arrow_c_stream__(self, requested_schema=None):
        return events().__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize(
    "make",
    [
        lambda: events(),
        lambda: events().to_pandas(),
        lambda: events().combine_chunks().to_batches()[0],
        lambda: pa.RecordBatchReader.from_batches(events().schema, events().to_batches()),
        Frame,
    ],
    ids=["table", "pandas", "batch", "reader", "stream"],
)
def test_tables_of_every_make(make):
    assert indices(make()) == FOUND


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("events.parquet", parquet.write_table),
        ("events.PQ", parquet.write_table),
        ("events.csv", csv.write_csv),
        ("events.arrow", lambda table, path: feather.write_feather(table, path, compression="uncompressed")),
        ("events.feather", feather.write_feather),
    ],
)
def test_files(tmp_path, name, write):
    write(events(), tmp_path / name)
    assert indices(tmp_path / name) == FOUND
    assert indices(str(tmp_path / name)) == FOUND


def test_a_folder_is_a_parquet_data_set(tmp_path):
    for number, part in enumerate((events().slice(0, 2), events().slice(2))):
        parquet.write_table(part, tmp_path / f"{number}.parquet")
    assert indices(tmp_path) == FOUND


@pytest.mark.parametrize("name", ["broken.parquet", "broken.csv", "broken.arrow", "absent.parquet", "events.txt", "events"])
def test_files_that_cannot_be_read(tmp_path, name):
    if name.startswith("broken"):
        (tmp_path / name).write_bytes(b"" if name.endswith("csv") else b"no such format")
    with pytest.raises(EventError, match=name):
        indices(tmp_path / name)


@pytest.mark.parametrize("name", ["absent.parquet", "absent.csv", "absent.arrow"])
def test_files_that_are_not_there(tmp_path, name):
    with pytest.raises(EventError, match=rf"cannot read .*{name}: there is no such file or folder$"):
        indices(tmp_path / name)


@pytest.mark.parametrize("value", [None, 7, (1, 2), object()])
def test_no_table_at_all(value):
    with pytest.raises(EventError, match=f"cannot read {type(value).__name__}; expected a table"):
        indices(value)


@pytest.mark.parametrize(
    "options",
    [{"timestamp": "tss"}, {"partition_by": "typ"}, {"order_by": ["ts", "typ"]}, {"type_column": "typ"}, {"columns": ["tpye"]}],
    ids=lambda options: next(iter(options)),
)
def test_columns_that_are_not_there(options):
    with pytest.raises(PatternError, match=r"did you mean '(ts|type)'\?"):
        indices(events(), **options)


def test_a_type_column_like_no_other():
    with pytest.raises(PatternError, match=r"there is no 'kind'(.|\n)*hint: columns of text are type"):
        indices(events(), type_column="kind")


def test_an_attribute_that_is_not_there():
    table = events().append_column("price", [[1, 2, 3, 4]])
    with pytest.raises(PatternError, match=r"unknown attribute 'prise'(.|\n)*did you mean 'price'\?"):
        indices(table, "PATTERN SEQ(A a, B b) WHERE a.prise > 3 WITHIN 10")


def test_a_column_of_another_type():
    with pytest.raises(PatternError, match="cannot compare integer with string"):
        indices(events(), "PATTERN SEQ(A a, B b) WHERE a.ts = 'x' WITHIN 10")


def test_two_columns_of_one_name():
    with pytest.raises(PatternError, match="more than one column 'ts'"):
        indices(pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["ts", "ts"]), "PATTERN a")


def test_no_columns():
    with pytest.raises(PatternError, match="unknown timestamp column 'ts'"):
        indices(pa.table({}))


@pytest.mark.parametrize("output", ["matches", "events", "indices"])
@pytest.mark.parametrize("returns", ["", " RETURN sum(b.ts), b.type, a"])
def test_no_events_keep_the_schema_of_some(output, returns):
    pattern = f"PATTERN SEQ(A a, B b+) WITHIN 10{returns}"
    some = cep.match(events(), pattern, output=output, partition_by="type", strategy="skip_till_any_match")
    none = cep.match(events().slice(0, 0), pattern, output=output, partition_by="type", strategy="skip_till_any_match")
    assert none.num_rows == 0
    assert none.schema == some.schema
    none.validate(full=True)


def test_no_events_are_no_matches_to_count():
    none = events().slice(0, 0)
    assert cep.match(none, "PATTERN a", output="count").to_pydict() == {"count": [0]}
    assert cep.match(none, "PATTERN a", output="count", partition_by="ts").to_pydict() == {"ts": [], "count": []}


def test_one_event():
    one = events().slice(0, 1)
    assert indices(one) == []
    assert indices(one, "PATTERN A a WITHIN 0") == [{"a": 0}]


def test_many_small_streams():
    size = 200_000
    table = pa.table({"ts": np.arange(size), "k": np.arange(size) // 2, "type": pa.array(["A", "B"] * (size // 2))})
    counts = cep.match(table, PATTERN, partition_by="k", output="count")
    assert counts["count"].to_pylist() == [1] * (size // 2)
    assert counts["k"].to_pylist() == list(range(size // 2))


def test_one_long_stream():
    table = pa.table({"ts": np.arange(300_000), "type": pa.array(["A", "B", "C"] * 100_000)})
    assert cep.match(table, "PATTERN SEQ(A a, C c, B b) WITHIN 4", output="count").to_pydict() == {"count": [99_999]}
    assert cep.match(table, "PATTERN SEQ(A a, B b+) WITHIN 1", output="indices").num_rows == 100_000


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("PATTERN SEQ(A a, B b) RETURN b.v AS v", ["ts", "type", "v"]),
        ("PATTERN SEQ(A a, B b)", ["ts", "type", "v", "other"]),
        ("PATTERN A a WHERE [v] RETURN a.ts AS at", ["ts", "type", "v"]),
        ("PARTITION BY type DEFINE X AS v > 1, Y AS v < 9 PATTERN X overlaps Y; X equals Y RETURN start(X) AS s", ["ts", "type", "v"]),
    ],
)
def test_only_the_columns_of_a_parquet_file_that_are_read_are_read(tmp_path, monkeypatch, text, read):
    events = pa.table({"ts": [1, 2, 3], "type": ["A", "B", "B"], "v": [1, 5, 9], "other": [b"x", b"y", b"z"]})
    path = tmp_path / "events.parquet"
    parquet.write_table(events, path)
    asked = []
    reading = parquet_files._table
    monkeypatch.setattr(parquet_files, "_table", lambda *of: asked.append(of[2]) or reading(*of))
    assert cep.match(path, text).equals(cep.match(events, text))
    assert asked == [read]


class Unhashable(pa.ExtensionType):
    """What a user's own type is unless it defines more: it has an ``==``, and so no hash."""

    def __init__(self):
        super().__init__(pa.int64(), "gpu_cep.unhashable")

    def __arrow_ext_serialize__(self):
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage, serialized):
        return cls()


@pytest.mark.parametrize("output", ["matches", "events", "indices", "count"])
def test_columns_of_types_without_a_hash_are_carried(output):
    column = pa.ExtensionArray.from_storage(Unhashable(), pa.array([7, 8]))
    events = pa.table({"ts": [1, 2], "type": ["A", "B"], "own": column})
    found, stored = (
        cep.match(table, "PATTERN SEQ(A a, B b)", output=output) for table in (events, events.set_column(2, "own", column.storage))
    )
    assert found.to_pylist() == stored.to_pylist()


class FailingReader(RuntimeError):
    """What only the code of the reader knows."""


def batches_that_fail():
    yield events().to_batches()[0]
    raise FailingReader("the wire broke")


class FailingStream:
    def __init__(self, begin):
        self._begin = begin

    def __arrow_c_stream__(self, requested_schema=None):
        return self._begin().__arrow_c_stream__(requested_schema)


def failing_reader():
    return pa.RecordBatchReader.from_batches(events().schema, batches_that_fail())


def failing_at_once():
    raise FailingReader("the wire broke")


FAILING = {
    "reader": failing_reader,
    "stream": lambda: FailingStream(failing_reader),
    "at once": lambda: FailingStream(failing_at_once),
}


@pytest.mark.parametrize("make", FAILING.values(), ids=FAILING)
@pytest.mark.parametrize("call", [lambda table: cep.match(table, PATTERN), lambda table: cep.explain(table, PATTERN)])
def test_a_reader_that_fails_is_named_with_its_cause(make, call):
    with pytest.raises(EventError, match=r"^events: cannot read \w+: (Unknown error: )?the wire broke$") as caught:
        call(make())
    assert "the wire broke" in str(caught.value.__cause__)


def test_a_lazy_frame_that_fails_is_an_event_error():
    polars = pytest.importorskip("polars")
    lazy = polars.from_arrow(events()).lazy().with_columns(polars.col("type").cast(polars.Int64).alias("n"))
    with pytest.raises(EventError, match=r"cannot read LazyFrame: .*conversion"):
        cep.match(lazy, "PATTERN a WHERE a.n > 1")


def test_columns_of_pandas_that_mix_types():
    pandas = pytest.importorskip("pandas")
    with pytest.raises(EventError, match=r"cannot read column 'o' of type object: Could not convert 'x' with type str"):
        indices(pandas.DataFrame({"ts": [1, 2], "o": [1, "x"]}), "PATTERN a")


@pytest.mark.parametrize("suffix", ["", ".csv", ".parquet", ".arrow", ".arrows"])
@pytest.mark.parametrize("stem", ["x" * 5_000, "x\0", "x\ud800"], ids=["long", "NUL", "surrogate"])
def test_paths_that_are_none(stem, suffix):
    with pytest.raises(EventError, match="events: cannot read x") as caught:
        indices(stem + suffix)
    assert len(str(caught.value)) < 500
    str(caught.value).encode()


@pytest.mark.parametrize("name", ["events.parquet", "events.csv", "events.arrow", "events.arrows"])
def test_named_pipes(tmp_path, name):
    held, path = io.BytesIO(), tmp_path / name
    write_result = WRITERS[path.suffix]
    write_result(events(), held)
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(held.getvalue(),))
    writer.start()
    assert indices(path) == FOUND
    writer.join()


@pytest.mark.parametrize("inner", ["", "k=1"])
def test_a_folder_without_data(tmp_path, inner):
    (tmp_path / inner).mkdir(exist_ok=True)
    with pytest.raises(EventError, match="the folder holds no Parquet file"):
        indices(tmp_path)


@pytest.mark.parametrize(
    ("pattern", "options"),
    [
        (PATTERN, {}),
        ("PATTERN SEQ(A a, B b) WHERE a.v < b.v AND a.s LIKE 'x%' WITHIN 5 minutes", {}),
        ("PATTERN SEQ(A a, B b) WITHIN 5 minutes RETURN sum(b.v) AS s", {"time_unit": "s"}),
        ("DEFINE X AS v > 1, Y AS v < 9 PATTERN X overlaps Y WITHIN 5 minutes", {}),
    ],
)
@pytest.mark.parametrize("output", ["matches", "count"])
def test_a_header_of_csv_alone_has_no_matches(tmp_path, pattern, options, output):
    path = tmp_path / "events.csv"
    path.write_text("ts,type,v,s\n")
    found = cep.match(path, pattern, output=output, **options)
    assert found.num_rows == 0 if output == "matches" else found["count"].to_pylist() == [0]


@pytest.mark.parametrize(
    ("text", "line"),
    [('ts,type\n1,"A\n2,B\n', 2), ('ts,type\n1,"A, ""x\n"\n2,"B\n', 4), ('"ts,type\n1,A\n', 1), ('ts,type\r\n1,"A""\r\n2,B\r\n', 2)],
)
def test_a_quote_in_csv_that_is_not_closed(tmp_path, text, line):
    path = tmp_path / "events.csv"
    path.write_bytes(text.encode())
    with pytest.raises(EventError, match=rf"cannot read .*events.csv: the quote in line {line} is not closed"):
        indices(path)


def test_quotes_that_open_nothing(tmp_path):
    path = tmp_path / "events.csv"
    path.write_text('ts,type,v\n1,A,5" nail\n2,B,"a ""b"" c"\n')
    assert indices(path) == [{"a": 0, "b": 1}]
    assert cep.match(path, "PATTERN e RETURN e.v AS v")["v"].to_pylist() == ['5" nail', 'a "b" c']


def test_ten_thousand_columns_cost_little():
    wide = pa.table({"ts": [1, 2], "type": ["A", "B"]} | {f"c{number}": [1, 2] for number in range(10_000)})
    begin = time.process_time()
    assert cep.match(wide, "PATTERN SEQ(A a, B b) WHERE a.c5 < b.c6 RETURN b.c7 AS c").to_pylist() == [
        {"match_start": 1, "match_end": 2, "c": 2}
    ]
    assert time.process_time() - begin < 3
