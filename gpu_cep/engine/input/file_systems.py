"""Open the file system that a URI names: one of Arrow's, or one of fsspec's."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import fs

_URI = re.compile(r"[a-z][a-z0-9+.-]+://", re.IGNORECASE)
# What pathlib makes of a URI.
_CUT_URI = re.compile(r"([a-z][a-z0-9+.-]+):/(?!/)", re.IGNORECASE)
# The schemes of Arrow's own file systems, and other spellings of them.
_ARROW = {"file", "s3", "gs", "gcs", "hdfs", "viewfs", "abfs", "abfss"}
_SPELLINGS = {"s3a": "s3", "s3n": "s3"}
_WEB = ("http://", "https://")
# Schemes of fsspec whose files can only be read.
_READ_ONLY = {"http", "https", "data", "github", "gist", "git", "dask", "libarchive", "reference", "tar"}
_FSSPEC = "fsspec+"  # in front of the scheme of a URI that fsspec is to open
_SMALL = 1 << 20  # bytes of a file of the web that is read at once
_INSTALL = "pip install 'gpu_cep[remote]'"


def is_uri(name: object) -> bool:
    """Return whether `name` is a URI, such as ``s3://bucket/events.parquet``."""
    return isinstance(name, str) and _URI.match(name) is not None


def location_of(events: object) -> Any:
    """Return where the events lie, as a text, a Path or a UPath; None if they are no such thing.

    Other objects that stand for a path (``os.PathLike``) become text.
    """
    # a package that has not been imported made no path
    universal = getattr(sys.modules.get("upath"), "UPath", None)
    if isinstance(events, str | Path) or (universal is not None and isinstance(events, universal)):
        return events
    return os.fsdecode(events) if isinstance(events, os.PathLike) else None


def locations_of(events: object) -> tuple[Any, ...]:
    """Return where the events lie, as :func:`location_of`: one location, or those of a list or a tuple; none if they are no such things."""
    given = events if isinstance(events, list | tuple) else (events,)
    found = tuple(map(location_of, given))
    return () if any(each is None for each in found) else found


def cut_uri(path: str) -> str | None:
    """Return the URI of which pathlib made a path, by dropping a slash; None if the path was no URI, or is there.

    Examples
    --------
    >>> cut_uri(str(Path("s3://bucket/events.parquet")))
    's3://bucket/events.parquet'
    """
    scheme = _CUT_URI.match(path)
    return None if scheme is None or os.path.lexists(path) else path.replace(":/", "://", 1)


def path_of_uri(name: str) -> str:
    """Return a name without what follows the path in a URI of the web, as signatures do.

    Examples
    --------
    >>> path_of_uri("https://host/events.parquet?signature=x.y"), path_of_uri("what?.csv")
    ('https://host/events.parquet', 'what?.csv')
    """
    return re.split(r"[?#]", name, maxsplit=1)[0] if name.startswith(_WEB) else name


def open_uri(uri: str) -> tuple[fs.FileSystem, str]:
    """Return the file system of a URI, and the path there.

    Raises
    ------
    OSError, pyarrow.ArrowInvalid
        There is no such file system, it cannot be reached, or a package that it needs is not installed.
    """
    scheme, _, rest = uri.partition("://")
    known = _SPELLINGS.get(scheme.lower(), scheme.lower())
    if known in _ARROW:
        found: tuple[fs.FileSystem, str] = fs.FileSystem.from_uri(f"{known}://{rest}")
        return found
    return _open_by_fsspec(uri.removeprefix(_FSSPEC))


def open_target(uri: str) -> tuple[fs.FileSystem, str]:
    """Return the file system of a URI that is to be written, and the path there; raises as :func:`open_uri`, also if it is read-only."""
    scheme = uri.removeprefix(_FSSPEC).partition("://")[0]
    if scheme.lower() in _READ_ONLY:
        raise OSError(read_only(scheme))
    return open_uri(uri)


def read_only(scheme: str) -> str:
    """Return the message for a scheme whose files cannot be written."""
    return f"files of {scheme}:// can only be read; expected a local file, or one of s3://, gs://, abfs://, hdfs:// or the like"


def open_upath(path: Any) -> tuple[fs.FileSystem, str]:
    """Return the file system of a UPath with its options, and the path there."""
    return arrow_of(path.fs), str(path.path)


def _open_by_fsspec(uri: str) -> tuple[fs.FileSystem, str]:
    """Return fsspec's file system of a URI as one of Arrow's, and the path there."""
    try:
        from fsspec import get_filesystem_class
        from fsspec.core import url_to_fs
    except ImportError as fault:
        raise OSError(f"it needs fsspec, which is not installed: {_INSTALL}") from fault
    scheme = uri.partition("://")[0]
    try:
        get_filesystem_class(scheme)
    except ImportError as fault:
        # fsspec says which package opens this scheme
        raise OSError(f"{fault}{f' ({_INSTALL})' if uri.startswith(_WEB) else ''}") from fault
    except ValueError as fault:
        raise OSError(f"neither Arrow nor fsspec has a file system for {scheme}://") from fault
    try:
        system, path = url_to_fs(uri)
    except (TypeError, ValueError, AttributeError) as fault:
        # what a file system raises if it is made without the options that it must have
        options = f"FSSPEC_{scheme.upper()}_… in the environment"
        raise OSError(f"{scheme}:// needs options, which fsspec takes from {options}: {fault}") from fault
    return arrow_of(system), path


def arrow_of(system: Any) -> fs.FileSystem:
    """Return a file system of fsspec as one of Arrow's."""
    return fs.PyFileSystem(_Handler(system))


class _Handler(fs.FSSpecHandler):  # type: ignore[misc]
    """Lets Arrow read by fsspec; of a web server that gives no ranges, each file is read once and held as a whole."""

    def __init__(self, system: Any) -> None:
        super().__init__(system)
        self._held: dict[str, bytes | None] = {}

    def open_input_stream(self, path: str) -> pa.NativeFile:
        return self.open_input_file(path)

    def open_input_file(self, path: str) -> pa.NativeFile:
        if not path.startswith(_WEB):
            return super().open_input_file(path)
        if path not in self._held:
            self._held[path] = self._whole(path)
        held = self._held[path]
        # Arrow asks for no more than it needs, and for that at once
        return pa.PythonFile(self.fs.open(path, cache_type="none"), mode="r") if held is None else pa.BufferReader(held)

    def _whole(self, path: str) -> bytes | None:
        """Return all bytes of a small file, or of one whose server gives no ranges; None for others."""
        size = self.fs.info(path)["size"]
        if size is None or size <= _SMALL:
            return bytes(self.fs.cat_file(path))
        asked = self.fs.cat_file(path, 0, 1)
        return None if len(asked) == 1 else bytes(asked)
