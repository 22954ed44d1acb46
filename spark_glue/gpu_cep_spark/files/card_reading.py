"""Read the pieces of files that a task matches by cuDF to the task's card, and by Arrow what cuDF would read otherwise."""

from __future__ import annotations

import pyarrow as pa

from gpu_cep.engine.accounting.profile import Profile
from gpu_cep.engine.input.device.cudf import require_cudf
from gpu_cep.engine.input.device.gpu_files import CudfReader
from gpu_cep.engine.input.device.resident import ResidentTable
from gpu_cep.engine.input.event_files import reading
from gpu_cep.engine.input.readers import read_part
from gpu_cep_spark.files.reading import READ_BYTES, READ_GROUPS, READ_ROWS, Reading, Share, files_of, name_of, refuse_changed

READ_TO_CARD = "bytes read to cards"
READ_BY_ARROW = "scan='files' has Arrow read the files to the host"


def read_to_card(what: Reading, share: Share, gpu_memory: int | None, profile: Profile) -> pa.Table | ResidentTable:
    """Return the events of a share, and others of its row groups, in columns called c0, c1, …; they take at most `gpu_memory` bytes.

    Others change nothing: matches start in the time of the share.

    Raises
    ------
    EngineUnavailable
        The task has no card, or no cuDF; the message says why.
    EventError
        A file has changed or gone since the query was made, or cannot be read; the message names it.
    UnsupportedError
        The events do not fit the card's memory, or `gpu_memory`.
    """
    require_cudf("scan='gpu_files'")
    parts = list(share.parts)
    refuse_changed(parts)
    with reading(name_of(parts)):
        part = read_part(CudfReader(name_of(parts), READ_BY_ARROW), files_of(what, parts), what.schema.names, what.wanted, gpu_memory)
    # a file that was replaced meanwhile has another footer
    refuse_changed(parts)
    groups = sum(len(own.groups) for own in parts) if part.groups is None else part.groups.read
    _count_read(profile, part.table, groups)
    return _called(what, part.table)


def _count_read(profile: Profile, table: pa.Table | ResidentTable, groups: int) -> None:
    """Add what was read to the profile."""
    columns = list(table.columns.values()) if isinstance(table, ResidentTable) else table.columns
    host = sum(column.nbytes for column in columns if isinstance(column, pa.ChunkedArray))
    profile.add(READ_ROWS, table.num_rows)
    profile.add(READ_BYTES, host)
    profile.add(READ_TO_CARD, sum(column.nbytes for column in columns) - host)
    profile.add(READ_GROUPS, groups)


def _called(what: Reading, table: pa.Table | ResidentTable) -> pa.Table | ResidentTable:
    """Return the columns of the events, called c0, c1, …; those of the DataFrame may be one column of the files."""
    names = [f"c{place}" for place in range(len(what.columns))]
    if isinstance(table, ResidentTable):
        return ResidentTable(table.device, {name: table.columns[column] for name, column in zip(names, what.columns, strict=True)})
    return table.select(list(what.columns)).rename_columns(names)
