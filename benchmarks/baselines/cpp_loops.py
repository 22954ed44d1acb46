"""Compile loops in C++ once for all runs, and give them Arrow columns without a copy."""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

FLAGS = ("-O3", "-march=native", "-std=c++17", "-shared", "-fPIC")


def has_compiler() -> bool:
    """Return whether there is a compiler for the loops; without one nothing is compared with them."""
    return shutil.which("g++") is not None


def compiler_version() -> str:
    """Return the first line that the compiler says of itself."""
    if not has_compiler():
        return "no g++, so nothing is compared with C++"
    return subprocess.run(["g++", "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]


def library_of(name: str, sources: Sequence[Path], headers: Sequence[Path] = ()) -> ctypes.CDLL:
    """Return the library of some sources.

    It is compiled unless one of the same sources, headers and flags is there.
    """
    said = b"".join(path.read_bytes() for path in (*sources, *headers)) + " ".join(FLAGS).encode()
    target = Path(tempfile.gettempdir()) / f"gpu_cep-{name}-{os.getuid()}-{hashlib.sha256(said).hexdigest()[:16]}.so"
    if not target.exists():
        partial = target.with_suffix(f".{os.getpid()}")
        subprocess.run(["g++", *FLAGS, *map(str, sources), "-o", str(partial)], check=True)
        partial.replace(target)
    return ctypes.CDLL(str(target))


def declare_matches(library: ctypes.CDLL) -> None:
    """Set the types of the functions of ``matches.cpp``, which give out the matches of a loop."""
    library.matches_count.argtypes = library.matches_columns.argtypes = library.matches_free.argtypes = (ctypes.c_void_p,)
    library.matches_size.argtypes = library.matches_data.argtypes = (ctypes.c_void_p, ctypes.c_int64)
    library.matches_count.restype = library.matches_columns.restype = library.matches_size.restype = ctypes.c_int64
    library.matches_data.restype = ctypes.c_void_p
    library.matches_free.restype = None


def chunk(events: pa.Table, name: str) -> pa.Array:
    """Return a column that is one whole chunk without NULLs; raise ValueError for any other."""
    column = events[name]
    if column.num_chunks != 1 or column.null_count or column.chunk(0).offset:
        raise ValueError(f"column {name} is not one whole chunk without NULLs")
    return column.chunk(0)


def address(array: pa.Array) -> int:
    """Return where the values of an array lie."""
    buffer: pa.Buffer = array.buffers()[1]
    return int(buffer.address)


def vector(library: ctypes.CDLL, found: int, column: int) -> pa.Array:
    """Return a column of int64 of the matches `found`."""
    size = library.matches_size(found, column)
    if size == 0:
        return pa.array([], pa.int64())
    data = ctypes.cast(library.matches_data(found, column), ctypes.POINTER(ctypes.c_int64))
    return pa.array(np.ctypeslib.as_array(data, (size,)).copy())
