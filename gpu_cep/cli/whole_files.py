"""Write to stdout, a URI or a local file; a file whole or not at all."""

from __future__ import annotations

import errno
import io
import os
import sys

import pyarrow as pa
from pyarrow import fs

from gpu_cep.engine.input.file_systems import is_uri, open_target, read_only
from gpu_cep.errors import CepError
from gpu_cep.whole_files import Write, save_whole

PIPE = "-"


def write_whole(name: str, write: Write) -> None:
    """Write what `name` stands for by calling ``write(target)``; if that fails, an old file stays as it was.

    A local file is written as :func:`save_whole` does. ``-`` is stdout, which is written directly. What a
    URI names is written in one go, once all bytes are there.

    Raises
    ------
    CepError
        The file cannot be written; the message says why.
    BrokenPipeError
        The reader of stdout has closed it.
    """
    try:
        if name == PIPE:
            _write_stdout(write)
        elif is_uri(name):
            _write_uri(name, write)
        else:
            save_whole(name, write)
    except (OSError, pa.ArrowException) as fault:
        if name == PIPE and isinstance(fault, BrokenPipeError):
            raise
        raise CepError(f"cannot write {'stdout' if name == PIPE else name}: {getattr(fault, 'strerror', None) or fault}") from fault


def print_line(text: str) -> None:
    """Print a line to stdout; raises as :func:`write_whole`."""
    write_whole(PIPE, lambda _: print(text, flush=True))


def _write_uri(uri: str, write: Write) -> None:
    system, path = open_target(uri)
    if isinstance(system, fs.LocalFileSystem):
        write_whole(path, write)
        return
    held = io.BytesIO()
    write(held)
    try:
        # the bytes are compressed already, if the suffix says so
        with system.open_output_stream(path, compression=None) as target:
            target.write(held.getbuffer())
    except NotImplementedError as fault:
        raise OSError(read_only(uri.partition("://")[0])) from fault


def _write_stdout(write: Write) -> None:
    if sys.stdout is None:
        raise OSError(errno.EBADF, "it is closed")
    try:
        # what was printed before
        sys.stdout.flush()
        write(sys.stdout.buffer)
        sys.stdout.buffer.flush()
    except OSError:
        give_up_stdout()
        raise


def give_up_stdout() -> None:
    """Let stdout lead nowhere: what is left in its buffer would fail once more when the process ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
