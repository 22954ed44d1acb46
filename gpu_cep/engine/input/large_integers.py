"""Read whole numbers beyond int64 as they stand in CSV and lines of JSON, of which Arrow makes floats: two of them might be one then."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from gpu_cep.engine.input.event_files import shorten_name
from gpu_cep.errors import EventError

# Floats from here on, and those from its opposite down, may stand for whole numbers that int64 does not hold.
_BEYOND = float(1 << 63)
# Conditions read only numbers of uint64 below 2**63, and no decimals so wide; a result holds all of them.
_EXACT = (pa.uint64(), pa.decimal128(38, 0))
# How a number begins that is written as floats are.
FLOAT = r"-?[0-9]*[.eE](?:[-+0-9 ]|$)"

Read = Callable[[str, pa.DataType], pa.ChunkedArray]


def keep_integers(table: pa.Table, name: str, read: Read, has_float: Callable[[str], bool], remedy: str) -> pa.Table:
    """Return a file's table with uint64 or decimals in place of float64 where all numbers of a column are whole and some are large.

    Parameters
    ----------
    name
        What errors call the file.
    read
        Reads a column as a type, and raises pyarrow.ArrowInvalid if some of its numbers are not of that type.
    has_float
        Returns whether a number of a column is written as floats are; the column is left as it is then.
    remedy
        What to do about a column of which some numbers are out of range.

    Raises
    ------
    EventError
        A column has whole numbers of more than 38 digits.
    """
    for place, field in enumerate(table.schema):
        if not pa.types.is_float64(field.type) or not _may_be_integers(table.column(place)):
            continue
        if len(table.schema.get_all_field_indices(field.name)) > 1:
            # no query reads a column whose name another one has
            continue
        unsigned, widest = _EXACT
        try:
            column = read(field.name, unsigned)
        except pa.ArrowInvalid:
            if has_float(field.name):
                continue
            column = _read_widest(field.name, widest, name, read, remedy)
        table = table.set_column(place, field.name, column)
    return table


def _read_widest(column: str, kind: pa.Decimal128Type, name: str, read: Read, remedy: str) -> pa.ChunkedArray:
    try:
        return read(column, kind)
    except pa.ArrowInvalid as fault:
        told = f"column {column!r} has whole numbers of more than {kind.precision} digits"
        raise EventError(f"events: cannot read {shorten_name(name)}: {told}; {remedy.format(name=column)}") from fault


def _may_be_integers(column: pa.ChunkedArray) -> bool:
    """Return whether all numbers are whole, and some are beyond int64."""
    least, most = pc.min_max(column).as_py().values()
    if least is None or not (most >= _BEYOND or least <= -_BEYOND):
        return False
    return bool(pc.all(pc.and_(pc.is_finite(column), pc.equal(pc.floor(column), column))).as_py())
