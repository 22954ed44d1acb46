"""Events are read from, and results written to, file systems of Arrow and of fsspec, as URIs and as objects name them."""

from __future__ import annotations

import http.server
import os
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from pyarrow import dataset, fs
from upath import UPath

import gpu_cep as cep
from gpu_cep.cli.files import table_target
from gpu_cep.engine.input.file_systems import open_uri
from gpu_cep.engine.input.read_tables import read_events
from gpu_cep.engine.input.sources import source_of
from tests.engine.input.test_event_files import COMPRESSED, EVENTS, FORMATS, QUERY

# What a server is asked: the method, the path and the ranges.
Asked = list[tuple[str, str, str | None]]


class PathOf(os.PathLike[str]):
    """A path of no known class."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __fspath__(self) -> str:
        return self.path


@pytest.fixture
def memory() -> Iterator[Callable[[str, bytes], str]]:
    """A function that writes a file to fsspec's memory and returns its URI."""
    system = MemoryFileSystem()

    def written(name: str, held: bytes) -> str:
        system.makedirs(f"/{Path(name).parent}", exist_ok=True)
        system.pipe_file(f"/{name}", held)
        return f"memory://{name}"

    yield written
    system.store.clear()
    system.pseudo_dirs[:] = [""]


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves files, and remembers what it was asked."""

    def __init__(self, *given: Any, asked: Asked, ranges: bool, **more: Any) -> None:
        self.asked, self.ranges = asked, ranges
        super().__init__(*given, **more)

    def log_message(self, *_: Any) -> None:
        """Print nothing."""

    def do_HEAD(self) -> None:
        self._answer(super().do_HEAD, 0)

    def do_GET(self) -> None:
        self._answer(super().do_GET, None)

    def _answer(self, plain: Callable[[], None], most: int | None) -> None:
        asked = self.headers.get("Range")
        self.asked.append((self.command, self.path, asked))
        path = Path(self.translate_path(self.path))
        if not self.ranges or not path.is_file():
            plain()
            return
        held = path.read_bytes()
        first, last = (int(bound) for bound in asked.removeprefix("bytes=").split("-")) if asked else (0, len(held) - 1)
        part = held[first : last + 1]
        self.send_response(206 if asked else 200)
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Range", f"bytes {first}-{first + len(part) - 1}/{len(held)}")
        self.send_header("Content-Length", str(len(part)))
        self.end_headers()
        self.wfile.write(part[:most])


class Server(http.server.ThreadingHTTPServer):
    """Says nothing of readers that hang up."""

    def handle_error(self, *_: Any) -> None:
        """Print nothing."""


@pytest.fixture(params=[False, True], ids=["whole", "ranges"])
def web(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Callable[[str, bytes], str], Asked]]:
    """A function that lets a server on this machine have a file, and returns its URI; and what the server is asked."""
    asked: Asked = []
    serve = partial(Handler, directory=str(tmp_path), asked=asked, ranges=request.param)
    with Server(("127.0.0.1", 0), serve) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()

        def written(name: str, held: bytes) -> str:
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_bytes(held)
            return f"http://127.0.0.1:{server.server_port}/{name}"

        yield written, asked
        server.shutdown()
        thread.join()
        fsspec.get_filesystem_class("http").clear_instance_cache()


def answers(events: Any) -> bool:
    """Whether a query over the events finds what it finds in the table, and the whole events are the same."""
    found = cep.match(events, QUERY, output="indices")
    return found.equals(cep.match(EVENTS, QUERY, output="indices")) and read_events(events).equals(EVENTS)


@pytest.mark.parametrize("suffix", FORMATS)
def test_every_format_by_fsspec(memory, suffix):
    assert answers(memory(f"a/events{suffix}", FORMATS[suffix](EVENTS)))
    assert answers(f"fsspec+memory://a/events{suffix}")


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".arrows"])
@pytest.mark.parametrize("compression", COMPRESSED)
def test_compressed_files_by_fsspec(memory, suffix, compression):
    assert answers(memory(f"a/events{suffix}{compression}", COMPRESSED[compression](FORMATS[suffix](EVENTS))))


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_globs_by_fsspec(memory, suffix):
    for name, part in (("b", EVENTS[1:]), ("a", EVENTS[:1])):
        memory(f"parts/{name}{suffix}", FORMATS[suffix](part))
    memory("parts/deeper/c.csv", b"no events")
    assert answers(f"memory://parts/*{suffix}")
    with pytest.raises(cep.EventError, match=r"cannot read memory://parts/\*\.json: no file fits it"):
        read_events("memory://parts/*.json")


def test_folders_by_fsspec(memory):
    for name, part in (("b", EVENTS[1:]), ("a", EVENTS[:1])):
        memory(f"parts/{name}.parquet", FORMATS[".parquet"](part))
    assert answers("memory://parts")
    assert answers(UPath("memory://parts"))


def test_a_file_of_several_is_named_as_the_user_names_files(memory):
    memory("parts/a.csv", FORMATS[".csv"](EVENTS))
    memory("parts/b.csv", b'ts,type\n1,"A\n')
    with pytest.raises(cep.EventError, match=r"cannot read memory://parts/b\.csv: the quote in line 2 is not closed"):
        read_events("memory://parts/*.csv")


@pytest.mark.parametrize("suffix", FORMATS)
def test_every_format_by_a_web_server(web, suffix):
    written, _ = web
    uri = written(f"events{suffix}", FORMATS[suffix](EVENTS))
    assert answers(uri)
    assert answers(f"{uri}?signature=x.y&name=*")


def test_globs_by_a_web_server(web):
    written, _ = web
    for name, part in (("b", EVENTS[1:]), ("a", EVENTS[:1])):
        uri = written(f"parts/{name}.csv", FORMATS[".csv"](part))
    assert answers(uri.replace("a.csv", "*.csv"))


def test_what_a_web_server_lacks_is_named(web):
    written, _ = web
    uri = written("events.csv", b"").replace("events", "missing")
    for name in (uri, uri.replace(".csv", ".parquet")):
        with pytest.raises(cep.EventError) as caught:
            read_events(name)
        assert str(caught.value) == f"events: cannot read {name}: there is no such file or folder"


def test_parquet_is_read_in_parts_where_the_server_gives_them(web, request):
    written, asked = web
    rows = 2_000_000
    events = pa.table({"ts": pa.array(range(rows)), "type": ["A"] * rows, "note": [f"note {number}" for number in range(rows)]})
    uri = written("events.parquet", FORMATS[".parquet"](events))
    source = source_of(uri)
    assert source is not None
    assert source.read(["type"])["type"].equals(events["type"])
    got = [ranges for method, _, ranges in asked if method == "GET"]
    if "ranges" in request.node.name:
        assert None not in got
        bounds = [[int(bound) for bound in ranges.removeprefix("bytes=").split("-")] for ranges in got]
        assert sum(last - first + 1 for first, last in bounds) < 500_000
    else:
        assert len(got) == 1


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_paths_of_other_classes(memory, tmp_path, suffix):
    path = tmp_path / f"events{suffix}"
    path.write_bytes(FORMATS[suffix](EVENTS))
    uri = memory(f"a/events{suffix}", FORMATS[suffix](EVENTS))
    for given in (path, PathOf(str(path)), UPath(path), UPath(f"file://{path}"), UPath(uri), uri, f"file://{path}"):
        assert answers(given)
        assert cep.events(given).match(QUERY, output="count")["count"].to_pylist() == [1]


def test_a_path_with_options_of_its_file_system(tmp_path):
    with zipfile.ZipFile(tmp_path / "events.zip", "w") as target:
        for name, part in (("a", EVENTS[:1]), ("b", EVENTS[1:])):
            target.writestr(f"parts/{name}.csv", FORMATS[".csv"](part))
        target.writestr("events.parquet", FORMATS[".parquet"](EVENTS))
    archive = str(tmp_path / "events.zip")
    assert answers(UPath("zip://events.parquet", fo=archive))
    assert answers(UPath("zip://parts/*.csv", fo=archive))


def test_a_data_set_on_any_file_system(memory):
    memory("parts/a.parquet", FORMATS[".parquet"](EVENTS))
    given = dataset.dataset("/parts", filesystem=fs.PyFileSystem(fs.FSSpecHandler(MemoryFileSystem())))
    assert answers(given)


def test_a_folder_may_be_called_as_a_scheme(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("s3:/bucket").mkdir(parents=True)
    Path("s3:/bucket/events.csv").write_bytes(FORMATS[".csv"](EVENTS))
    assert answers(Path("s3://bucket/events.csv"))


def test_results_are_written_by_fsspec(memory):
    memory("found/other.csv", b"")
    table_target("memory://found/events.csv.gz").write(EVENTS)
    assert answers("memory://found/events.csv.gz")


def test_a_file_system_that_cannot_write_is_named(monkeypatch, memory):
    def refused(*_: object, **__: object) -> None:
        raise NotImplementedError

    memory("found/other.csv", b"")
    monkeypatch.setattr("fsspec.implementations.memory.MemoryFileSystem.open", refused)
    with pytest.raises(cep.CepError, match=r"cannot write memory://found/events\.csv: files of memory:// can only be read"):
        table_target("memory://found/events.csv").write(EVENTS)


def test_options_of_fsspec_are_asked_for():
    with pytest.raises(cep.EventError, match=r"cannot read github://a/events\.csv: github:// needs options, .* FSSPEC_GITHUB_…"):
        read_events("github://a/events.csv")


def test_fsspec_is_asked_for_where_it_lacks(monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(cep.EventError) as caught:
        read_events("memory://a/events.csv")
    assert str(caught.value).endswith("memory://a/events.csv: it needs fsspec, which is not installed: pip install 'gpu_cep[remote]'")


def test_a_package_of_fsspec_is_asked_for_where_it_lacks(monkeypatch):
    def lacking(scheme: str) -> None:
        raise ImportError('HTTPFileSystem requires "requests" and "aiohttp" to be installed')

    monkeypatch.setattr(fsspec, "get_filesystem_class", lacking)
    with pytest.raises(cep.EventError, match=r"read https://host/events\.csv: .*\"aiohttp\" .* \(pip install 'gpu_cep\[remote\]'\)"):
        read_events("https://host/events.csv")


@pytest.mark.parametrize(
    ("uri", "system", "path"),
    [
        ("gs://anonymous@bucket/events.csv", fs.GcsFileSystem, "bucket/events.csv"),
        ("abfss://box@account.dfs.core.windows.net/events.csv", fs.AzureFileSystem, "box/events.csv"),
        ("s3://bucket/events.csv?region=us-east-1", fs.S3FileSystem, "bucket/events.csv"),
        ("s3a://bucket/events.csv?region=us-east-1", fs.S3FileSystem, "bucket/events.csv"),
    ],
)
def test_uris_reach_the_file_systems_of_arrow(uri, system, path):
    opened, found = open_uri(uri)
    assert isinstance(opened, system)
    assert found == path
