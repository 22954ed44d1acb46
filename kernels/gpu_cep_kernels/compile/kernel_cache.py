"""Keep compiled kernels on disk, where every checkout and process with the same sources finds them.

Numba's own cache finds a kernel by the file of its function, and that file's
time. Here a kernel is found by what it is made of, whichever copy of the
package declares it.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import stat
import sys
import tempfile
import time
import uuid
from functools import cache
from pathlib import Path
from typing import IO, Any

import numba
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps
from numba.misc.appdirs import AppDirs

from gpu_cep_kernels.compile import notices
from gpu_cep_kernels.compile.source_keys import describe_types

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

NAME = "gpu_cep"
SUFFIX = ".kernel"
_MOST_SECONDS_IN_SILENCE = 1.0
_MOST_SECONDS_IN_WAIT = 300.0
_SECONDS_BETWEEN_LOOKS = 0.05


def cache_folder() -> Path:
    """Return the folder for compiled kernels: in NUMBA_CACHE_DIR if that is set, otherwise in the user's cache folder."""
    # numba reads its settings when it is imported
    given = os.environ.get("NUMBA_CACHE_DIR") or numba.config.CACHE_DIR  # type: ignore[attr-defined]
    return Path(given) / NAME if given else Path(AppDirs(appname=NAME, appauthor=False).user_cache_dir)


@cache
def writable_folder(wanted: Path) -> Path | None:
    """Return a folder in which kernels can be written: `wanted`, one for temporary files, or None.

    If it is not `wanted`, a notice says so.
    """
    fault = _write_fault(wanted)
    if fault is None:
        return wanted
    other = Path(tempfile.gettempdir()) / f"{NAME}-{os.getuid() if hasattr(os, 'getuid') else 0}"
    if _write_fault(other) is None and _is_private(other):
        notices.say(f"{wanted}: {fault}; compiled kernels are kept in {other}")
        return other
    notices.say(f"{wanted}: {fault}; each process compiles its kernels again")
    return None


def _write_fault(folder: Path) -> str | None:
    """Return why no file can be made in a folder, or None."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as fault:
        return fault.strerror or type(fault).__name__
    return None


def _is_private(folder: Path) -> bool:
    """Whether nobody else can have put files in a folder; what is read from there is run."""
    found = folder.lstat()
    owned = not hasattr(os, "getuid") or found.st_uid == os.getuid()
    return owned and stat.S_ISDIR(found.st_mode) and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


class KernelCache(NullCache):
    """Keep a kernel's compiled forms by numba's protocol: each in a file named by the digest of all that it depends on.

    So processes that compile the same kernel at the same time cannot mix up each other's forms.
    """

    def __init__(self, name: str, key: str) -> None:
        self._name, self._key = name, key

    @property
    def cache_path(self) -> str:
        """Return the folder for compiled kernels."""
        return str(cache_folder())

    def file_name(self, signature: Any, codegen: Any) -> str:
        """Return the name of the file for these argument types on this processor."""
        parts = (numba.__version__, sys.implementation.cache_tag, self._key, codegen.magic_tuple(), describe_types(signature))
        return f"{self._name}-{hashlib.sha256(repr(parts).encode()).hexdigest()[:32]}{SUFFIX}"

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled form for these argument types, or None."""
        name, folder = self.file_name(sig, target_context.codegen()), cache_folder()
        payload = _read(folder / name) or _read_when_compiled(writable_folder(folder), name)
        return None if payload is None else CompileResult._rebuild(target_context, *payload)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write a compiled form to disk, where that can be written."""
        folder = writable_folder(cache_folder())
        try:
            if folder is not None and not data.library.has_dynamic_globals:
                _write(folder / self.file_name(sig, data.codegen), dumps(data._reduce()))
        finally:
            turn.give_up()


class _Turn:
    """Hold this process's turn to compile one kernel; others that need the same form wait for it.

    A process has one turn at a time, since numba compiles for one thread at a time.
    The turn ends with the process at the latest.
    """

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None
        self._path = Path()

    def take(self, path: Path) -> None:
        """Wait until no other process has the turn of this name, and take it.

        After `_MOST_SECONDS_IN_WAIT` go on without it: the other process may have been stopped.
        """
        self.give_up()
        try:
            self._file, self._path = path.open("ab"), path
        except OSError:
            return
        limit = time.monotonic() + _MOST_SECONDS_IN_WAIT
        while not _is_locked(self._file) and time.monotonic() < limit:
            time.sleep(_SECONDS_BETWEEN_LOOKS)

    def give_up(self) -> None:
        """Give up the turn, if this process has one, so that others go on."""
        if self._file is not None:
            self._path.unlink(missing_ok=True)
            self._file.close()
            self._file = None


turn = _Turn()


def _is_locked(file: IO[bytes]) -> bool:
    """Return whether this process now holds a file's lock; True, too, where files cannot be locked."""
    try:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def _read_when_compiled(folder: Path | None, name: str) -> Any:
    """Return what another process has compiled meanwhile; or take the turn to compile it, and return None."""
    if folder is None:
        return None
    payload = _read(folder / name)
    if payload is None:
        turn.take(folder / f"{name}.lock")
        payload = _read(folder / name)
        if payload is not None:
            turn.give_up()
    return payload


@cache
def _cuda_cache_class() -> Any:
    """Return a class of numba-cuda's cache that finds kernels by key, in this module's folder."""
    from numba.cuda.dispatcher import CUDACache, CUDACacheImpl

    class Place:
        """Where the compiled forms of a kernel for CUDA are kept."""

        def __init__(self, key: str, folder: Path) -> None:
            self._key, self._folder = key, folder

        @classmethod
        def from_function(cls, function: Any, file: str) -> Place | None:
            folder = writable_folder(cache_folder())
            return None if folder is None else cls(function.__closure__[0].cell_contents, folder)

        def ensure_cache_path(self) -> None:
            self._folder.mkdir(parents=True, exist_ok=True)

        def get_cache_path(self) -> str:
            return str(self._folder)

        def get_source_stamp(self) -> str:
            return self._key

        def get_disambiguator(self) -> str:
            return hashlib.sha256(self._key.encode()).hexdigest()[:16]

    class Kept(CUDACache):
        _impl_class: Any = type("Impl", (CUDACacheImpl,), {"_locator_classes": [Place]})

        def _index_key(self, sig: Any, codegen: Any) -> Any:
            return (*super()._index_key(sig, codegen), describe_types(sig))

    return Kept


def cuda_cache(function: Any) -> Any:
    """Return numba-cuda's cache for a function whose closure holds its key; one that keeps nothing if no folder can be written."""
    return NullCache() if writable_folder(cache_folder()) is None else _cuda_cache_class()(function)


def _read(path: Path) -> Any:
    """Return the content of a file, or None if there is no file or a damaged one."""
    try:
        return pickle.loads(path.read_bytes())
    except (OSError, EOFError, pickle.UnpicklingError):
        return None


def _write(path: Path, content: bytes) -> None:
    """Write a file so that other processes see it whole or not at all; a failure gives a notice and no error."""
    unfinished = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
    try:
        unfinished.write_bytes(content)
        os.replace(unfinished, path)
    except OSError as fault:
        unfinished.unlink(missing_ok=True)
        notices.say(f"{path.parent}: {fault.strerror}; each process compiles its kernels again")


def _tell_of_compiling() -> None:
    """Say that kernels are being compiled, once per machine and version.

    An empty file in their folder remembers that it has been said.
    """
    about = repr((notices.package_version(), numba.__version__, sys.implementation.cache_tag))
    folder = writable_folder(cache_folder())
    if folder is not None:
        try:
            (folder / f"said-{hashlib.sha256(about.encode()).hexdigest()[:16]}").touch(exist_ok=False)
        except OSError:
            return
    notices.say(notices.COMPILING)


compiling = notices.Patience(_MOST_SECONDS_IN_SILENCE, _tell_of_compiling)
