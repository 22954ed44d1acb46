"""Read whole numbers beyond int64 as they stand in CSV and lines of JSON, of which Arrow makes floats: two of them might be one then."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from gpu_cep.engine.input.event_files import shorten_name
from gpu_cep.errors import EventError

# Floats from here on, and those from its opposite down, may stand for whole numbers that int64 does not hold.
_BEYOND = float(1 << 63)
# A whole number that int64 may not hold, and no float.
LARGE = "-?[0-9]{19,}"
# How a number begins that is written as floats are.
FLOAT = r"-?[0-9]*[.eE][-+0-9]"


class Written(NamedTuple):
    """A number as it stands in a file, and the byte at which it does."""

    text: str
    place: int


def keep_integers(
    table: pa.Table,
    held: pa.Buffer,
    name: str,
    unsigned: Callable[[str], pa.ChunkedArray],
    find: Callable[[str], Written | None],
    remedy: str,
) -> pa.Table:
    """Return the table that was read of a file with uint64 in place of float64, where all numbers of a column are whole and some are large.

    Parameters
    ----------
    held, name
        The bytes of the file, and what errors call it.
    unsigned
        Reads a column as uint64, and raises pyarrow.ArrowInvalid if some of its numbers are not of that type.
    find
        Returns the first number of a column that is written with 19 digits or more; None if one is written as floats are.
    remedy
        What to do about a column of which some numbers are out of range.

    Raises
    ------
    EventError
        A column has whole numbers of which neither int64 nor uint64 holds all.
    """
    for place, field in enumerate(table.schema):
        if not pa.types.is_float64(field.type) or not _may_be_integers(table.column(place)):
            continue
        if len(table.schema.get_all_field_indices(field.name)) > 1:
            # no query reads a column whose name another one has
            continue
        try:
            column = unsigned(field.name)
        except pa.ArrowInvalid as fault:
            found = find(field.name)
            if found is None:
                continue
            line = held.slice(0, found.place).to_pybytes().count(b"\n") + 1
            told = f"no integer type holds all numbers of column {field.name!r}, such as {shorten_name(found.text)} in line {line:,}"
            raise EventError(f"events: cannot read {shorten_name(name)}: {told}; {remedy.format(name=field.name)}") from fault
        table = table.set_column(place, field.name, column)
    return table


def _may_be_integers(column: pa.ChunkedArray) -> bool:
    """Return whether all numbers are whole, and some are beyond int64."""
    least, most = pc.min_max(column).as_py().values()
    if least is None or not (most >= _BEYOND or least <= -_BEYOND):
        return False
    return bool(pc.all(pc.and_(pc.is_finite(column), pc.equal(pc.floor(column), column))).as_py())
