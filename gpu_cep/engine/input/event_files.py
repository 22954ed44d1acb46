"""Find the files that a path, a glob or a URI names, and open them, also compressed ones."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from glob import glob
from pathlib import Path, PurePosixPath

import pyarrow as pa
from pyarrow import fs

from gpu_cep.errors import FEWER_EVENTS, CepError, EventError

# Suffixes behind that of the format -> Arrow's names of compressions.
COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}

_LONGEST_SHOWN = 200  # characters of a path or of a reader's message
_URI = re.compile(r"[a-z][a-z0-9+.-]+://", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class EventFile:
    """A file of events on a file system; `name` is what errors call it."""

    system: fs.FileSystem
    path: str
    name: str

    @property
    def compression(self) -> str | None:
        """The compression that the suffix tells."""
        return split_suffix(self.path)[1]

    def open(self) -> pa.NativeFile:
        """Return the file as a stream of bytes, decompressed."""
        if not (isinstance(self.system, fs.LocalFileSystem) and Path(self.path).is_fifo()):
            return self.system.open_input_stream(self.path, compression=self.compression)
        # a pipe has no position, which Arrow would ask for
        held = pa.BufferReader(Path(self.path).read_bytes())
        return held if self.compression is None else pa.CompressedInputStream(held, self.compression)

    def buffer(self) -> pa.Buffer:
        """Return the bytes of the file, decompressed; those of a plain local file are mapped."""
        if self.compression is None and isinstance(self.system, fs.LocalFileSystem) and Path(self.path).is_file():
            with pa.memory_map(self.path) as mapped:
                return mapped.read_buffer()
        with self.open() as stream:
            return pa.py_buffer(stream.readall())


@dataclass(frozen=True, slots=True)
class EventFiles:
    """The files that `name` stands for, in the order of their paths; one path may be that of a folder."""

    name: str
    system: fs.FileSystem
    paths: tuple[str, ...]

    @property
    def files(self) -> tuple[EventFile, ...]:
        """The files one by one."""
        names = self.paths if len(self.paths) > 1 else (self.name,)
        return tuple(EventFile(self.system, path, name) for path, name in zip(self.paths, names, strict=True))


def split_suffix(name: str) -> tuple[str, str | None]:
    """Return the suffix of a file's format, and its compression, both in small letters.

    Examples
    --------
    >>> split_suffix("logs/2026-01.CSV.gz"), split_suffix("events.parquet")
    (('.csv', 'gzip'), ('.parquet', None))
    """
    path = PurePosixPath(name)
    compression = COMPRESSIONS.get(path.suffix.lower())
    return (path if compression is None else path.with_suffix("")).suffix.lower(), compression


def is_uri(name: str | Path) -> bool:
    """Return whether `name` is a URI, such as ``s3://bucket/events.parquet``."""
    return isinstance(name, str) and _URI.match(name) is not None


def open_uri(uri: str) -> tuple[fs.FileSystem, str]:
    """Return the file system of a URI, and the path there.

    Raises
    ------
    OSError, pyarrow.ArrowInvalid
        There is no such file system, or it cannot be reached.
    """
    found: tuple[fs.FileSystem, str] = fs.FileSystem.from_uri(uri)
    return found


def is_folder(found: EventFiles) -> bool:
    """Return whether the files are those of one folder."""
    with reading(found.name):
        return bool(found.system.get_file_info(found.paths[0]).type is fs.FileType.Directory)


def find_files(name: str | Path) -> EventFiles:
    """Return the files that a path, a glob or a URI names.

    Whether a file is there is not asked of a path without ``*``, ``?`` and ``[…]``. In a URI, only ``*`` is
    special, and only behind the last slash.

    Raises
    ------
    EventError
        No file fits the glob, or the file system of the URI cannot be opened.
    """
    if is_uri(name):
        with reading(str(name)):
            system, path = open_uri(str(name))
            return EventFiles(str(name), system, _expand(str(name), path, lambda: _matching(system, path), {"*"}))
    path = str(name)
    with reading(path):
        return EventFiles(path, fs.LocalFileSystem(), _expand(path, path, lambda: glob(path, recursive=True), {"*", "?", "["}))


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Turn any error inside into an EventError that names what is read and has the error as its cause.

    Readers are the code of others: what they raise is not known.
    """
    try:
        yield
    except CepError:
        raise
    except FileNotFoundError as fault:
        raise EventError(f"events: cannot read {shorten_name(name)}: there is no such file or folder") from fault
    except MemoryError as fault:
        raise EventError(f"events: cannot read {shorten_name(name)}: out of memory; {FEWER_EVENTS}") from fault
    except Exception as fault:
        raise EventError(f"events: cannot read {shorten_name(name)}: {_reason(fault)}") from fault


def shorten_name(name: str) -> str:
    """Return a name as messages show it: a long one without its middle, half surrogate pairs as escapes."""
    written = name.encode(errors="backslashreplace").decode()
    return written if len(written) <= _LONGEST_SHOWN else f"{written[: _LONGEST_SHOWN // 2]}…{written[-_LONGEST_SHOWN // 2 :]}"


def _reason(fault: Exception) -> str:
    """Return the message of an error, without the traceback that Arrow puts behind that of a reader."""
    several = len(fault.args) > 1 and all(isinstance(part, str) for part in fault.args)
    told = getattr(fault, "strerror", None) or ("; ".join(fault.args) if several else str(fault))
    return shorten_name(" ".join(told.partition(". Detail: Python exception")[0].split())) or type(fault).__name__


def _expand(name: str, path: str, matching: Callable[[], list[str]], special: set[str]) -> tuple[str, ...]:
    """Return the paths that fit, ascending; `path` itself if it has no `special` character, or is a file's name."""
    if not special & set(path) or Path(path).exists():
        return (path,)
    found = matching()
    if not found:
        raise EventError(f"events: cannot read {shorten_name(name)}: no file fits it")
    return tuple(sorted(found))


def _matching(system: fs.FileSystem, path: str) -> list[str]:
    """Return the files of a folder whose names fit the last part of `path`."""
    folder, _, name = path.rpartition("/")
    fitting = re.compile(".*".join(map(re.escape, name.split("*"))), re.DOTALL)
    listed = system.get_file_info(fs.FileSelector(folder))
    return [each.path for each in listed if each.type is fs.FileType.File and fitting.fullmatch(each.base_name)]
