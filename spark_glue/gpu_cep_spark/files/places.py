"""Say where the files of a scan lie, and open the file systems that hold them, on the driver as in tasks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from urllib.parse import SplitResult, unquote, urlsplit

from pyarrow import fs

from gpu_cep.engine.input.file_systems import is_uri, open_uri


class NoScanError(Exception):
    """A DataFrame is no plain scan of Parquet files; the message says why."""


class NoCardError(NoScanError):
    """Tasks cannot have cuDF read the files to cards, but Arrow to the host; the message says why."""


def places_of(uris: Sequence[str], *, remote: bool) -> tuple[str, ...]:
    """Return the paths of files on this machine, of which Spark gives the URIs; of files elsewhere, if `remote`, their URIs.

    Raises
    ------
    NoScanError
        There are no files, files lie elsewhere, or the name of one does not surely mean the same to Arrow.
    """
    found = [urlsplit(uri) for uri in uris]
    if not found:
        raise NoScanError("it has no files")
    other = next((place.scheme for place in found if place.scheme != "file"), None)
    if other is not None and not remote:
        raise NoScanError(f"its files are in the file system {other}:, which tasks read only if scan='files' asks for it")
    # Spark does not escape '?' and '#', which end a path elsewhere
    if any(place.query or place.fragment for place in found):
        raise NoScanError("the name of a file has a '?' or a '#'")
    return tuple(map(_place, found))


def open_place(place: str) -> tuple[fs.FileSystem, str]:
    """Return the file system of a file, and its path there; that of a URI is Arrow's or fsspec's, by the machine's own credentials.

    Raises
    ------
    OSError, pyarrow.ArrowInvalid
        There is no such file system, it cannot be reached, or a package that it needs is not installed.
    """
    if not is_uri(place):
        return fs.LocalFileSystem(), place
    scheme, _, rest = place.partition("://")
    authority, _, path = rest.partition("/")
    system, root = _opened(f"{scheme}://{authority}/")
    return system, f"{root.rstrip('/')}/{path}"


@cache
def _opened(root: str) -> tuple[fs.FileSystem, str]:
    """Return the file system of a bucket or a server, which is asked for much when it is opened, and the path of its root."""
    return open_uri(root)


def _place(place: SplitResult) -> str:
    if place.scheme == "file":
        return unquote(place.path)
    if "%" in place.path:
        raise NoScanError(f"the name of a file in the file system {place.scheme}: has characters that a URI must escape")
    return f"{place.scheme}://{place.netloc}{place.path}"
