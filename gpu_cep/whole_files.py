"""Write a file whole or not at all: what was there before stays until its successor is complete."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from gpu_cep.errors import CepError

_STANDARD = (1, 2)  # stdout and stderr

Write = Callable[[BinaryIO], object]


def save_whole(path: str | Path, write: Write) -> None:
    """Write a file by calling ``write(target)``; if that fails, the old file stays as it was.

    The bytes go to a temporary file in the same folder, which then takes the name. It also takes
    the permissions of the old file, and its owner where the process may give files away. A link
    stays, and the file that it leads to is replaced. Another hard link keeps the old content.

    What is no regular file, such as a pipe or a device, is written directly.

    Raises
    ------
    CepError
        The file cannot be written; the message says why.
    """
    try:
        held = _status(path)
        descriptor = None if held is None else _standard_descriptor(held)
        if held is None or (stat.S_ISREG(held.st_mode) and descriptor is None):
            _replace(Path(os.path.realpath(path)), held, write)
            return
        # a standard stream has a position, which opening it anew would lose
        with open(path if descriptor is None else os.dup(descriptor), "wb") as target:
            write(target)
    except OSError as fault:
        raise CepError(f"cannot write {path}: {fault.strerror or fault}") from fault


def _replace(path: Path, held: os.stat_result | None, write: Write) -> None:
    """Write a temporary file beside `path` and give it that name; `held` is the status of the old file."""
    if held is not None and not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    mode = 0o666 if held is None else stat.S_IMODE(held.st_mode)
    fresh = path.with_name(f".gpu-cep-{secrets.token_hex(8)}")
    try:
        with open(fresh, "xb", opener=lambda name, flags: os.open(name, flags, mode & 0o666)) as target:
            if held is not None:
                _keep_rights(target.fileno(), held, mode)
            write(target)
            target.flush()
            # a disk that is full or fails may say so only here
            os.fsync(target.fileno())
        os.replace(fresh, path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


def _keep_rights(descriptor: int, held: os.stat_result, mode: int) -> None:
    fresh = os.fstat(descriptor)
    if (fresh.st_uid, fresh.st_gid) != (held.st_uid, held.st_gid):
        # only few may give files away
        with suppress(PermissionError):
            os.fchown(descriptor, held.st_uid, held.st_gid)
    os.fchmod(descriptor, mode)


def _status(name: str | Path) -> os.stat_result | None:
    """Return the status of the file that a name or a link leads to, None if there is none."""
    try:
        return os.stat(name)
    except FileNotFoundError:
        return None


def _standard_descriptor(held: os.stat_result) -> int | None:
    """Return the descriptor of stdout or stderr if it is the file of this status, else None."""
    for descriptor in _STANDARD:
        # the process may have been started without it
        with suppress(OSError):
            if os.path.samestat(os.fstat(descriptor), held):
                return descriptor
    return None
