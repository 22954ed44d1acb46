"""Notice files that have changed since they were opened, and name the file that cannot be read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import compress
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
from pyarrow import fs

from gpu_cep.engine.input.event_files import reading, shorten_name
from gpu_cep.errors import EventError

if TYPE_CHECKING:
    from pyarrow import dataset


class FileState(NamedTuple):
    """What tells a file from another that has taken its name: its bytes, and when it was written."""

    size: int | None
    written: int | None


def states_of(fragments: Sequence[dataset.ParquetFileFragment]) -> dict[str, FileState]:
    """Return the states of files by their paths.

    Files that fsspec reads are left out, since each answer may be a request to a server; so is what is in memory.
    """
    known = [fragment for fragment in fragments if fragment.filesystem is not None and not isinstance(fragment.filesystem, fs.PyFileSystem)]
    if not known:
        return {}
    system = known[0].filesystem
    own = [fragment.filesystem.equals(system) for fragment in known]
    told = system.get_file_info(list(dict.fromkeys(fragment.path for fragment in compress(known, own))))
    others = states_of([fragment for fragment, same in zip(known, own, strict=True) if not same])
    return others | {each.path: FileState(each.size, each.mtime_ns) for each in told}


@contextmanager
def reading_files(
    before: Mapping[str, FileState], fragments: Sequence[dataset.ParquetFileFragment], schema: pa.Schema, columns: Sequence[str]
) -> Iterator[None]:  # fmt: skip
    """Raise an EventError that names the file which has changed since it was in a state `before`, or by which reading failed inside."""
    try:
        yield
    except (OSError, pa.ArrowException) as fault:
        _refuse_changed(before, fragments)
        if not isinstance(fault, MemoryError) and len(fragments) > 1:
            for fragment in fragments:
                _read_through(fragment, schema, columns)
        raise
    _refuse_changed(before, fragments)


def _refuse_changed(before: Mapping[str, FileState], fragments: Sequence[dataset.ParquetFileFragment]) -> None:
    known = [fragment for fragment in fragments if fragment.path in before]
    changed = next((path for path, state in states_of(known).items() if state != before[path]), None)
    if changed is not None:
        told = "it was replaced, changed or deleted since it was opened; ask again"
        raise EventError(f"events: cannot read {shorten_name(changed)}: {told}")


def _read_through(fragment: dataset.ParquetFileFragment, schema: pa.Schema, columns: Sequence[str]) -> None:
    """Read a file and keep nothing; raise EventError, which names it, if that fails."""
    with reading(fragment.path):
        for _ in fragment.to_batches(schema=schema, columns=list(columns)):
            pass
