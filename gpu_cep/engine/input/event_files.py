"""Find the files that a path, a glob or a URI names, and open them, also compressed ones."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from glob import glob
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa
from pyarrow import fs

from gpu_cep.engine.input.file_systems import cut_uri, is_uri, open_upath, open_uri, path_of_uri
from gpu_cep.errors import FEWER_EVENTS, CepError, EventError, nearest

# Suffixes behind that of the format -> Arrow's names of compressions.
COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}

_UNOPENED = re.compile("Could not open Parquet input source '(.+?)': (.*)")
_QUOTED = re.compile("'([^']+)'")
_MOST_COMPARED = 10_000  # files of a folder whose names are compared with one that is not there
_LONGEST_SHOWN = 200  # characters of a path or of a reader's message


@dataclass(frozen=True, slots=True)
class EventFile:
    """A file of events on a file system; `name` is what errors call it."""

    system: fs.FileSystem
    path: str
    name: str

    @property
    def compression(self) -> str | None:
        """Return the compression that the suffix tells."""
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
    """The files that `name` stands for, in the order of their paths; a path may be that of a folder."""

    name: str
    system: fs.FileSystem
    paths: tuple[str, ...]

    @property
    def files(self) -> tuple[EventFile, ...]:
        """Return the files one by one."""
        if len(self.paths) == 1:
            names: tuple[str, ...] = (self.name,)
        elif is_uri(self.name):
            folder = self.name.rpartition("/")[0]
            names = tuple(f"{folder}/{path.rpartition('/')[2]}" for path in self.paths)
        else:
            names = self.paths
        return tuple(EventFile(self.system, path, name) for path, name in zip(self.paths, names, strict=True))


def split_suffix(name: str) -> tuple[str, str | None]:
    """Return the suffix of a file's format, and its compression, both in small letters.

    Examples
    --------
    >>> split_suffix("logs/2026-01.CSV.gz"), split_suffix("events.parquet")
    (('.csv', 'gzip'), ('.parquet', None))
    """
    path = PurePosixPath(path_of_uri(name))
    compression = COMPRESSIONS.get(path.suffix.lower())
    return (path if compression is None else path.with_suffix("")).suffix.lower(), compression


def folders_of(found: EventFiles) -> frozenset[str]:
    """Return those of the paths that are folders."""
    with reading(found.name):
        return frozenset(each.path for each in found.system.get_file_info(list(found.paths)) if each.type is fs.FileType.Directory)


def find_files(location: Any) -> EventFiles:
    """Return the files that a location (:func:`~gpu_cep.engine.input.file_systems.location_of`), also a glob, names.

    Whether a file is there is not asked of a path without ``*``, ``?`` and ``[…]``. Elsewhere than on this
    machine, only ``*`` is special, and only behind the last slash.

    Raises
    ------
    EventError
        No file fits the glob, or the file system of the URI cannot be opened.
    """
    name = str(location)
    with reading(name):
        if is_uri(name):
            # a UPath has options beside its URI
            system, path = open_uri(name) if isinstance(location, str) else open_upath(location)
            special = "*" in path_of_uri(path) and not _is_local_file(system, path)
            return EventFiles(name, system, _fitting(name, _matching(system, path)) if special else (path,))
        meant = cut_uri(name)
        if meant is not None:
            raise EventError(f"events: cannot read {shorten_name(name)}: Path() drops a slash of a URI; give it as text: {meant!r}")
        special = not {"*", "?", "["}.isdisjoint(name) and not Path(name).exists()
        return EventFiles(name, fs.LocalFileSystem(), _fitting(name, glob(name, recursive=True)) if special else (name,))


def name_of_all(found: Sequence[EventFiles]) -> str:
    """Return what errors call the files of several locations."""
    return found[0].name if len(found) == 1 else f"{shorten_name(found[0].name)} and {len(found) - 1:,} more of the list"


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
        told = f"there is no such file or folder{_missing(name, fault)}{_similar(name)}"
        raise EventError(f"events: cannot read {shorten_name(name)}: {told}") from fault
    except MemoryError as fault:
        raise EventError(f"events: cannot read {shorten_name(name)}: out of memory; {FEWER_EVENTS}") from fault
    except Exception as fault:
        file, reason = _unopened(name, _told(fault))
        raise EventError(f"events: cannot read {shorten_name(file)}: {shorten_name(reason) or type(fault).__name__}") from fault


def shorten_name(name: str) -> str:
    """Return a name as messages show it: a long one without its middle, half surrogate pairs as escapes."""
    written = name.encode(errors="backslashreplace").decode()
    return written if len(written) <= _LONGEST_SHOWN else f"{written[: _LONGEST_SHOWN // 2]}…{written[-_LONGEST_SHOWN // 2 :]}"


def _missing(name: str, fault: FileNotFoundError) -> str:
    """Return the name of a file that is not there, if it is one of those of a folder, a glob or a list."""
    found = _QUOTED.search(fault.strerror or "")
    return "" if found is None or name.endswith(found[1]) else f": {shorten_name(found[1])}"


def _similar(name: str) -> str:
    """Return the question whether a file of a similar name is meant, if there is one beside it on this machine."""
    path = Path(name)
    try:
        if path.exists() or is_uri(name) or not path.parent.is_dir():
            return ""
        beside = [each.name for each in islice(path.parent.iterdir(), _MOST_COMPARED)]
    except OSError:
        # a folder that may be entered need not show what it holds
        return ""
    hint = nearest(path.name, beside)
    return "" if hint is None else f"; {hint}"


def _unopened(name: str, told: str) -> tuple[str, str]:
    """Return the file that Arrow says cannot be opened, and why; `name` and the whole message if it says no such thing."""
    found = _UNOPENED.match(told)
    return (name, told) if found is None else (name if name.endswith(found[1]) else found[1], found[2])


def _told(fault: Exception) -> str:
    """Return the message of an error, without the traceback that Arrow puts behind that of a reader."""
    several = len(fault.args) > 1 and all(isinstance(part, str) for part in fault.args)
    told = getattr(fault, "strerror", None) or ("; ".join(fault.args) if several else str(fault))
    return " ".join(told.partition(". Detail: Python exception")[0].split())


def _is_local_file(system: fs.FileSystem, path: str) -> bool:
    return isinstance(system, fs.LocalFileSystem) and Path(path).exists()


def _fitting(name: str, found: list[str]) -> tuple[str, ...]:
    """Return the paths that fit a glob, ascending."""
    if not found:
        raise EventError(f"events: cannot read {shorten_name(name)}: no file fits it")
    return tuple(sorted(found))


def _matching(system: fs.FileSystem, path: str) -> list[str]:
    """Return the files of a folder whose names fit the last part of `path`."""
    folder, _, name = path.rpartition("/")
    fitting = re.compile(".*".join(map(re.escape, name.split("*"))), re.DOTALL)
    listed = system.get_file_info(fs.FileSelector(folder))
    return [each.path for each in listed if each.type is fs.FileType.File and fitting.fullmatch(each.base_name)]
