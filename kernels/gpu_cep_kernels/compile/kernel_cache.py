"""Keep compiled kernels on disk, where every checkout and process with the same sources finds them.

Numba's own cache finds a kernel by the file of its function, and that file's
time. Here a kernel is found by what it is made of, whichever copy of the
package declares it.

Keeping may fail without consequence. What cannot be read is compiled, what is
damaged is replaced, and a notice says so.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import stat
import sys
import tempfile
import uuid
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps
from numba.misc.appdirs import AppDirs

from gpu_cep_kernels.compile import notices
from gpu_cep_kernels.compile.source_keys import describe_types
from gpu_cep_kernels.compile.turns import cuda_turn, is_taken, turn

NAME = "gpu_cep"
# numba's own variable for where to keep what it compiles
FOLDER = "NUMBA_CACHE_DIR"
SUFFIX = ".kernel"
CUDA_SUFFIX = ".cuda"
_MOST_SECONDS_IN_SILENCE = 1.0
# Of what a file holds; each format has file names of its own.
_FORMAT = 2
_DIGEST_BYTES = hashlib.sha256().digest_size
_UNKEPT = "each process compiles its kernels again"


def given_folder() -> str:
    """Return the folder that the user gives numba, in the environment or in its settings; an empty text if there is none."""
    # numba reads its settings when it is imported
    return os.environ.get(FOLDER) or str(numba.config.CACHE_DIR)  # type: ignore[attr-defined]


def cache_folder() -> Path | None:
    """Return the folder for compiled kernels: in NUMBA_CACHE_DIR if that is set, otherwise in the user's cache folder.

    It is None for a user without a home.
    """
    given = given_folder()
    if given:
        return Path(given) / NAME
    if os.environ.get("HOME") == "" and not os.environ.get("XDG_CACHE_HOME"):
        # an empty home would put the folder into the root of the file system
        return None
    folder = Path(AppDirs(appname=NAME, appauthor=False).user_cache_dir)
    # without a home it begins with "~", which would be a folder in the one where the process runs
    return folder if folder.is_absolute() else None


@cache
def writable_folder(wanted: Path | None) -> Path | None:
    """Return a folder in which kernels can be written: `wanted`, one for temporary files, or None.

    If it is not `wanted`, a notice says so.
    """
    fault = "there is no home folder" if wanted is None else _write_fault(wanted)
    if fault is None:
        return wanted
    told = fault if wanted is None else f"{wanted}: {fault}"
    other = _temporary_folder()
    notices.say(f"{told}; {_UNKEPT if other is None else f'compiled kernels are kept in {other}'}")
    return other


def _temporary_folder() -> Path | None:
    """Return the user's own folder among those for temporary files, None if nothing can be written there."""
    try:
        folder = Path(tempfile.gettempdir()) / f"{NAME}-{os.getuid() if hasattr(os, 'getuid') else 0}"
    except FileNotFoundError:  # none of the folders for temporary files takes a file
        return None
    return folder if _write_fault(folder) is None and _is_private(folder) else None


def _write_fault(folder: Path) -> str | None:
    """Return why no file can be made in a folder, or None."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as fault:
        return fault.strerror or type(fault).__name__
    return None


def _is_private(folder: Path) -> bool:
    """Return whether nobody else can have put files in a folder; what is read from there is run."""
    found = folder.lstat()
    owned = not hasattr(os, "getuid") or found.st_uid == os.getuid()
    return owned and stat.S_ISDIR(found.st_mode) and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def is_kept(name: str) -> bool:
    """Return whether a file is in the folder that is wanted for kernels, or else in the one that is written."""
    wanted = cache_folder()
    return _holds(wanted, name) or _holds(writable_folder(wanted), name)


def _holds(folder: Path | None, name: str) -> bool:
    """Return whether a file is in a folder, False if that may not be searched, or there is none."""
    # Path.exists raises PermissionError
    return folder is not None and os.path.exists(folder / name)


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
        parts = (_FORMAT, numba.__version__, sys.implementation.cache_tag, self._key, codegen.magic_tuple(), describe_types(signature))
        return f"{self._name}-{hashlib.sha256(repr(parts).encode()).hexdigest()[:32]}{SUFFIX}"

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled form for these argument types, or None."""
        name = self.file_name(sig, target_context.codegen())
        payload = _read_wanted(name) or _read_when_compiled(writable_folder(cache_folder()), name)
        return None if payload is None else CompileResult._rebuild(target_context, *payload)

    def begin(self, sig: Any, codegen: Any, wait: bool) -> bool:
        """Return whether to compile the form for these types: it is not kept, and no other process compiles it, or this one may `wait`."""
        name = self.file_name(sig, codegen)
        folder = None if is_kept(name) else writable_folder(cache_folder())
        if folder is None or wait:
            return folder is not None
        if not turn.take_free(folder / f"{name}.lock"):
            return False
        # another process may have kept it since the first look
        if is_kept(name):
            turn.give_up()
            return False
        return True

    def is_missing(self, sig: Any, codegen: Any) -> bool:
        """Return whether the form for these types can be kept, is not kept, and no other process compiles it."""
        name = self.file_name(sig, codegen)
        folder = None if is_kept(name) else writable_folder(cache_folder())
        return folder is not None and not is_taken(folder / f"{name}.lock")

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write a compiled form to disk, where that can be written."""
        folder = writable_folder(cache_folder())
        try:
            if folder is not None and not data.library.has_dynamic_globals:
                _write(folder / self.file_name(sig, data.codegen), data._reduce())
        finally:
            turn.give_up()


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


class _Files:
    """Keep what numba-cuda's cache gives it: each form in a file of its own, named by the digest of its key."""

    def __init__(self, base: str) -> None:
        self._base = base

    def load(self, key: str) -> Any:
        """Return what was kept under the key in the folder that is wanted, or in the one that is written, or None."""
        name = self.name_of(key)
        found = _read_wanted(name)
        folder = writable_folder(cache_folder()) if found is None else None
        return found if folder is None else _read(folder / name)

    def save(self, key: str, data: Any) -> None:
        """Keep a form under its key, where that can be written."""
        folder = writable_folder(cache_folder())
        if folder is not None:
            _write(folder / self.name_of(key), data)

    def is_kept(self, key: str) -> bool:
        """Return whether there is a form under the key."""
        return is_kept(self.name_of(key))

    def turn_of(self, key: str) -> Path | None:
        """Return the name of the turn to compile the form of the key, None if it cannot be kept."""
        folder = writable_folder(cache_folder())
        return None if folder is None else folder / f"{self.name_of(key)}.lock"

    def name_of(self, key: str) -> str:
        """Return the name of the file for the form of the key."""
        return f"{self._base}-{hashlib.sha256(key.encode()).hexdigest()[:32]}{CUDA_SUFFIX}"


@cache
def _cuda_cache_class() -> Any:
    """Return a class of numba-cuda's cache that finds kernels by key, in this module's folder."""
    from numba.cuda.dispatcher import CUDACache, CUDACacheImpl

    class Place:
        """By what numba-cuda finds a kernel: its key, wherever it lies."""

        def __init__(self, key: str) -> None:
            self._key = key

        @classmethod
        def from_function(cls, function: Any, file: str) -> Place:
            return cls(function.__closure__[0].cell_contents)

        def ensure_cache_path(self) -> None:
            """Leave the folder as it is: it is made where one is looked for that can be written."""

        def get_cache_path(self) -> str:
            return str(cache_folder())

        def get_source_stamp(self) -> str:
            return self._key

        def get_disambiguator(self) -> str:
            return hashlib.sha256(self._key.encode()).hexdigest()[:16]

    class Kept(CUDACache):
        _impl_class: Any = type("Impl", (CUDACacheImpl,), {"_locator_classes": [Place]})

        def __init__(self, function: Any) -> None:
            super().__init__(function)
            # numba's index of all forms is one file, which a damage or two writers would make useless
            self._cache_file: Any = _Files(self._impl.filename_base)

        def _index_key(self, sig: Any, codegen: Any) -> str:
            _, magic, *others = super()._index_key(sig, codegen)
            # versions, some of them named tuples
            plain = [tuple(each) for each in magic]
            return repr((numba.__version__, sys.implementation.cache_tag, plain, others, describe_types(sig)))

        def load_overload(self, sig: Any, target_context: Any) -> Any:
            """Return the form for these types, if need be once another process has compiled it; or take the turn, and return None."""
            # numba-cuda would import all that it can compile, which nothing needs that is read
            found = self._load_overload(sig, target_context)
            turn_of = self._cache_file.turn_of(self._index_key(sig, target_context.codegen())) if found is None else None
            if turn_of is not None:
                cuda_turn.take(turn_of)
                found = self._load_overload(sig, target_context)
                if found is not None:
                    cuda_turn.give_up()
            return found

        def save_overload(self, sig: Any, data: Any) -> None:
            """Write a form to disk, where that can be written."""
            try:
                super().save_overload(sig, data)
            finally:
                cuda_turn.give_up()

        def begin(self, sig: Any, target_context: Any, wait: bool) -> bool | None:
            """Take the turn to compile the form for these types, and return True; False if it is kept already, or cannot be.

            If another process has the turn, `wait` for it, or return None.
            """
            key = self._index_key(sig, target_context.codegen())
            turn_of = None if self._cache_file.is_kept(key) else self._cache_file.turn_of(key)
            if turn_of is None:
                return False
            if wait:
                cuda_turn.take(turn_of)
            elif not cuda_turn.take_free(turn_of):
                return None
            if self._cache_file.is_kept(key):
                cuda_turn.give_up()
                return False
            return True

    return Kept


def cuda_cache(function: Any) -> Any:
    """Return numba-cuda's cache for a function whose closure holds its key."""
    return _cuda_cache_class()(function)


def _read_wanted(name: str) -> Any:
    """Return what was kept in the folder that is wanted, None if it may not be read: looking for one to write says why."""
    wanted = cache_folder()
    return _read(wanted / name) if wanted is not None and os.access(wanted / name, os.R_OK) else None


def _read(path: Path) -> Any:
    """Return what was kept in a file, or None if there is no file or a damaged one; a notice tells of the latter."""
    try:
        held = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as fault:
        notices.say(f"{path.parent}: {fault.strerror}; {_UNKEPT}")
        return None
    digest, pickled = held[:_DIGEST_BYTES], held[_DIGEST_BYTES:]
    if digest != _digest(path.name, pickled):
        notices.say(f"{path.parent}: damaged files; their kernels are compiled again")
        return None
    return pickle.loads(pickled)


def _write(path: Path, payload: Any) -> None:
    """Keep something in a file so that other processes see it whole or not at all; a failure gives a notice and no error."""
    unfinished = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
    pickled = dumps(payload)
    try:
        try:
            unfinished.write_bytes(_digest(path.name, pickled) + pickled)
            os.replace(unfinished, path)
        finally:
            unfinished.unlink(missing_ok=True)
    except OSError as fault:
        notices.say(f"{path.parent}: {fault.strerror}; {_UNKEPT}")


def _digest(name: str, pickled: bytes) -> bytes:
    """Return the digest of a file's name and content, with which the file begins."""
    return hashlib.sha256(name.encode() + b"\n" + pickled).digest()


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
